"""EvoGraph-R1: its settings, presets and stages."""

from __future__ import annotations

from typing import Literal

from kgqa.methods.registry import Method
from kgqa.settings.setting import Section, setting, variant


class EvographSettings(Section, name="evograph"):
    """Settings of EvoGraph-R1."""

    turns: int = setting(10, "maximum number of turns", minimum=1, maximum=50)
    results: int = setting(5, "how many results a search shows", minimum=1, maximum=50)
    tools: str = setting(
        "graph_search,web_search,insert,update,delete",
        "the tools that the language model may call, separated by commas",
        each_of=("graph_search", "web_search", "insert", "update", "delete"),
    )
    web: str = setting(
        "none",
        "what web_search searches: none; replay:FILE: recorded results; corpus:FOLDER: another corpus; or "
        "record:FILE:NAME, NAME: a search of another package, recorded or not",
        trusted=True,
    )
    domains: str = setting(
        "",
        "hosts whose pages are trusted more than other pages, separated by commas, such as example.org",
        trusted=True,
    )
    images: str | None = setting(
        None, "folder of the images that the questions of a data set name, for kgqa eval run", metavar="FOLDER"
    )
    commit: Literal["proposed", "auto", "off"] = setting(
        "proposed",
        "what becomes of edits that pass the gates: proposed: they wait for kgqa edits review; auto: they are "
        "committed; off: they end with the question",
    )
    pieces: Literal["auto", "hyperedge", "chunk", "both"] = variant(
        "auto",
        "what graph_search finds: hyperedges, passages, or both; auto: hyperedges, and passages, too, if the corpus "
        "has more passages than hyperedges",
    )
    first_search: Literal["model", "question"] = variant(
        "model", "who makes the first search: the language model; or it is for the question, without a call"
    )
    merge: Literal["both", "hold"] = variant(
        "both", "whether committed edits in conflict with those of another question live, or wait for kgqa edits review"
    )
    persist: Literal["question", "run"] = variant(
        "question",
        "whether each question of a batch starts from the same graph, or from that of the question before it",
    )
    tokens: int | None = variant(
        None, "about how many tokens the replies and results of a session have together; then it ends", minimum=1
    )
    extract: Literal["names", "model"] = variant(
        "names", "how the participants of a new hyperedge are found: by their names, or by a call of the language model"
    )


# numbers as published: section C and table 1 of the supplement of EvoGraph-R1 (Lin et al. 2026); 10 calls and an answer
EVOGRAPH = Method(
    "kgqa.methods.evograph.answering:answer",
    published="kgqa.methods.published.evograph:answer",
    published_note="As published, except that the trained weights are not available, and images are not indexed.",
    summary="Searches and edits of the corpus, in turns",
    topics=False,
    corpus=True,
    model=True,
    settings=EvographSettings,
    images=True,
    in_order={"evograph.persist": "run"},
    presets={
        "as-published": {
            "evograph.turns": 11,
            "evograph.tokens": 4096,
            "evograph.commit": "auto",
            "evograph.persist": "run",
            "llm.reask": 0,
        },
        "economy": {"evograph.turns": 4, "evograph.first_search": "question"},
        "one-graph": {"evograph.persist": "run", "evograph.commit": "auto"},
        "hold": {"evograph.merge": "hold"},
        "extract": {"evograph.extract": "model"},
        "passages": {"evograph.pieces": "chunk"},
        "hyperedges": {"evograph.pieces": "hyperedge"},
    },
    stages={"act": {"max_tokens": "evograph.tokens"}, "extract": {}},
)
