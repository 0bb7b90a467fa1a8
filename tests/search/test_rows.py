"""Rows of walks: every field is a property of its node, and the path's own relations are left out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.search.rows import Row, read_rows
from kgqa.trace.trace import Trace

NS = "http://rdf.freebase.com/ns/"
HOLDERS = Candidate(
    RelationPath(
        Entity(NS + "m.demo_president_of_the_united_states"),
        (
            Step(NS + "government.government_office_or_title.office_holders"),
            Step(NS + "government.government_position_held.office_holder"),
        ),
    ),
    "office holders",
)


@pytest.fixture(scope="module")
def graph() -> Iterator[KnowledgeGraph]:
    with open_graph() as opened:
        yield opened


def texts(row: Row, at: int, *relations: str) -> list[str]:
    wanted = tuple(NS + relation for relation in relations)
    found = [field for field in row.fields if (field.at, tuple(step.relation for step in field.steps)) == (at, wanted)]
    return [value.name for field in found for value in field.values]


def test_fields_of_a_mediator_and_of_the_end(graph: KnowledgeGraph) -> None:
    (found,) = read_rows(graph, [HOLDERS], Trace())
    rows = {row.end.name: row for row in found.rows}
    kennedy = rows["John F. Kennedy"]
    assert found.complete
    assert texts(kennedy, 1, "government.government_position_held.from") == ["1961"]
    assert texts(kennedy, 2, "people.person.date_of_birth") == ["1917-05-29"]
    assert texts(kennedy, 2, "people.person.spouse_s", "people.marriage.from") == ["1953"]
    assert "Politician" in texts(kennedy, 2, "type.object.type")


def test_relations_of_the_path_are_no_fields(graph: KnowledgeGraph) -> None:
    for row in read_rows(graph, [HOLDERS], Trace())[0].rows:
        assert not texts(row, 1, "government.government_position_held.office_holder")
        assert not texts(
            row, 2, "government.politician.government_positions_held", "government.government_position_held.from"
        )
        assert HOLDERS.path.topic not in {value.value for field in row.fields for value in field.values}
