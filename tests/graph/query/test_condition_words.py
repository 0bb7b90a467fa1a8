"""Conditions and operations are worded as `kgqa explain` words their queries."""

from __future__ import annotations

import re

import pytest

from kgqa.evaluation.datasets.registry import dataset_questions
from kgqa.graph.opening import open_graph
from kgqa.graph.query.condition_words import all_words, condition_words, operation_words
from kgqa.graph.query.explain import explain
from kgqa.model import Entity, Literal, RelationPath, Step
from kgqa.model.conditions import MAX_RANK, Comparison, Condition, Operation, year
from kgqa.training.gold_candidates import gold_candidate

NS = "http://rdf.freebase.com/ns/"
XSD = "http://www.w3.org/2001/XMLSchema#"
NORTH_SEA, RHINE = Entity(NS + "m.demo_north_sea"), Entity(NS + "m.demo_rhine")
LENGTH, MOUTH = Step(NS + "geography.river.length"), Step(NS + "geography.river.mouth")


@pytest.fixture(scope="module")
def graph():
    with open_graph() as opened:
        yield opened


def test_words_of_the_demo_questions_are_those_of_explain(graph):
    for question in dataset_questions("demo-conditions"):
        candidate = gold_candidate(question.sparql[0], [graph.schema.iri(each) for each in question.topics]).candidate
        limits, operation = candidate.limits, candidate.operation
        lines = explain(graph, graph.answer_query(candidate.path, operation=operation, **limits)).split("\n")
        found = {re.sub(r" \(\?value1\)|^ *[0-9]+[.] ", "", line) for line in lines}
        words, computed = all_words(graph, candidate.conditions, operation, candidate.path.steps)
        assert found >= set(words), question.text
        if operation and not operation.topics:
            head = re.sub(r" \(every [?]value1\)| such that", "", lines[0])
            assert computed in found or computed.rstrip(".?") == head.removesuffix(" ?answer") + (
                " ?answer" if operation.kind == "count" else ""
            )


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize(
    "value",
    [
        year(1998),
        Literal("1998-05", XSD + "gYearMonth"),
        Literal("1998-05-02", XSD + "date"),
        Literal("5", XSD + "decimal"),
    ],
    ids=lambda value: value.value,
)
def test_comparisons(graph, operator, value):
    condition = Condition(1, (LENGTH,), Comparison(operator, value))
    query = graph.answer_query(RelationPath(NORTH_SEA, (MOUTH.reversed(),)), conditions=[condition])
    assert condition_words(graph, condition, "?answer") in explain(graph, query)
    assert condition_words(graph, condition) == condition_words(graph, condition, "?answer").replace(" of ?answer", "")


@pytest.mark.parametrize("rank", range(1, MAX_RANK + 1))
@pytest.mark.parametrize("scale", ["number", "day"])
def test_extremes(graph, rank, scale):
    operation = Operation("most", (LENGTH,), scale=scale, rank=rank)
    path = RelationPath(NORTH_SEA, (MOUTH.reversed(),))
    query = graph.answer_query(path, operation=operation)
    assert operation_words(graph, operation, path.steps) == explain(graph, query).split("\n")[-1].replace(
        " (?value1)", ""
    )


@pytest.mark.parametrize(
    "operation, expected",
    [
        (Operation("most"), "with the most “river length”"),
        (Operation("least", at=2), "with the least “river length”"),
        (Operation("most", counted=True, at=1), "with the most “river mouth”"),
        (Operation("sum"), "Add up “river length”"),
        (Operation("average"), "Find the average of “river length”"),
    ],
)
@pytest.mark.parametrize(
    "conditions", [(), (Condition(1, (MOUTH,), NORTH_SEA), Condition(2, (LENGTH.reversed(),), RHINE))]
)
def test_values_on_the_path(graph, operation, expected, conditions):
    path = RelationPath(NORTH_SEA, (MOUTH.reversed(), LENGTH))
    assert expected in operation_words(graph, operation, path.steps)
    assert expected in explain(graph, graph.answer_query(path, conditions=conditions, operation=operation))


def test_without_node_and_of_topics(graph):
    assert (
        condition_words(graph, Condition(1, (MOUTH,), NORTH_SEA)) == "has “river mouth”: North Sea (m.demo_north_sea)"
    )
    assert condition_words(graph, Condition(1, (MOUTH,), None)) == "there is “river mouth”"
    assert condition_words(graph, Condition(1, (), RHINE, negated=True)) == "is not Rhine (m.demo_rhine)"
    compared = Operation("difference", (LENGTH,), topics=(RHINE, Entity(NS + "m.demo_danube")))
    words = "Find the difference between “river length” of Rhine (m.demo_rhine) and Danube (m.demo_danube)."
    assert operation_words(graph, compared, ()) == words
