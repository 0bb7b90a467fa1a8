"""The methods that answer from text: what they need, their settings, presets and stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from kgqa.methods.registry import Method
from kgqa.settings.setting import Section, setting, variant

RETRIEVERS: Mapping[str, tuple[str, ...]] = {
    "best": (),
    "paths": (),
    "pagerank": ("pagerank",),
    "rrf": ("bm25", "dense"),
    "dense": ("dense",),
    "bm25": ("bm25",),
}
"""The channels of each retriever; empty for the best of the index (see `open_retriever`)."""
RETRIEVERS_HELP = (
    "how passages are found: bm25: by shared words; dense: by embeddings; rrf: by both; pagerank: by PageRank over the "
    "facts, from what both find; best: pagerank if there are at least 3 facts per passage, else rrf; paths: as best, "
    "and along paths from the entities of the question"
)
_STAGES: Mapping[str, Mapping[str, Any]] = {"plan": {}, "refine": {}}
"""plan: sub-questions; refine: the evidence is reduced to what matters; answers and verdicts belong to "decide"."""


BUILDS: Mapping[str, Mapping[str, Any]] = {
    "tog3": {
        "chunks": "1024/20",
        "community_size": 5,
        "corpus.extract": "triples",
        "corpus.limit": 2,
        "corpus.summaries": "model",
    },
    "graphsearch": {"chunks": "400/50", "corpus.extract": "triples"},
}
"""How the index of each publication is built (ToG-3: appendix A; GraphSearch: its code): options of a build."""


class RagSettings(Section, name="rag"):
    """Settings of the baseline over text."""

    retriever: str = setting("best", RETRIEVERS_HELP, choices=tuple(RETRIEVERS))
    chunks: int | None = setting(
        None,
        "how many passages the language model reads; if not set, as many as have about 4,000 tokens together",
        minimum=1,
        maximum=1000,
    )


# the baseline of text: ToG-3 and GraphSearch call it Naive RAG
RAG = Method(
    "kgqa.methods.text.rag:answer",
    summary="Passages of the corpus in one call (baseline)",
    topics=False,
    corpus=True,
    model=True,
    settings=RagSettings,
    presets={"as-published": {"rag.retriever": "dense", "llm.reask": 0}},
)


class Tog3Settings(Section, name="tog3"):
    """Settings of ToG-3."""

    rounds: int = setting(3, "maximum number of rounds", minimum=1, maximum=20)
    retrieve: int = setting(
        5, "how many pieces are found per query: of each kind; as published, of all kinds", minimum=1, maximum=100
    )
    retriever: str = setting("best", RETRIEVERS_HELP, choices=tuple(RETRIEVERS))
    kinds: str = setting(
        "chunk,statement,path",
        "kinds of evidence, separated by commas: chunk: passages; statement: facts; path: paths in the facts, from "
        "the entities of the question; community: summaries, for questions about the whole corpus",
        each_of=(
            "chunk",
            "statement",
            "path",
            "community",
        ),
    )
    keep: int = setting(
        5, "how many passages are kept per query; as published, pieces per round", minimum=1, maximum=100
    )
    subqueries: int = setting(2, "maximum number of sub-questions per round", minimum=1, maximum=10)
    context: int = setting(4000, "about how many tokens of evidence a prompt shows", minimum=100, maximum=1000000)
    judge: Literal["separate", "with-answer"] = variant(
        "separate", "how an answer is judged: by a prompt of its own, or by the prompt that answers"
    )
    evolve_query: Literal["on", "off"] = variant("on", "on: rounds search by sub-questions; off: by the question again")
    evolve_graph: Literal["on", "off"] = variant("on", "on: the language model edits the facts of the evidence")


# numbers as published: appendix A of the paper; ours take more evidence, and fewer calls
TOG3 = Method(
    "kgqa.methods.tog3.answering:answer",
    summary="Rounds of retrieval with an evidence graph",
    published="kgqa.methods.published.tog3:answer",
    topics=False,
    corpus=True,
    model=True,
    settings=Tog3Settings,
    presets={
        "as-published": {
            "tog3.retriever": "dense",
            "tog3.kinds": "chunk,statement,community",
            "tog3.keep": 2,
            "tog3.subqueries": 1,
            "llm.reask": 0,
        },
        "economy": {"tog3.judge": "with-answer", "tog3.evolve_graph": "off"},
        "without-query": {"tog3.evolve_query": "off"},
        "without-graph": {"tog3.evolve_graph": "off"},
    },
    stages=_STAGES,
)


class GraphSearchSettings(Section, name="graphsearch"):
    """Settings of GraphSearch."""

    channels: Literal["both", "semantic", "relational"] = setting(
        "both", "semantic: sub-questions find text; relational: their triples find facts; both"
    )
    retriever: Literal["best", "rrf", "ppr", "path", "hyper"] = setting(
        "best",
        "how passages are found: rrf: by words and embeddings; ppr: by PageRank over the facts; path: as best, and "
        "along paths; hyper: as best, with hyperedges in place of triples; best: ppr if there are at least 3 facts "
        "per passage, else rrf",
    )
    top_k: int = setting(30, "pieces retrieved per sub-question and channel", minimum=1, maximum=1000)
    modules: Literal["none", "qd,cr", "qd,cr,qg", "qd,cr,qg,ld", "all"] = variant(
        "all",
        "which modules are used: none: one search for the question and one answer, as GraphRAG systems do; qd: "
        "sub-questions; cr: refined contexts; qg: grounding by earlier answers; ld: draft; all: verification and "
        "expansion, too",
    )
    gate: Literal["reject", "accept"] = variant(
        "reject",
        "after which verdict on the draft more sub-questions are asked: reject (as in the paper), accept (as in its "
        "code)",
    )
    semantic_from: Literal["text", "graph", "all"] = variant("text", "what the semantic channel retrieves")
    relational_from: Literal["text", "graph", "all"] = variant("graph", "what the relational channel retrieves")

    def uses(self, module: str) -> bool:
        """Return whether a module is used: qd, cr, qg, ld, or all for those after them."""
        return self.modules == "all" or module in self.modules.split(",")


GRAPHSEARCH = Method(
    "kgqa.methods.graphsearch.answering:answer",
    summary="Sub-questions, answers and a verified draft",
    published="kgqa.methods.published.graphsearch:answer",
    published_note="As published, except that kgqa's own search takes the place of LightRAG.",
    topics=False,
    corpus=True,
    model=True,
    settings=GraphSearchSettings,
    presets={
        "as-published": {"llm.reask": 0},
        "economy": {"graphsearch.modules": "qd,cr,qg,ld"},
        "one-round": {"graphsearch.modules": "none"},
        "without-grounding": {"graphsearch.modules": "qd,cr"},
        "without-draft": {"graphsearch.modules": "qd,cr,qg"},
        "without-verification": {"graphsearch.modules": "qd,cr,qg,ld"},
        "as-coded": {"graphsearch.gate": "accept"},
    },
    stages=_STAGES,
)
