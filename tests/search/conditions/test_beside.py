"""The fields beside the ends of a path: which ends have a value."""

from __future__ import annotations

import pytest

from kgqa.errors import StoreTimeout
from kgqa.graph.paths import PathQueries
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.search.conditions import beside
from kgqa.search.conditions.beside import Beside
from kgqa.search.conditions.requests import read_request
from tests.memory_graph import memory_graph

E = "http://e/"
TOWNS = Candidate(RelationPath(Entity(E + "land"), (Step(E + "town"),)), "town")


@pytest.fixture
def land(monkeypatch):
    """Return the field with the populations of towns, of which some have several values, with at most 12 walks."""
    monkeypatch.setattr(beside, "MAX_WALKS", 12)

    def land(towns: int, *, values: int, having: int | None = None):
        lines = [f"<{E}land> <{E}town> <{E}t{number:02d}> ." for number in range(towns)]
        lines += [
            f'<{E}t{number:02d}> <{E}population> "{1000 + number}{value}" .'
            for number in range(towns if having is None else having)
            for value in range(values)
        ]
        return Beside(memory_graph(lines, schema="rdfs"), None).compared(
            TOWNS, read_request("What is the largest town?").measure
        )

    return land


def test_ends_with_many_values(land):
    field = land(10, values=3)
    assert field is not None and not field.without
    assert [node.iri for node in land(10, values=3, having=8).without] == [E + "t08", E + "t09"]
    assert land(10, values=5, having=4) is None


def test_too_many_ends_to_know_which_have_no_value(land):
    for field in (land(20, values=1), land(20, values=2), land(20, values=1, having=3)):
        assert field is not None and not field.without


def test_texts_are_no_values():
    lines = [f"<{E}land> <{E}town> <{E}t{number}> ." for number in range(10)]
    lines += [f'<{E}t{number}> <{E}height> "{"tall" if number else "1.8"}" .' for number in range(10)]
    measure = read_request("What is the highest town?").measure
    assert Beside(memory_graph(lines, schema="rdfs"), None).compared(TOWNS, measure) is None


def test_a_slow_lookup_does_not_say_that_values_are_missing(land, monkeypatch):
    monkeypatch.setattr(PathQueries, "ends", lambda *args, **how: [StoreTimeout("too late")] * 2)
    field = land(10, values=1, having=1)
    assert field is not None and not field.without
