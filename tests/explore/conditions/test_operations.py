"""The operation that a question asks for, found on ranked paths."""

from __future__ import annotations

import pytest

from kgqa.conditions import Comparison, Condition, year
from kgqa.explore.conditions.beside import Beside
from kgqa.explore.conditions.operations import Operations
from kgqa.explore.conditions.requests import read_request
from kgqa.model import Candidate, Entity, RelationPath, Step
from tests.memory_graph import memory_graph

E = "http://e/"
A, LABEL = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://www.w3.org/2000/01/rdf-schema#label"


class StubBeside(Beside):
    """Lookups with given cosines, in place of an embedding model."""

    def __init__(self, graph, cosine=0.0):
        super().__init__(graph, None)
        self._cosine = cosine

    def similarity(self, text, others):
        return [self._cosine for _ in others]


def graph_of(*triples: str):
    """Return a graph over triples "s p o"; objects in quotes are literals, and `a` and `label` are the usual ones."""
    lines = []
    for triple in triples:
        s, p, o = triple.split(" ", 2)
        predicate = {"a": A, "label": LABEL}.get(p, E + p)
        lines.append(f"<{E}{s}> <{predicate}> {o} ." if o.startswith('"') else f"<{E}{s}> <{predicate}> <{E}{o}> .")
    return memory_graph(lines, schema="rdfs")


def to(topic: str, *steps: str, words: str = "", **parts) -> Candidate:
    """Return the path from a topic along relations, each backwards if it begins with ^."""
    parsed = tuple(Step(E + step.removeprefix("^"), "in" if step.startswith("^") else "out") for step in steps)
    return Candidate(RelationPath(Entity(E + topic), parsed), words, hops=(words,) * len(steps), **parts)


def found(graph, question: str, *candidates: Candidate, cosine: float = 0.0):
    """Return the path with its operation that is found for a question among paths with a score of 0.9."""
    request = read_request(question)
    operations = Operations(request, [candidates[0].path.topic], StubBeside(graph, cosine))
    best = operations.found([(candidate, 0.9) for candidate in candidates])
    return best and best[0]


def test_path_without_ends_is_not_counted():
    graph = graph_of("ann film one", "one since \"1990\"", "one award prize")
    nowhere = to("ann", "film", "award", "award", leads_to="award")
    assert found(graph, "How many awards did Ann win?", nowhere) is None
    late = Condition(1, (Step(E + "since"),), Comparison(">", year(1995)))
    film = to("ann", "film", leads_to="film", conditions=(late,))
    assert found(graph, "How many films did Ann make after 1995?", film).operation.kind == "count"
