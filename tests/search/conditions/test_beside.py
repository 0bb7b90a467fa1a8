"""The fields beside the ends of a path: which ends have a value."""

from __future__ import annotations

import pytest

from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.search.conditions import beside
from kgqa.search.conditions.beside import Beside
from kgqa.search.conditions.requests import Measure, read_request
from tests.ferries import FERRIES, V, thing
from tests.memory_graph import memory_graph, turtle_graph

E = "http://e/"


@pytest.mark.parametrize(
    ("values", "without"),
    [
        (["1", "2", "3", "4"], []),
        (["1 2 3", "2 3", "3", "", ""], ["t3", "t4"]),
        (["1 2 3", "2", "", "", ""], None),  # too few
        (["small", "tall", "huge", "1.8"], None),
        (["1", "", "", "", "", "", "", "", ""], []),  # too many ends or values to know which have none
        (["1 2 3 4 5 6 7 8 9", "", ""], []),
    ],
)
def test_ends_with_values(values: list[str], without: list[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "MAX_WALKS", 8)
    lines = [f"<{E}land> <{E}town> <{E}t{number}> ." for number in range(len(values))]
    lines += [f'<{E}t{n}> <{E}height> "{value}" .' for n, several in enumerate(values) for value in several.split()]
    towns = Candidate(RelationPath(Entity(E + "land"), (Step(E + "town"),)))
    measure = read_request("What is the highest town?").measure
    field = Beside(memory_graph(lines, schema="rdfs"), None).compared(towns, measure)
    assert (field and [node.iri.removeprefix(E) for node in field.without]) == without


@pytest.mark.parametrize(
    ("name", "words", "flag"),
    [
        ("olga", ("carry", "trucks"), "carriesTrucks"),
        ("olga", ("sail", "night"), "sailsAtNight"),
        ("olga", ("red", "hull"), None),  # a text
        ("northline", ("carry", "trucks"), None),
    ],
)
def test_relation_to_true_or_false_by_its_words(name: str, words: tuple[str, ...], flag: str | None) -> None:
    found = Beside(turtle_graph(FERRIES), None).flag(thing(name), words)
    assert (found and found.steps) == (flag and (Step(V + flag),))


@pytest.mark.parametrize(
    ("measure", "fields"),
    [
        (Measure(("length",)), ["lengthM"]),
        (Measure(("launched",)), []),  # dates are no numbers
        (Measure(("launched",), "day"), ["launched"]),
        (Measure(("birth",), "day"), ["launched"]),  # the only date
        (Measure(("weight",)), []),  # two relations lead to numbers
    ],
)
def test_fields_have_the_datatype_that_is_compared(measure: Measure, fields: list[str]) -> None:
    found = Beside(turtle_graph(FERRIES), None).fields(RelationPath(thing("olga")), measure)
    assert [each.steps for each in found] == [(Step(V + name),) for name in fields]
