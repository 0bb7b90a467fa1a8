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
    stages=_STAGES,
)
