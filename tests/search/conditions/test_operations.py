"""The operation that a question asks for, found on ranked paths."""

from __future__ import annotations

import pytest

from kgqa.model import Candidate, Literal, RelationPath, Step
from kgqa.model.conditions import Comparison, Condition, year
from kgqa.search.conditions.beside import Beside
from kgqa.search.conditions.operations import Operations, Undecidable
from kgqa.search.conditions.requests import read_request

from ...ferries import FERRIES, V, thing
from ...memory_graph import turtle_graph
from ..conftest import NS, path


class StubBeside(Beside):
    """Lookups with given cosines, in place of an embedding model."""

    def __init__(self, graph, cosine=0.0):
        super().__init__(graph, None)
        self._cosine = cosine

    def similarity(self, text, others):
        return [self._cosine for _ in others]


def to(topic: str, *steps: str, **parts) -> Candidate:
    return Candidate(path(topic, *steps), hops=("",) * len(steps), **parts)


def found(graph, question: str, *candidates: Candidate, cosine: float = 0.0):
    """Return the path with its operation that is found for a question among paths with a score of 0.9."""
    request = read_request(question)
    operations = Operations(request, (candidates[0].path.topic,), StubBeside(graph, cosine), words=("any",))
    try:
        best = operations.found([(candidate, 0.9) for candidate in candidates])
    except Undecidable:
        return None
    return best and best[0]


def test_path_without_ends_is_not_counted(small):
    graph = small("ann film one", 'one since "1990"', "one award prize")
    nowhere = to("ann", "film", "award", "award", leads_to="award")
    assert found(graph, "How many awards did Ann win?", nowhere) is None
    late = Condition(1, (Step(NS + "since"),), Comparison(">", year(1995)))
    film = to("ann", "film", leads_to="film", conditions=(late,))
    assert found(graph, "How many films did Ann make after 1995?", film).operation.kind == "count"


@pytest.mark.parametrize("typed", ["", "ann bob father mother"])
def test_relation_followed_backwards_does_not_lead_to_its_own_noun(small, typed):
    types = [f"{each} type.object.type person" for each in typed.split()]
    graph = small("father children ann", "mother children ann", "father children bob", *types)
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
def test_noun_of_relation(noun, relation, cosine, is_same, small):
    graph = small(f"ann {relation} bex", f"ann {relation} cor")
    best = found(graph, f"How many {noun} does Ann have?", to("ann", relation, leads_to=relation), cosine=cosine)
    assert (best is not None) == is_same


@pytest.mark.parametrize(
    ("question", "other", "field"),
    [
        ("Who was the first chancellor of Arland?", "start_of_career", None),
        ("Who was the first chancellor of Arland?", "marriage_date", None),
        ("Who was the oldest chancellor of Arland?", "date_of_death", "date_of_birth"),
    ],
)
def test_personal_dates_do_not_order_holders(question, other, field, small):
    graph = small(
        "arland chancellor ann", "arland chancellor bex",
        'ann date_of_birth "1950-01-01"', 'bex date_of_birth "1930-01-01"',
        f'ann {other} "1990-01-01"', f'bex {other} "1980-01-01"',
    )  # fmt: skip
    best = found(graph, question, to("arland", "chancellor"))
    assert (best and best.operation.steps) == (field and (Step(NS + field),))


def test_yes_no_about_a_relation_to_true_or_false():
    graph, request = turtle_graph(FERRIES), read_request("Does the Petra carry trucks?")
    operations = Operations(request, (thing("petra"),), StubBeside(graph), words=("carry", "trucks"))
    (asked, _) = operations.found([])
    assert asked.path.steps == (Step(V + "carriesTrucks"),) and asked.operation.kind == "exists"
    assert asked.conditions == (Condition(1, (), Comparison("=", Literal("true"))),)


@pytest.mark.parametrize(("noun", "is_counted"), [("ferries", True), ("ferries built", True), ("persons", False)])
def test_ends_of_the_asked_class_are_counted_whatever_the_relation_is_called(noun, is_counted):
    ends = Candidate(RelationPath(thing("northline"), (Step(V + "operator", "in"),)), hops=("operator",))
    found_operation = found(turtle_graph(FERRIES), f"How many {noun} does Northline have?", ends)
    assert (found_operation is not None) == is_counted
