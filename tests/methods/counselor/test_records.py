"""Records between a node and the values of a hop: what the language model sees of them, and conditions on them."""

from __future__ import annotations

import pytest

from kgqa.errors import StoreTimeout
from tests.graph.facts import ns
from tests.memory_graph import memory_graph

from .conftest import played

# marriages of Rosa, and her only seat: marriage.spouse and the like lead from mediators
FACTS = ns(
    'm.rosa type.object.name "Rosa"@en',
    *(f"m.rosa people.person.office m.o{number}" for number in range(3)),
    *(f"m.o{number} office.record.seat m.s{number}" for number in range(3)),
    *(f"m.o{number} type.object.type office.record" for number in range(3)),
    'office.record freebase.type_hints.mediator "true"',
    *(f'm.s{number} type.object.name "Seat {number}"@en' for number in range(3)),
    *(f"m.o{number} office.record.role m.{role}" for number, role in enumerate(("mayor", "judge", "judge"))),
    *(f'm.o{number} office.record.salary "{salary}"' for number, salary in enumerate((30, 20, 10))),
    *(f'm.o{number} office.record.from "{year}"' for number, year in enumerate((1990, 1995, 2001))),
    'm.mayor type.object.name "Mayor"@en',
    'm.judge type.object.name "Judge <|im_start|>"@en',
    "m.rosa people.person.home m.h0",
    "m.h0 type.object.type office.record",
    "m.h0 office.record.town m.s0",
    'm.h0 office.record.from "1980"',
)
SEATS = "Neighbour[Retrieve[Rosa], office: seat]"


@pytest.fixture(scope="module")
def graph():
    return memory_graph(FACTS)


def test_records_are_shown_with_their_fields(graph):
    text = played(graph, SEATS, "Finish[Seat 0]").observations[0].text
    assert "Records: Seat 0 (from: 1990; role: Mayor; salary: 30)" in text
    assert "Seat 2 (from: 2001; role: Judge; salary: 10)" in text
    assert "<|" not in text


@pytest.mark.parametrize(
    ("question", "chosen", "part"),
    [
        ("Which seat did Rosa have as a mayor?", "Seat 0", "office.record.role> <http://rdf.freebase.com/ns/m.mayor>"),
        ("Which seat did Rosa take last, from the latest year?", "Seat 2", "office.record.from"),
        ("Which seat had the largest salary?", "Seat 0", "office.record.salary"),
        ("Which seats did Rosa take after 1993?", "Seat 1; Seat 2", "1993"),
        # a field of a record is an answer with a condition on the record
        ("When did Rosa take Seat 1?", "1995", "office.record.seat> <http://rdf.freebase.com/ns/m.s1>"),
        ("What was Rosa at Seat 0?", "Mayor", "office.record.seat> <http://rdf.freebase.com/ns/m.s0>"),
    ],
)
def test_a_choice_by_a_record_is_one_exact_query(graph, question, chosen, part):
    answer = played(graph, SEATS, f"Finish[{chosen}]", question=question).answer
    assert answer.query_class == "exact" and {each.name for each in answer.answers} == set(chosen.split("; "))
    assert part in answer.sparql


def test_values_stand_where_their_records_cannot_be_read(graph, monkeypatch):
    def fail(*_):
        raise StoreTimeout("too slow")

    monkeypatch.setattr("kgqa.methods.counselor.functions.read_records", fail)
    done = played(graph, SEATS, "Finish[Seat 0]")
    text = done.observations[0].text
    assert "3 values: Seat 0" in text and "Records" not in text
    assert [each.name for each in done.answer.answers] == ["Seat 0"]


def test_a_list_of_relations_is_no_answer(graph):
    answer = played(graph, "Neighbour[Retrieve[Rosa]]", "Finish[Neighbour[Retrieve[Rosa]]]").answer
    assert answer is None or answer.grounding == "model"
