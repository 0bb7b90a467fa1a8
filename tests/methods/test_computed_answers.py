"""Answers of paths with conditions and operations: their query, evidence and JSON, and `kgqa explain` for the query."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from msgspec import structs

from kgqa.graph.query.explain import explain
from kgqa.graph.query.export import AnswerInQuery
from kgqa.methods.grounding import answer_of_path
from kgqa.model import Answer, Candidate, Entity, Literal, NearPath, RelationPath, Step
from kgqa.model.conditions import DAY, MONTH, XSD, Comparison, Condition, Operation, year
from kgqa.storage.answer_json import answer_data, answer_from, answer_object
from kgqa.trace.trace import Trace
from tests.memory_graph import memory_graph

E = "http://e/"
LINES = [
    f"<{E}{s}> <{E}{p}> {o} ." if o[0] == '"' else f"<{E}{s}> <{E}{p}> <{E}{o}> ."
    for s, p, o in (
        ("land", "has", "ays"), ("land", "has", "bex"), ("land", "has", "cor"),
        ("ays", "pop", '"6"'), ("bex", "pop", '"30"'), ("cor", "pop", '"100"'),
        ("ays", "since", '"1967-05-02"'), ("bex", "since", '"1998"'), ("cor", "since", '"2001"'),
        ("ays", "kind", "city"), ("bex", "kind", "city"), ("cor", "port", "bay"),
    )
]  # fmt: skip
LAND, CITY, AYS, BEX = (Entity(E + name) for name in ("land", "city", "ays", "bex"))
HAS = RelationPath(LAND, (Step(E + "has"),))
POP, SINCE, KIND = (Step(E + "pop"),), (Step(E + "since"),), (Step(E + "kind"),)


def number(text: str) -> Literal:
    return Literal(text, XSD + "decimal")


@pytest.fixture(scope="module")
def graph():
    return memory_graph(LINES, schema="rdfs")


def answer(graph, path=HAS, *, topics=(LAND,), **parts) -> Answer | None:
    return answer_of_path(graph, Candidate(path, "has", **parts), 0.5, graph.named(topics), Trace())


def names(answer: Answer) -> list[str]:
    return [named.name.removeprefix(E) for named in answer.answers]


CASES = [
    ([Condition(1, KIND, CITY)], None, ["ays", "bex"]),
    ([Condition(1, POP, Comparison(">", number("6")))], None, ["bex", "cor"]),
    ((), Operation("count"), ["3"]),
    ([Condition(1, KIND, BEX)], Operation("count"), ["0"]),
    ((), Operation("sum", POP), ["136"]),
    ((), Operation("most", POP), ["cor"]),
    ([Condition(1, KIND, CITY)], Operation("most", POP), ["bex"]),
    ([Condition(1, (), BEX)], Operation("exists"), ["true"]),
    ([Condition(1, (), CITY)], Operation("exists"), ["false"]),
]


@pytest.mark.parametrize("conditions, operation, expected", CASES)
def test_answer(graph, conditions, operation, expected):
    found = answer(graph, conditions=tuple(conditions), operation=operation)
    assert names(found) == expected and found.grounding == "graph"
    assert found.query_class == "exact" and not found.defects
    assert set(graph.run_exported(found.sparql)) == {each.value for each in found.answers}
    path = found.paths[0]
    assert (path.conditions, path.operation) == (tuple(conditions), operation)
    assert all(walk[1].name.removeprefix(E) in ("ays", "bex", "cor") for walk in path.walks)
    assert path.walks or expected in (["0"], ["false"])
    assert answer_from(answer_data(found)) == found


def test_numbers_of_a_condition_may_be_answers(graph):
    since = HAS.then(*SINCE)
    found = answer(graph, since, conditions=(Condition(2, (), Comparison("<=", year(1998))),))
    assert names(found) == ["1967-05-02", "1998"]


def test_condition_must_not_name_the_answer(graph):
    with pytest.raises(AnswerInQuery):
        answer(graph, conditions=(Condition(1, (), BEX),))
    with pytest.raises(AnswerInQuery):
        answer(graph, HAS.then(*POP), conditions=(Condition(2, (), Comparison("=", Literal("30"))),))


def test_evidence_shows_values(graph):
    total = answer(graph, operation=Operation("sum", POP))
    assert {walk[2].name for walk in total.paths[0].walks} == {"6", "30", "100"}
    most = answer(graph, operation=Operation("most", POP))
    assert [[node.name for node in walk] for walk in most.paths[1].walks] == [["cor", "100"]]


def test_extreme_at_a_node_on_the_way(graph):
    kinds = HAS.then(*KIND)
    found = answer(graph, kinds, operation=Operation("most", POP, at=1))
    assert names(found) == ["city"] and found.query_class == "exact"
    assert sorted([node.name for node in walk[1:]] for walk in found.paths[1].walks) == [["ays", "6"], ["bex", "30"]]
    assert "the one with the most “pop” (?value1)" in explain(graph, found.sparql)


def test_compared_topics(graph):
    pair = Operation("most", POP, topics=(AYS, BEX))
    found = answer(graph, RelationPath(AYS), topics=(AYS, BEX), operation=pair)
    assert names(found) == ["bex"] and found.query_class == "exact"
    assert [path.walks[0][1].name for path in found.paths] == ["6", "30"]
    apart = Operation("difference", POP, topics=(AYS, BEX))
    assert names(answer(graph, RelationPath(AYS), topics=(AYS, BEX), operation=apart)) == ["24"]


def test_no_answer_without_values(graph):
    assert answer(graph, operation=Operation("sum", KIND)) is None
    assert answer(graph, operation=Operation("most", KIND)) is None


def test_json(graph):
    conditions = (Condition(1, SINCE, Comparison("<=", year(1998))), Condition(1, KIND, CITY, True))
    found = answer(graph, conditions=conditions, operation=Operation("count"))
    (path,) = answer_object(found)["paths"]
    since, kind = path["conditions"]
    assert since == {
        "at": 1, "steps": ({"relation": E + "since", "direction": "out"},), "negated": False,
        "operator": "<=", "value": "1998", "datatype": XSD + "gYear",
        "words": "“since” of ?answer is in or before 1998",
    }  # fmt: skip
    assert kind["entity"] == CITY.iri and kind["negated"]
    assert path["operation"]["kind"] == "count" and path["operation"]["topics"] == []
    (plain,) = answer_object(answer(graph))["paths"]
    assert plain["conditions"] == [] and plain["operation"] is None


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_json_has_no_score_that_is_not_finite(graph, score):
    found = answer(graph)
    (path,) = found.paths
    near = (NearPath("has", score),)
    written = answer_object(
        replace(found, evidence=(structs.replace(path, score=score),), confidence=score, nearest=near)
    )
    json.dumps(written, allow_nan=False)
    assert written["confidence"] is written["paths"][0]["score"] is written["nearest"][0]["score"] is None


MONTHS = [Comparison("<", Literal("1998-05", MONTH)), Comparison(">=", Literal("-0044-03", MONTH))]
EXPLAINED = [
    ([Condition(1, SINCE, Comparison("<=", year(1998)))], None, ["“since” of ?answer is in or before 1998"]),
    ([Condition(1, SINCE, MONTHS[0])], None, ["“since” of ?answer is before 1998-05"]),
    ([Condition(1, SINCE, MONTHS[1])], None, ["“since” of ?answer is in or after -0044-03"]),
    ([Condition(1, SINCE, Comparison("!=", Literal("1998-05-09", DAY)))], None, ["is not on 1998-05-09"]),
    ([Condition(1, POP, Comparison(">=", number("6")))], None, ["“pop” of ?answer is at least 6"]),
    ([Condition(1, POP, Comparison("=", Literal("abc")))], None, ["“pop” of ?answer is “abc”"]),
    ([Condition(1, POP, None, True)], None, ["there is no “pop” of ?answer"]),
    ([Condition(1, POP, Comparison(">", number("6")), True)], None, ["it is not true that “pop” of ?answer is greater"]),
    ([Condition(1, KIND, CITY, True)], None, ["it is not true that ?answer has “kind”: http://e/city"]),
    ([Condition(1, SINCE, Comparison("<=", Literal("1998-05", MONTH)))], None, ["“since” of ?answer is in or before 1998-05"]),
    ([Condition(1, SINCE, Comparison("=", Literal("1998-05", MONTH)))], None, ["“since” of ?answer is in 1998-05"]),
    ([Condition(1, SINCE, Comparison("<=", Literal("1998-05-09", DAY)))], None, ["is on or before 1998-05-09"]),
    ((), Operation("most"), ["the one with the most “has” (?answer)"]),
    ((), Operation("most", POP), ["Find every ?answer", "?value1 is a number", "the one with the most “pop” (?value1)"]),
    ((), Operation("least", SINCE, "day", rank=3), ["take the one with the third earliest “since” (?value1)"]),
    ((), Operation("most", POP, counted=True, rank=2), ["take the one with the second most “pop”"]),
    ((), Operation("least", POP, counted=True), ["take the one with the fewest “pop”"]),
    ((), Operation("count"), ["Count every different ?answer such that"]),
    ((), Operation("sum", POP), ["Add up “pop” (every ?value1) such that"]),
    ((), Operation("average", POP), ["Find the average of “pop” (every ?value1) such that"]),
    ((), Operation("exists"), ["Is there anything such that"]),
    ((), Operation("most", POP, topics=(AYS, BEX)), ["?answer is one of: http://e/ays", "the one with the most “pop”"]),
    ((), Operation("difference", POP, topics=(AYS, BEX)), ["Find the difference between ?value1 and ?value1_2"]),
]  # fmt: skip


@pytest.mark.parametrize("conditions, operation, expected", EXPLAINED)
def test_explained(graph, conditions, operation, expected):
    path = RelationPath(AYS) if operation and operation.topics else HAS
    text = explain(graph, graph.answer_query(path, conditions=conditions, operation=operation))
    for part in expected:
        assert part in text, text
    assert "computed" not in text and "another filter" not in text
    assert text.count("has “has”") <= 1, text


@pytest.mark.parametrize(
    "old, new", [("MAX(", "MIN("), ("?key_1 <", "?key_1 >"), ("?answer_2 <http://e/pop>", "?answer_2 <http://e/size>")]
)
def test_other_queries_are_not_taken_for_operations(graph, old, new):
    query = graph.answer_query(HAS, operation=Operation("most", POP, rank=2))
    assert old in query
    assert "take the one" not in explain(graph, query.replace(old, new, 1))


def test_a_changed_total_is_not_explained_as_a_total(graph):
    query = graph.answer_query(HAS, operation=Operation("sum", POP))
    text = explain(graph, query.replace("?number > 0", "?number > 5"))
    assert "Add up" not in text and "?number is greater than “5”" in text, text


@pytest.mark.parametrize(
    "pattern, expected",
    [
        (
            "{ ?x e:pop ?y OPTIONAL { ?x e:kind ?z FILTER(?z > 5) } }",
            ["  2. optionally: ?x has “kind”: ?z and ?z is greater than “5”"],
        ),
        (
            "{ ?x e:pop ?y MINUS { ?x e:kind ?z . ?z e:has ?w } }",
            ["  2. but not: ?x has “kind”: ?z and ?z has “has”: ?w"],
        ),
        ("{ ?x e:pop ?y } OFFSET 10", ["Leave out the first 10."]),
        ("{ ?x e:pop ?y } LIMIT 5 OFFSET 10", ["Leave out the first 10.", "Return at most 5."]),
    ],
)
def test_every_part_that_changes_the_result_is_explained(graph, pattern, expected):
    lines = explain(graph, f"PREFIX e: <{E}> SELECT ?x {pattern}").split("\n")
    assert lines[:2] == ["Find every ?x such that", "  1. ?x has “pop”: ?y"] and lines[2:] == expected
