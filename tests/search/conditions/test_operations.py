"""The operation that a question asks for, found on ranked paths."""

from __future__ import annotations

import pytest

from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.model.conditions import Comparison, Condition, year
from kgqa.search.conditions.beside import Beside
from kgqa.search.conditions.operations import Operations, Undecidable
from kgqa.search.conditions.requests import read_request
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
    operations = Operations(request, (candidates[0].path.topic,), StubBeside(graph, cosine))
    try:
        best = operations.found([(candidate, 0.9) for candidate in candidates])
    except Undecidable:
        return None
    return best and best[0]


def test_path_without_ends_is_not_counted():
    graph = graph_of("ann film one", 'one since "1990"', "one award prize")
    nowhere = to("ann", "film", "award", "award", leads_to="award")
    assert found(graph, "How many awards did Ann win?", nowhere) is None
    late = Condition(1, (Step(E + "since"),), Comparison(">", year(1995)))
    film = to("ann", "film", leads_to="film", conditions=(late,))
    assert found(graph, "How many films did Ann make after 1995?", film).operation.kind == "count"


CHILDREN = ("father children ann", "mother children ann", "father children bob")


@pytest.mark.parametrize("types", [(), ("ann a person", "bob a person", "father a person", "mother a person")])
def test_relation_followed_backwards_does_not_lead_to_its_own_noun(types):
    graph = graph_of(*CHILDREN, *types)
    parents = to("ann", "^children", leads_to="children")
    siblings = to("ann", "^children", "children", leads_to="children")
    assert found(graph, "How many children does Ann have?", parents, siblings) is None
    assert found(graph, "How many children does Father have?", to("father", "children")) is not None


@pytest.mark.parametrize(
    ("noun", "relation", "cosine", "is_same"),
    [
        ("brothers", "sister", 0.77, False),
        ("sons", "daughter", 0.95, False),
        ("wives", "wife", 0.0, True),
        ("wives", "spouse", 0.79, True),
        ("children", "child", 0.0, True),
        ("movies", "film", 0.84, True),
    ],
)
def test_noun_of_relation(noun, relation, cosine, is_same):
    graph = graph_of(f"ann {relation} bex", f"ann {relation} cor")
    best = found(graph, f"How many {noun} does Ann have?", to("ann", relation, leads_to=relation), cosine=cosine)
    assert (best is not None) == is_same


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ("Who was the first chancellor of Arland?", None),
        ("Who was the oldest chancellor of Arland?", "date_of_birth"),
    ],
)
@pytest.mark.parametrize("other", ["date_of_death", "start_of_career", "marriage_date"])
def test_personal_dates_do_not_order_holders(question, field, other):
    graph = graph_of(
        "arland chancellor ann", "arland chancellor bex",
        'ann date_of_birth "1950-01-01"', 'bex date_of_birth "1930-01-01"',
        f'ann {other} "1990-01-01"', f'bex {other} "1980-01-01"',
    )  # fmt: skip
    best = found(graph, question, to("arland", "chancellor"))
    assert (best and best.operation.steps) == (field and (Step(E + field),))
