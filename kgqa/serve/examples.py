"""Example questions and an example query for the page."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from importlib.resources import files
from itertools import islice

from kgqa.errors import InvalidTerm, StoreError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.text import render
from kgqa.graph.query.tokens import shorten_iris
from kgqa.model import Entity
from kgqa.text.words import clean, local_name, split_words

DEMO_EXAMPLES = ("demo-001", "demo-002", "demo-004", "demo-006", "demo-012", "demo-020")
"""Ids of questions about the demo graph."""
MAX_EXAMPLES = 5
MAX_RELATIONS = 20
MAX_EDGES = 20
MAX_NAME = 40
ROWS = 10
_NOT_FIRST = frozenset(("are", "has", "is", "member", "part", "same", "see", "sub", "type", "was"))
_NOT_INSIDE = frozenset(("as", "at", "by", "for", "from", "here", "in", "on", "the", "there", "to", "with"))
_NOT_LAST = """
act adjoin appear attend be became begin begun border born built came class come contain create describe did direct do
done drawn edit employ fought found gave given go has have held include is know known lead led left like live locate
lost love made marry met notable of own produce publish sang see seen serve shot sold speak spoken study sung taken
taught teach took type use visit was went win won worn write written wrote
"""
_NO_NOUN = re.compile(
    r".|.*ed|.*ing|.*ly|.*(?:able|ful|ible|ous)|.*(?<![isu])s|children|people|has.+|is[a-z]?"
    r"|.*(?:ed|en|orn|own)(?:as|at|for|from|in|on|to)|.+by|.+(?<!ro)of"
)
"""Words that are verbs, adverbs, adjectives or plurals, and words joined as in containedby."""


def demo_examples() -> list[str]:
    """Return questions about the demo graph."""
    lines = files("kgqa.demo").joinpath("questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = {each["id"]: str(each["question"]) for each in map(json.loads, lines)}
    return [questions[id] for id in DEMO_EXAMPLES if id in questions]


def graph_examples(graph: KnowledgeGraph) -> list[str]:
    """Return questions about any graph: "What is the country of Alta Verapaz?", each with another relation and entity.

    Only relations whose name is a noun make a sentence; a relation called "directed by" is left out.
    """
    found: dict[Entity, str] = {}
    with suppress(StoreError):
        nouns = ((iri, words) for iri in graph.tables.relations if (words := _noun(graph, iri)))
        for iri, words in islice(nouns, MAX_RELATIONS):
            edges = graph.paths.pairs(Entity(iri), limit=MAX_EDGES)
            labels = graph.labels({each for edge in edges for each in edge if isinstance(each, Entity)})
            for subject, value in edges:
                name = clean(labels.get(subject, ""))
                reads = isinstance(value, Entity) and value in labels
                if reads and subject not in found and 0 < len(name) <= MAX_NAME:
                    found[subject] = f"What is the {words} of {name}?"
                    break
            if len(found) == MAX_EXAMPLES:
                break
    return list(found.values())


def example_query(graph: KnowledgeGraph) -> str:
    """Return a query for some pairs of a frequent relation; "" for a graph without relations."""
    hidden = {*graph.schema.label, *graph.schema.alias, *graph.schema.types}
    relations = [iri for iri in graph.tables.relations if iri not in hidden and not graph.tables.is_noise(iri)]
    named = next((iri for iri in relations[:MAX_RELATIONS] if _noun(graph, iri)), None)
    for iri in filter(None, [named, *relations, *graph.tables.relations]):
        with suppress(InvalidTerm):
            query = render("relation_examples", relation=Entity(iri), view=(), limit=ROWS)
            return shorten_iris(query, graph.schema.prefixes).strip()
    return ""


def _noun(graph: KnowledgeGraph, iri: str) -> str:
    """Return the name of a relation if it reads like a noun in the singular, as far as simple rules tell; else ""."""
    if graph.tables.is_noise(iri) or iri in (*graph.schema.label, *graph.schema.alias, *graph.schema.types):
        return ""
    words = clean(graph.tables.relation_labels.get(iri) or split_words(local_name(iri).rsplit(".", 1)[-1]))
    parts = words.lower().split()
    if not (0 < len(parts) <= 3 and words.isprintable() and all(part.isalpha() for part in parts)):
        return ""
    wrong = parts[0] in _NOT_FIRST or parts[-1] in _NOT_LAST.split() or not _NOT_INSIDE.isdisjoint(parts)
    wrong = wrong or any(part != "of" and _NO_NOUN.fullmatch(part) for part in parts)
    return "" if wrong else words
