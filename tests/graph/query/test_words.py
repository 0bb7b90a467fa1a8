"""Conditions and operations in words."""

from __future__ import annotations

import pytest

from kgqa.graph.opening import open_graph
from kgqa.graph.query.explain import explain
from kgqa.graph.query.words import condition_words, operation_words
from kgqa.model import Entity, Literal, RelationPath, Step
from kgqa.model.conditions import DAY, MONTH, XSD, Comparison, Condition, Operation, year

NS = "http://rdf.freebase.com/ns/"
NORTH_SEA, RHINE = Entity(NS + "m.demo_north_sea"), Entity(NS + "m.demo_rhine")
LENGTH, MOUTH = Step(NS + "geography.river.length"), Step(NS + "geography.river.mouth")
INTO = RelationPath(NORTH_SEA, (MOUTH.reversed(),))
PAIR = (RHINE, Entity(NS + "m.demo_danube"))


@pytest.fixture(scope="module")
def graph():
    with open_graph() as opened:
        yield opened


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (Condition(1, (LENGTH,), Comparison("<=", year(1998))), "“river length” of ?answer is in or before 1998"),
        (Condition(1, (LENGTH,), Comparison("<", Literal("1998-05", MONTH))), "“river length” of ?answer is before 1998-05"),
        (Condition(1, (LENGTH,), Comparison(">=", Literal("-0044-03", MONTH))), "“river length” of ?answer is in or after -0044-03"),
        (Condition(1, (LENGTH,), Comparison("!=", Literal("1998-05-09", DAY))), "“river length” of ?answer is not on 1998-05-09"),
        (Condition(1, (LENGTH,), Comparison(">=", Literal("6", XSD + "decimal"))), "“river length” of ?answer is at least 6"),
        (Condition(1, (LENGTH,), Comparison("=", Literal("abc"))), "“river length” of ?answer is “abc”"),
        (Condition(1, (MOUTH.reversed(),), RHINE), "Rhine (m.demo_rhine) has “river mouth”: ?answer"),
        (Condition(1, (LENGTH,), None, True), "there is no “river length” of ?answer"),
        (Condition(1, (MOUTH,), NORTH_SEA, True), "it is not true that ?answer has “river mouth”: North Sea (m.demo_north_sea)"),
        (Condition(1, (), RHINE, True), "?answer is not Rhine (m.demo_rhine)"),
    ],
)  # fmt: skip
def test_conditions(graph, condition, words):
    assert condition_words(graph, condition, 1) == words
    assert f". {words}" in explain(graph, graph.answer_query(INTO, conditions=[condition]))


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (Operation("most", (LENGTH,)), "Of these, take the one with the most “river length”, or those that are equal."),
        (Operation("least", (LENGTH,), "day", rank=3), "Of these, take the one with the third earliest “river length”, or those that are equal."),
        (Operation("least", (MOUTH,), counted=True), "Of these, take the one with the fewest “river mouth”, or those that are equal."),
        (Operation("most"), "Of these, take the one with the most “river mouth”, or those that are equal."),
        (Operation("count"), "Count every different ?answer such that"),
        (Operation("exists"), "Is there anything such that"),
        (Operation("sum", (LENGTH,)), "Add up “river length” such that"),
        (Operation("average", (LENGTH,)), "Find the average of “river length” such that"),
        (Operation("most", (LENGTH,), topics=PAIR), "Of Rhine (m.demo_rhine) and Danube (m.demo_danube), take the one with the most “river length”, or those that are equal."),
        (Operation("difference", (LENGTH,), topics=PAIR), "Find the difference between “river length” of Rhine (m.demo_rhine) and Danube (m.demo_danube)."),
    ],
)  # fmt: skip
def test_operations(graph, operation, words):
    path = RelationPath(RHINE) if operation.topics else INTO
    assert words in explain(graph, graph.answer_query(path, operation=operation)).split("\n")
    assert operation_words(graph, operation, path.steps) in (
        words,
        words.replace(" such that", "."),
        words.replace(" such that", "?"),
    )


def test_selected_entities_and_joined_paths(graph):
    two = INTO.then(MOUTH)
    text = explain(graph, graph.answer_query(two, restricted={1: PAIR}))
    assert "?e1 is one of: Rhine (m.demo_rhine), Danube (m.demo_danube), selected by a model" in text
