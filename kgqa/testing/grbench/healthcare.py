"""Compounds, diseases, genes and more, as in the graph made of Hetionet."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from kgqa.testing.grbench.names import Names, some
from kgqa.testing.grbench.templates import Picked, Template, along, retrieve

_BOTH_WAYS = (
    "Compound-treats-Disease",
    "Compound-causes-Side Effect",
    "Compound-resembles-Compound",
    "Disease-associates-Gene",
    "Disease-localizes-Anatomy",
    "Disease-presents-Symptom",
    "Gene-interacts-Gene",
    "Gene-participates-Biological Process",
    "Pharmacologic Class-includes-Compound",
)
ONE_WAY = "Gene-regulates-Gene"
"""Stored at the gene that regulates, and at no other."""


def _ends(link: str) -> tuple[str, str]:
    first, _, second = link.split("-", 2)
    return first.replace(" ", "_"), second.replace(" ", "_")


PAIRS = tuple(((_ends(link)[0], link), (_ends(link)[1], link)) for link in _BOTH_WAYS)
_EFFECTS = [
    "Dizziness",
    "Hiccups",
    "Insomnia",
    "Nausea",
    "Numbness",
    "Shivering",
    "Sneezing",
    "Thirst",
    "Tremor",
    "Blushing",
    "Cramps",
    "Hoarseness",
]
_SYMPTOMS = [
    "Chills",
    "Earache",
    "Rash",
    "Stammer",
    "Cough",
    "Fever",
    "Fatigue",
    "Headache",
    "Itching",
    "Swelling",
    "Weakness",
    "Pallor",
    "Stiffness",
    "Wheezing",
]
_ANATOMY = ["heart", "liver", "lung", "kidney", "spleen", "skin", "retina", "thyroid", "pancreas", "tongue"]
_PROCESSES = ["repair", "folding", "transport", "signalling", "division", "storage"]

TEMPLATES = (
    Template("Which compounds treat {0}?", ("Disease",), along("Compound-treats-Disease"), "easy"),
    Template("Which symptoms does {0} present?", ("Disease",), along("Disease-presents-Symptom"), "easy"),
    Template("Which genes does the gene {0} regulate?", ("Gene",), along(ONE_WAY), "easy"),
    Template("Which genes interact with the gene {0}?", ("Gene",), along("Gene-interacts-Gene"), "easy"),
    Template(
        "How many side effects does the compound {0} cause?",
        ("Compound",),
        ("Degree", retrieve(), "Compound-causes-Side Effect"),
        "easy",
    ),
    Template("On which chromosome is the gene {0}?", ("Gene",), ("Feature", retrieve(), "chromosome"), "easy"),
    Template(
        "Which compounds treat {0} and cause the side effect {1}?",
        ("Disease", "Side_Effect"),
        (
            "Intersect",
            along("Compound-treats-Disease"),
            along("Compound-causes-Side Effect", start=retrieve(1)),
        ),
        "medium",
    ),
    Template(
        "Which symptoms do {0} and {1} have in common?",
        ("Disease", "Disease"),
        ("Intersect", along("Disease-presents-Symptom"), along("Disease-presents-Symptom", start=retrieve(1))),
        "medium",
    ),
    Template(
        "Which pharmacologic classes include compounds that treat {0}?",
        ("Disease",),
        along("Compound-treats-Disease", "Pharmacologic Class-includes-Compound"),
        "medium",
    ),
    Template(
        "Which genes that {0} regulates are on a chromosome with a number above 8?",
        ("Gene",),
        along(ONE_WAY),
        "medium",
        picked=Picked("chromosome", "above", 8),
    ),
    Template(
        "In how many different biological processes do the genes participate that are associated with {0}?",
        ("Disease",),
        ("Count", along("Disease-associates-Gene", "Gene-participates-Biological Process")),
        "medium",
    ),
    Template(
        "In which part of the body are the most diseases located that present the symptom {0}?",
        ("Symptom",),
        ("Most", along("Disease-presents-Symptom"), "Disease-localizes-Anatomy"),
        "hard",
    ),
)


def make(rng: random.Random) -> dict[str, Any]:
    """Return the content of a graph.json.

    Links have the same name at both ends, except that `Gene-regulates-Gene` stands only at the gene that regulates;
    some genes regulate each other. Names of links contain spaces, and names of sections `_`. A repeated edge.
    """
    names = Names(rng)
    nodes: dict[str, dict[str, Any]] = {}

    def add(type_: str, count: int, ident: str, name: Callable[[int], str], **features: Callable[[], Any]) -> None:
        nodes[type_] = {
            ident.format(number): {
                "features": {
                    "name": name(number),
                    **{key: value() for key, value in features.items()},
                    "node_type": type_,
                },
                "neighbors": defaultdict(list),
            }
            for number in range(count)
        }

    add("Anatomy", len(_ANATOMY), "UBERON:{:07}", _ANATOMY.__getitem__)
    add("Biological_Process", 24, "GO:{:07}", lambda number: f"{names.place().lower()} {rng.choice(_PROCESSES)}")
    add("Compound", 60, "DB{:05}", lambda number: f"{names.place()}ol", inchikey=lambda: f"KEY-{rng.randint(100, 999)}")
    add("Disease", 40, "DOID:{}", lambda number: f"{names.place()} disease")
    add("Gene", 90, "{}", lambda number: _symbol(names, rng), chromosome=lambda: str(rng.randint(1, 22)))
    add("Pharmacologic_Class", 14, "N{:010}", lambda number: f"{names.place()} Inhibitors")
    add("Side_Effect", len(_EFFECTS), "C{:07}", _EFFECTS.__getitem__)
    add("Symptom", len(_SYMPTOMS), "D{:06}", _SYMPTOMS.__getitem__)
    counts = {
        "Compound-causes-Side Effect": (0, 5),
        "Disease-localizes-Anatomy": (1, 3),
        "Disease-presents-Symptom": (1, 4),
        ONE_WAY: (0, 4),
    }
    for link in (*_BOTH_WAYS, ONE_WAY):
        _connect(nodes, link, rng, *counts.get(link, (0, 3)))
    genes = list(nodes["Gene"])
    for first, second in zip(genes[::9], genes[4::9]):
        for here, there in ((first, second), (second, first)):
            listed = nodes["Gene"][here]["neighbors"][ONE_WAY]
            if there not in listed:
                listed.append(there)
    nodes["Gene"][genes[0]]["neighbors"][ONE_WAY].append(genes[4])
    return {f"{type_}_nodes": each for type_, each in nodes.items()}


def _connect(nodes: dict[str, dict[str, Any]], link: str, rng: random.Random, least: int, most: int) -> None:
    source, target = _ends(link)
    targets: Sequence[str] = list(nodes[target])
    for ident, node in nodes[source].items():
        for each in some(rng, targets, least, most):
            if each == ident or each in node["neighbors"][link]:
                continue
            node["neighbors"][link].append(each)
            if link != ONE_WAY:
                nodes[target][each]["neighbors"][link].append(ident)


def _symbol(names: Names, rng: random.Random) -> str:
    return names.new(lambda: f"{names.word()[:3].upper()}{rng.choice('ABCDEFGH')}{rng.randint(1, 9)}")
