"""The methods that answer from text: what they need, their settings, presets and stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgqa.methods.registry import Method
from kgqa.methods.text.retriever_names import RETRIEVERS, RETRIEVERS_HELP
from kgqa.settings_table import Setting

_STAGES: Mapping[str, Mapping[str, Any]] = {"plan": {}, "refine": {}}
"""plan: sub-questions; refine: the evidence is reduced to what matters; answers and verdicts belong to "decide"."""

# the baseline of text: ToG-3 and GraphSearch call it Naive RAG
RAG = Method(
    "kgqa.methods.text.rag:answer",
    topics=False,
    corpus=True,
    model=True,
    settings=(
        Setting("rag.retriever", str, "best", RETRIEVERS_HELP, choices=tuple(RETRIEVERS)),
        Setting(
            "rag.chunks",
            int,
            None,
            "how many passages the language model reads; if not set, as many as have about 4,000 tokens together",
            minimum=1,
            maximum=1000,
        ),
    ),
    presets={"as-published": {"rag.retriever": "dense", "llm.reask": 0}},
)
TOG3 = Method(
    "kgqa.methods.tog3.answering:answer",
    topics=False,
    corpus=True,
    model=True,
    stages=_STAGES,
)
GRAPHSEARCH = Method(
    "kgqa.methods.graphsearch.answering:answer",
    topics=False,
    corpus=True,
    model=True,
    settings=(
        Setting(
            "graphsearch.flow",
            str,
            "ours",
            "ours: one prompt for each sub-question over both channels, and one draft; published: the prompts of the "
            "paper for each channel",
            choices=("ours", "published"),
        ),
        Setting(
            "graphsearch.modules",
            str,
            "all",
            "which modules are used, for ablations: qd: sub-questions; cr: refined contexts; qg: grounding by earlier "
            "answers; ld: draft; all: verification and expansion, too",
            choices=("qd,cr", "qd,cr,qg", "qd,cr,qg,ld", "all"),
        ),
        Setting(
            "graphsearch.gate",
            str,
            "reject",
            "after which verdict on the draft more sub-questions are asked: reject (as in the paper), accept (as in "
            "its code), always, or never",
            choices=("reject", "accept", "always", "never"),
        ),
        Setting("graphsearch.votes", int, 1, "how many verdicts decide by majority", choices=(1, 3)),
        Setting(
            "graphsearch.channels",
            str,
            "both",
            "semantic: sub-questions find text; relational: their triples find facts; both",
            choices=("both", "semantic", "relational"),
        ),
        Setting(
            "graphsearch.retriever",
            str,
            "best",
            "how passages are found: rrf: by words and embeddings; ppr: by PageRank over the facts; path: as best, and "
            "along paths; hyper: as best, with hyperedges in place of triples; best: ppr if there are facts, else rrf",
            choices=("best", "rrf", "ppr", "path", "hyper"),
        ),
        Setting("graphsearch.top_k", int, 30, "pieces retrieved per sub-question and channel", minimum=1, maximum=1000),
        Setting(
            "graphsearch.semantic_from",
            str,
            "text",
            "what the semantic channel retrieves: text, graph, or all",
            choices=("text", "graph", "all"),
        ),
        Setting(
            "graphsearch.relational_from",
            str,
            "graph",
            "what the relational channel retrieves: text, graph, or all",
            choices=("text", "graph", "all"),
        ),
    ),
    presets={
        "as-published": {"graphsearch.flow": "published", "ask.on_exhausted": "best", "llm.reask": 0},
        "economy": {"graphsearch.modules": "qd,cr,qg,ld"},
    },
    stages=_STAGES,
)
