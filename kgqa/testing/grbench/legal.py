"""Opinions, clusters of opinions, dockets and courts, as in the graph made of CourtListener."""

from __future__ import annotations

import math
import random
from typing import Any

from kgqa.testing.grbench.json_graph import listed_by
from kgqa.testing.grbench.names import Names, some
from kgqa.testing.grbench.templates import Template, along, retrieve

PAIRS = (
    (("opinion", "opinion_cluster"), ("opinion_cluster", "opinion")),
    (("opinion", "reference"), ("opinion", "cited_by")),
    (("opinion_cluster", "docket"), ("docket", "opinion_cluster")),
    (("docket", "court"), ("court", "docket")),
)
_WHO = (
    "A ferryman",
    "A tenant",
    "A baker",
    "A shipowner",
    "A teacher",
    "A widow",
    "A carpenter",
    "An editor",
    "A miller",
)
_WHAT = ("sold a boat", "kept a deposit", "closed a road", "broke a lease", "lost a cargo", "burned a fence")
_THEN = ("without notice", "after a storm", "against advice", "under a false name", "before the hearing")

TEMPLATES = (
    Template("To which court does the docket with the PACER case id {0} belong?", ("docket",), along("court"), "easy"),
    Template("How many dockets does the {0} have?", ("court",), ("Degree", retrieve(), "docket"), "easy"),
    Template("When did the {0} begin its work?", ("court",), ("Feature", retrieve(), "start_date"), "easy"),
    Template(
        'Who were the judges of the case with the syllabus "{0}"?',
        ("opinion_cluster",),
        ("Feature", retrieve(), "judges"),
        "easy",
    ),
    Template(
        'What is the PACER case id of the case with the syllabus "{0}"?', ("opinion_cluster",), along("docket"), "easy"
    ),
    Template(
        'How many opinions does the case with the syllabus "{0}" have?',
        ("opinion_cluster",),
        ("Degree", retrieve(), "opinion"),
        "easy",
    ),
    Template(
        "What are the syllabi of the cases on the docket with the PACER case id {0}?",
        ("docket",),
        along("opinion_cluster"),
        "easy",
    ),
    Template(
        'Which court decided the case with the syllabus "{0}"?',
        ("opinion_cluster",),
        along("docket", "court"),
        "medium",
    ),
    Template(
        'What are the syllabi of the cases whose opinions are cited by the opinions of the case "{0}"?',
        ("opinion_cluster",),
        along("opinion", "reference", "opinion_cluster"),
        "medium",
    ),
    Template(
        'How many opinions cite the opinions of the case with the syllabus "{0}"?',
        ("opinion_cluster",),
        ("Count", along("opinion", "cited_by")),
        "medium",
    ),
    Template(
        'What is the PACER case id of the docket that has both the case "{0}" and the case "{1}"?',
        ("opinion_cluster", "opinion_cluster"),
        ("Intersect", along("docket"), along("docket", start=retrieve(1))),
        "medium",
    ),
    Template(
        "Which court began its work earlier, the {0} or the {1}?",
        ("court", "court"),
        retrieve(),
        "hard",
        compared="start_date",
    ),
)


def make(rng: random.Random) -> dict[str, Any]:
    """Return the content of a graph.json.

    Courts list dockets without the prefix `d-`; features are NaN; opinions are longer than labels; some citations stand
    at one end only; clusters and dockets that do not exist.
    """
    names = Names(rng)
    opinions, clusters = [f"op-{number}" for number in range(150)], [f"opc-{number}" for number in range(90)]
    dockets, courts = [f"d-{number}" for number in range(60)], [f"{names.place().lower()}ct" for _ in range(16)]
    opinion_nodes: dict[str, Any] = {}
    for place, opinion in enumerate(opinions):
        text = f"Opinion {place}. The court of {names.word()} hears the case.\n" * (1 if place % 3 else 12)
        opinion_nodes[opinion] = {
            "features": {"plain_text": text if place % 10 else ""},
            "neighbors": {
                "opinion_cluster": [rng.choice(clusters) if place % 20 else "opc-7777"],
                "reference": some(rng, opinions[:place], 0, 4),
                "cited_by": [],
            },
        }
    for place, (opinion, node) in enumerate(opinion_nodes.items()):
        for cited in node["neighbors"]["reference"] if place % 6 else ():
            opinion_nodes[cited]["neighbors"]["cited_by"].append(opinion)
    opinion_nodes[opinions[0]]["neighbors"]["cited_by"].append(opinions[1])
    by_cluster = listed_by(opinion_nodes, "opinion_cluster")
    cluster_nodes = {
        cluster: {
            "features": {
                "syllabus": names.filled("{0} {1} {2}.", _WHO, _WHAT, _THEN),
                "judges": names.person() if place % 5 else math.nan,
                "case_name": f"{names.word()} v. {names.word()}",
                "attorneys": names.person() if place % 4 else "",
            },
            "neighbors": {
                "opinion": by_cluster.get(cluster, []),
                "docket": [rng.choice(dockets) if place % 15 else "d-8888"],
            },
        }
        for place, cluster in enumerate(clusters)
    }
    by_docket = listed_by(cluster_nodes, "docket")
    docket_nodes = {
        docket: {
            "features": {"pacer_case_id": str(310_000 + 7 * place) if place % 12 else math.nan},
            "neighbors": {"opinion_cluster": by_docket.get(docket, []), "court": [rng.choice(courts)]},
        }
        for place, docket in enumerate(dockets)
    }
    by_court = listed_by(docket_nodes, "court")
    court_nodes = {
        court: {
            "features": {
                "full_name": f"Court of {court[:-2].title()}",
                "start_date": f"{rng.randint(1789, 1990)}-{rng.randint(1, 12):02}-01",
                "end_date": math.nan,
                "citation_string": f"{court[:3].title()}. Ct.",
            },
            "neighbors": {"docket": [each.removeprefix("d-") for each in by_court.get(court, [])]},
        }
        for court in courts
    }
    return {
        "opinion_nodes": opinion_nodes,
        "opinion_cluster_nodes": cluster_nodes,
        "docket_nodes": docket_nodes,
        "court_nodes": court_nodes,
    }
