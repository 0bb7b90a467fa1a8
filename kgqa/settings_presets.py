"""The settings of methods and presets."""

from __future__ import annotations

from typing import Any

_AS_PUBLISHED = {
    "explore.depth": 3,
    "explore.combine": "separate",
    "rank.bm25": "okapi",
    "rank.lexical_weight": 1.0,
    "rank.pool": 30,
    "rank.chunk": 10,
    "rank.wording": "published",
    "llm.compare": "reasons",
    "llm.reask": 0,
}
_ECONOMY = {"rank.pool": 20, "rank.chunk": 20, "llm.compare": "choice"}
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "top": {"ours": {}, "as-published": _AS_PUBLISHED, "economy": _ECONOMY},
    # the two systems of the thesis (table 4.1)
    "top-1": {
        "ours": {
            "explore.shape": "path+entity",
            "explore.beam": 3,
            "llm.mask": "none",
            "rank.prefilter": "rrf",
            "rank.lexical_weight": 1.0,
            "rank.tournament": "chunked",
            "explore.stop": "depth",
            "ask.compose": "composed",
        },
        "as-published": {**_AS_PUBLISHED, "explore.mask": "none"},
        "economy": _ECONOMY,
    },
    "top-2": {
        "ours": {
            "explore.shape": "path",
            "explore.beam": 3,
            "rank.prefilter": "sbert",
            "rank.tournament": "pairwise",
            "explore.stop": "accepted",
            "ask.compose": "ends",
        },
        "as-published": {**_AS_PUBLISHED, "explore.mask": "id"},
        "economy": {**_ECONOMY, "rank.tournament": "knockout"},
    },
    # width 3, depth 3; temperature 0.4 while exploring, 0 while reasoning (Sun et al. 2024, section 3.1)
    "tog": {
        "ours": {
            "explore.beam": 3,
            "explore.depth": 3,
            "llm.mask": "none",
        },
        "as-published": {"tog.parse": "faithful", "rank.wording": "published", "llm.reask": 0},
        "economy": {},
    },
}
"""Settings of each method (`ours`) and its presets. They override only defaults; a preset overrides the method."""
