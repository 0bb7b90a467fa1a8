"""Numbers of answers have the unit that the graph gives, and "now" is said."""

from __future__ import annotations

from datetime import date

import pytest

from kgqa.methods.tournament.path_answers import answer_of_path
from kgqa.methods.tournament.path_evidence import present_notes
from kgqa.model import Answer, Candidate, Entity, Question, RelationPath, Step
from kgqa.model.conditions import XSD, Condition, Operation
from kgqa.report.answer import answer_text
from kgqa.storage.answer_json import answer_object
from kgqa.trace.trace import Trace
from tests.memory_graph import memory_graph

E, FB, QUDT, WIKIBASE = (
    "http://e/",
    "http://rdf.freebase.com/ns/",
    "http://qudt.org/schema/qudt/",
    "http://wikiba.se/ontology#",
)
QUDT_AMOUNT, WIKI_AMOUNT = QUDT + "numericValue", WIKIBASE + "quantityAmount"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
DECIMAL = f"^^<{XSD}decimal>"
OF_RELATIONS = [
    f'<{E}a> <{E}height> "3"{DECIMAL} .',
    f'<{E}b> <{E}height> "5"{DECIMAL} .',
    f"<{E}height> <{QUDT}unit> <{E}metre> .",
    f'<{E}metre> <{LABEL}> "metre"@en .',
]
KILOMETRES = [f'<{E}{node}> <{E}height> "{n}"^^<http://dbpedia.org/datatype/kilometre> .' for node, n in ("a3", "b5")]


def asked(graph, *topics):
    return Answer(Question("How high is it?"), "no_answer", topics=tuple(graph.named(topics)))


def quantities(amount: str, unit: str) -> list[str]:
    lines = [f'<{E}foot> <{LABEL}> "foot"@en .']
    for node, number in (("a", 3), ("b", 5)):
        lines += [
            f"<{E}{node}> <{E}height> <{E}quantity_{node}> .",
            f'<{E}quantity_{node}> <{amount}> "{number}"{DECIMAL} .',
            f"<{E}quantity_{node}> <{unit}> <{E}foot> .",
        ]
    return lines


def difference(lines: list[str], schema: str, *relations: str):
    steps = tuple(Step(each) for each in relations)
    topics = (Entity(E + "a"), Entity(E + "b"))
    candidate = Candidate(RelationPath(topics[0]), "", operation=Operation("difference", steps, topics=topics))
    with memory_graph(lines, schema=schema) as graph:
        return answer_of_path(graph, candidate, None, asked(graph, *topics), Trace())


@pytest.mark.parametrize(
    ("lines", "schema", "relations", "unit"),
    [
        (OF_RELATIONS, "rdfs", [E + "height"], "metre"),
        (quantities(QUDT_AMOUNT, QUDT + "unit"), "rdfs", [E + "height", QUDT_AMOUNT], "foot"),
        (quantities(WIKI_AMOUNT, WIKIBASE + "quantityUnit"), "wikidata", [E + "height", WIKI_AMOUNT], "foot"),
        ([f'<{E}a> <{E}height_cm> "3" .', f'<{E}b> <{E}height_cm> "5" .'], "rdfs", [E + "height_cm"], "cm"),
        (KILOMETRES, "rdfs", [E + "height"], "kilometre"),
        ([f'<{E}a> <{E}height> "3"{DECIMAL} .', f'<{E}b> <{E}height> "5"{DECIMAL} .'], "rdfs", [E + "height"], ""),
    ],
    ids=["relation", "qudt", "wikidata", "name", "datatype", "none"],
)
def test_unit_of_a_difference(lines, schema, relations, unit):
    answer = difference(lines, schema, *relations)
    assert answer_text(answer).startswith(f"2 {unit}\n" if unit else "2\n")
    assert answer_object(answer)["answers"][0].get("unit", "") == unit and answer.notes == ()


@pytest.mark.parametrize(
    ("label", "unit"),
    [
        ("area (sq km)", "sq km"),
        ("distance in mile", "mile"),
        ("population (2010)", ""),
        ("people (per mile)", ""),
        ("left foot", ""),
        ("deaths (m)", ""),
    ],
)
def test_unit_in_the_name_of_a_relation(label, unit):
    lines = [f'<{E}{node}> <{E}p1> "{number}" .' for node, number in ("a3", "b5")]
    answer = difference([*lines, f'<{E}p1> <{LABEL}> "{label}" .'], "rdfs", E + "p1")
    assert answer.answers[0].unit == unit


def amounts(currencies: list[str], operation: Operation | None = None):
    """Answer with amounts of money from 100 on, each in its currency."""
    amount, currency = (f"{FB}measurement_unit.money_value.{each}" for each in ("amount", "currency"))
    lines = []
    for number, unit in enumerate(currencies):
        lines += [
            f"<{FB}m.t> <{FB}a.b.money> <{FB}m.v{number}> .",
            f'<{FB}m.v{number}> <{amount}> "{100 + number}"{DECIMAL} .',
            f"<{FB}m.v{number}> <{currency}> <{FB}m.{unit}> .",
            f'<{FB}m.{unit}> <{FB}type.object.name> "{unit}"@en .',
        ]
    topic = Entity(FB + "m.t")
    candidate = Candidate(RelationPath(topic, (Step(FB + "a.b.money"), Step(amount))), "", operation=operation)
    with memory_graph(lines) as graph:
        return answer_of_path(graph, candidate, None, asked(graph, topic), Trace())


def test_numbers_beyond_the_evidence_have_no_unit_of_other_numbers():
    units = {each.name: each.unit for each in amounts(["dollar"] * 20 + ["euro"] * 5).answers}
    assert units == {str(100 + n): "dollar" if n < 20 else "" for n in range(25)}
    mixed = amounts(["dollar", "euro"])
    assert [each.unit for each in mixed.answers] == ["dollar", "euro"]
    assert mixed.notes == ("The numbers have different units: dollar, euro.",)


@pytest.mark.parametrize(
    ("relation", "noted"),
    [("government.government_position_held.to", True), ("people.marriage.end_date", True), ("film.film.sequel", False)],
)
def test_absence_of_an_end_date_stands_for_the_present(relation, noted):
    condition = Condition(1, (Step(FB + relation),), negated=True)
    found = present_notes([condition], ["there is no “to” of ?e1"], today=date(2026, 11, 23))
    assert found == (["Read “now” as 2026-11-23: there is no “to” of ?e1."] if noted else [])
