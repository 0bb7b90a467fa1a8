"""Answers of paths with conditions and operations: their query, evidence and JSON, and `kgqa explain` for the query."""

from __future__ import annotations

import pytest

from kgqa.errors import PartialResult, StoreUnavailable
from kgqa.graph.query.export import AnswerInQuery
from kgqa.methods.tournament.path_answers import MAX_NAMED, answer_of_path, with_all_names
from kgqa.model import Answer, Candidate, Entity, Literal, Question, RelationPath, Step
from kgqa.model.conditions import XSD, Comparison, Condition, Operation
from kgqa.storage.answer_json import answer_data, answer_from
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
POP, KIND = (Step(E + "pop"),), (Step(E + "kind"),)


def number(text: str) -> Literal:
    return Literal(text, XSD + "decimal")


@pytest.fixture(scope="module")
def graph():
    return memory_graph(LINES, schema="rdfs")


def answer(graph, path=HAS, *, topics=(LAND,), **parts) -> Answer | None:
    empty = Answer(Question("What is it?"), "no_answer", topics=tuple(graph.named(topics)))
    return answer_of_path(graph, Candidate(path, "has", **parts), 0.5, empty, Trace())


def names(answer: Answer) -> list[str]:
    return [named.name.removeprefix(E) for named in answer.answers]


CASES = [
    ([Condition(1, KIND, CITY)], None, ["ays", "bex"]),
    ([Condition(1, POP, Comparison(">", number("6")))], None, ["bex", "cor"]),
    ((), Operation("count"), ["3"]),
    ((), Operation("sum", POP), ["136"]),
    ((), Operation("most", POP), ["cor"]),
    ([Condition(1, KIND, CITY)], Operation("most", POP), ["bex"]),
    ([Condition(1, (), BEX)], Operation("exists"), ["true"]),
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
    assert path.walks
    assert answer_from(answer_data(found)) == found


def test_condition_must_not_name_the_answer(graph):
    with pytest.raises(AnswerInQuery):
        answer(graph, conditions=(Condition(1, (), BEX),))
    with pytest.raises(AnswerInQuery):
        answer(graph, HAS.then(*POP), conditions=(Condition(2, (), Comparison("=", Literal("30"))),))


@pytest.mark.parametrize(
    ("returned", "class_"), [(["ays", "bex"], "none"), (["ays", "bex", "cor", "land"], "superset")]
)
def test_a_result_that_the_search_did_not_see_is_a_defect(graph, monkeypatch, returned, class_):
    monkeypatch.setattr(type(graph), "run_exported", lambda *_: tuple(Entity(E + name) for name in returned))
    found = answer(graph)
    assert found.query_class == class_
    assert found.defects == (f"The exported query returned {len(returned)} answers; the search saw 3.",)
    monkeypatch.setattr(type(graph), "run_exported", lambda *_: (number("7"),))
    for operation, seen in ((Operation("count"), 3), (Operation("sum", POP), 136)):
        found = answer(graph, operation=operation)
        assert found.defects == (f"The exported query returned 7; what the search saw gives {seen}.",)
        assert found.query_class == "none"


CUT = [
    # of more values than are looked at, the top is known if worse values are seen
    ("9 9 1 2 3 4 5", XSD + "integer", Operation("most", (Step(E + "v"),)), "a b"),
    ("9 8 8 2 3 4 5", XSD + "integer", Operation("most", (Step(E + "v"),), rank=2), "b c"),
    ("9 9 9 9 9 9 9", XSD + "integer", Operation("most", (Step(E + "v"),)), None),
    # values that are no numbers do not take the place of others
    ("n/a n/a n/a n/a n/a 3 3", XSD + "string", Operation("least", (Step(E + "v"),)), "f g"),
]


@pytest.mark.parametrize(("values", "datatype", "operation", "expected"), CUT)
def test_an_extreme_of_too_many_values_is_complete_or_refused(monkeypatch, values, datatype, operation, expected):
    monkeypatch.setattr("kgqa.graph.query.export.MAX_ROWS", 5)
    lines = [f"<{E}land> <{E}has> <{E}{name}> ." for name in "abcdefg"]
    lines += [f'<{E}{name}> <{E}v> "{text}"^^<{datatype}> .' for name, text in zip("abcdefg", values.split())]
    graph = memory_graph(lines, schema="rdfs")
    if expected is None:
        with pytest.raises(PartialResult, match="not all ends"):
            answer(graph, operation=operation)
    else:
        found = answer(graph, operation=operation)
        assert sorted(names(found)) == expected.split() and found.query_class == "exact"


def test_compared_topics(graph):
    pair = Operation("most", POP, topics=(AYS, BEX))
    found = answer(graph, RelationPath(AYS), topics=(AYS, BEX), operation=pair)
    assert names(found) == ["bex"] and found.query_class == "exact"
    assert [path.walks[0][1].name for path in found.paths] == ["6", "30"]
    apart = Operation("difference", POP, topics=(AYS, BEX))
    assert names(answer(graph, RelationPath(AYS), topics=(AYS, BEX), operation=apart)) == ["24"]
    assert answer(graph, operation=Operation("sum", KIND)) is None  # no values


def test_a_hub_looks_up_the_names_that_are_shown_and_the_rest_on_export(monkeypatch):
    hub = [f"{E}n{number:05}" for number in range(3 * MAX_NAMED)]
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    lines = [f"<{E}hub> <{E}has> <{iri}> ." for iri in hub]
    graph = memory_graph([*lines, *(f'<{iri}> <{label}> "Name of {iri}" .' for iri in hub)], schema="rdfs")
    asked: list[Entity] = []
    named = type(graph).named

    def counted(self, values, **options):
        values = list(values)
        asked.extend(values)
        return named(self, values, **options)

    monkeypatch.setattr(type(graph), "named", counted)
    found = answer(graph, RelationPath(Entity(E + "hub"), HAS.steps), topics=())
    assert len(found.answers) == len(hub) and len(asked) < 2 * MAX_NAMED and found.query_class == "exact"
    assert [each.name for each in found.answers[:MAX_NAMED]] == [f"Name of {iri}" for iri in hub[:MAX_NAMED]]
    assert found.answers[-1].name == "n02999"
    assert [each.name for each in with_all_names(graph, found).answers] == [f"Name of {iri}" for iri in hub]

    def fails(*_):
        raise StoreUnavailable("The server is gone.")

    monkeypatch.setattr(type(graph), "named", fails)
    assert with_all_names(graph, found) == found  # what was found stays
