"""Papers, authors and venues, as in the graphs made of MAPLE and DBLP."""

from __future__ import annotations

import random
from typing import Any

from kgqa.testing.grbench.json_graph import listed_by
from kgqa.testing.grbench.names import Names, some
from kgqa.testing.grbench.templates import Picked, Template, along, retrieve

PAIRS = (
    (("paper", "author"), ("author", "paper")),
    (("paper", "venue"), ("venue", "paper")),
    (("paper", "reference"), ("paper", "cited_by")),
)
_WHAT = ["Sorting", "Counting", "Mapping", "Sharing", "Storing", "Ranking", "Hashing", "Drawing", "Packing", "Tracing"]
_OF = ("Trees", "Tides", "Glaciers", "Bridges", "Orchards", "Harbours", "Signals", "Crystals", "Networks", "Maps")
_HOW = ("in Linear Time", "by Sampling", "with Little Memory", "under Noise", "on Small Machines, Revisited")
_KEYWORDS = ("algorithms", "storage", "climate", "graphs", "sampling", "geometry")

TEMPLATES = (
    Template('Who wrote the paper "{0}"?', ("paper",), along("author"), "easy"),
    Template('At which venue was the paper "{0}" published?', ("paper",), along("venue"), "easy"),
    Template('In which year was the paper "{0}" published?', ("paper",), ("Feature", retrieve(), "year"), "easy"),
    Template("How many papers did {0} write?", ("author",), ("Degree", retrieve(), "paper"), "easy"),
    Template('Which papers cite "{0}"?', ("paper",), along("cited_by"), "easy"),
    Template(
        "Who wrote a paper together with {0}?", ("author",), ("Without", along("paper", "author"), retrieve()), "medium"
    ),
    Template(
        "Which papers did {0} and {1} write together?",
        ("author", "author"),
        ("Intersect", along("paper"), along("paper", start=retrieve(1))),
        "medium",
    ),
    Template(
        "Which papers by {0} appeared at {1}?",
        ("author", "venue"),
        ("Intersect", along("paper"), along("paper", start=retrieve(1))),
        "medium",
    ),
    Template(
        "How many different people wrote the papers that were published at {0}?",
        ("venue",),
        ("Count", along("paper", "author")),
        "medium",
    ),
    Template(
        "Which papers by {0} were published after 2010?",
        ("author",),
        along("paper"),
        "medium",
        picked=Picked("year", "above", 2010),
    ),
    Template(
        "What is the earliest paper by {0}?", ("author",), along("paper"), "medium", picked=Picked("year", "least")
    ),
    Template("At which venue did {0} publish the most papers?", ("author",), ("Most", along("paper"), "venue"), "hard"),
)


def make(rng: random.Random) -> dict[str, Any]:
    """Return the content of a graph.json.

    References to papers that do not exist, repeated references, `cited_by` lists that lack some papers, empty
    abstracts, years as numbers and keywords as lists.
    """
    names = Names(rng)
    papers = [f"p{number:03}" for number in range(160)]
    authors, venues = [f"a{number:02}" for number in range(90)], [f"pub_{number}" for number in range(16)]
    paper_nodes: dict[str, Any] = {}
    for place, paper in enumerate(papers):
        references = some(rng, papers[:place], 0, 4) + ([f"gone{place}"] if place % 3 == 0 else [])
        if place % 10 == 9 and references:
            references.append(references[0])
        paper_nodes[paper] = {
            "features": {
                "title": names.filled("{0} {1} {2}", _WHAT, _OF, _HOW),
                "abstract": "" if place % 4 == 0 else f'We study {rng.choice(_OF).lower()}.\nIt is "hard".',
                "keywords": some(rng, _KEYWORDS, 0, 3),
                "lang": "en",
                "year": rng.randint(1995, 2023),
            },
            "neighbors": {
                "author": some(rng, authors, 1, 3),
                "venue": [rng.choice(venues)] if place % 9 else [],
                "reference": references,
                "cited_by": [],
            },
        }
    for place, (paper, node) in enumerate(paper_nodes.items()):
        for cited in dict.fromkeys(node["neighbors"]["reference"]):
            if cited in paper_nodes and place % 7:  # the rest is known from one end only
                paper_nodes[cited]["neighbors"]["cited_by"].append(paper)
    listed = {link: listed_by(paper_nodes, link) for link in ("author", "venue")}
    # a paper that only its author lists
    listed["author"][authors[0]].append(papers[5])
    return {
        "paper_nodes": paper_nodes,
        "author_nodes": {
            each: {
                "features": {"name": names.person(), "organization": f"University of {names.word()}"},
                "neighbors": {"paper": listed["author"].get(each, [])},
            }
            for each in authors
        },
        "venue_nodes": {
            each: {
                "features": {"name": f"Conference of {names.place()}"},
                "neighbors": {"paper": listed["venue"].get(each, [])},
            }
            for each in venues
        },
    }
