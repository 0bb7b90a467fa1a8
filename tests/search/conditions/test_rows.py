"""Rows of walks: every field is a property of its node, and the path's own relations are left out."""

from __future__ import annotations

from kgqa.graph.opening import open_graph
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.search.conditions.rows import Row, read_rows
from kgqa.trace.trace import Trace

NS = "http://rdf.freebase.com/ns/"
OFFICE = Entity(NS + "m.demo_president_of_the_united_states")
HELD = "government.government_position_held."


def texts(row: Row, at: int, *relations: str) -> list[str]:
    wanted = (at, [NS + relation for relation in relations])
    fields = {key: values for key, values in row.fields.items() if (key[0], [s.relation for s in key[1]]) == wanted}
    return [value.name for values in fields.values() for value in values]


def test_fields_of_a_mediator_and_of_the_end() -> None:
    steps = (Step(NS + "government.government_office_or_title.office_holders"), Step(NS + HELD + "office_holder"))
    with open_graph() as graph:
        (found,) = read_rows(graph, [Candidate(RelationPath(OFFICE, steps))], Trace())
    kennedy = {row.end.name: row for row in found.rows}["John F. Kennedy"]
    assert found.complete
    assert texts(kennedy, 1, HELD + "from") == ["1961"]
    assert texts(kennedy, 2, "people.person.date_of_birth") == ["1917-05-29"]
    assert texts(kennedy, 2, "people.person.spouse_s", "people.marriage.from") == ["1953"]
    assert "Politician" in texts(kennedy, 2, "type.object.type")
    for row in found.rows:  # the relations of the path are no fields
        assert not texts(row, 1, HELD + "office_holder")
        assert not texts(row, 2, "government.politician.government_positions_held", HELD + "from")
        assert OFFICE not in {value.value for values in row.fields.values() for value in values}
