"""What a question asks for, compared with what is at the ends of paths."""

from __future__ import annotations

import pytest

from kgqa.model import Step
from kgqa.model.conditions import NUMBERS, XSD
from kgqa.schema import bundled_schema
from kgqa.search.kinds import AskedKind, value_kinds

from ..ferries import FERRIES, V
from ..memory_graph import turtle_graph

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


@pytest.fixture(scope="module")
def graph():
    return turtle_graph(FERRIES)


def kinds(*names: str) -> frozenset[str]:
    return frozenset(XSD + name if name[0].islower() else V + name for name in names)


@pytest.mark.parametrize(
    ("datatypes", "kind"),
    [
        (NUMBERS, "number"),
        ([XSD + name for name in ("date", "dateTime", "gYear", "gYearMonth", "time")], "date"),
        ([XSD + "boolean"], "boolean"),
        ([XSD + "string", RDF + "langString"], "text"),
        ([V + "Ferry"], "thing"),
    ],
)
def test_kind_of_a_datatype(datatypes, kind):
    assert value_kinds(datatypes, bundled_schema("rdfs")) == {kind}


@pytest.mark.parametrize(
    ("value", "noun", "fits"),
    [
        # the ends are: ferries, persons, a date, a number, a text, true or false, unknown
        ("", "ferry", [1, -1, -1, -1, 0, -1, 0]),
        ("", "ferries", [1, -1, -1, -1, 0, -1, 0]),
        ("", "Fähre", [1, -1, -1, -1, 0, -1, 0]),
        ("", "shape", [0, 0, 0, 0, 0, 0, 0]),  # no class
        ("date", "", [-1, -1, 1, 0, 0, -1, 0]),
        ("year", "year", [0, 0, 0.5, 0, 0, -1, 0]),
        ("number", "", [0, 0, -1, 1, 0, -1, 0]),
        ("number", "ferries", [1, -1, -1, 0, 0, -1, 0]),  # they are counted
        ("thing", "", [0, 0, -1, -1, 0, -1, 0]),
        ("", "", [0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_ends_that_fit(graph, value, noun, fits):
    ends = [
        kinds("Ferry"), kinds("Person"), kinds("date"), kinds("integer"), kinds("string"), kinds("boolean"), kinds()
    ]  # fmt: skip
    assert AskedKind(graph, value, noun).fits(ends) == fits


@pytest.mark.parametrize(
    ("noun", "may_be_further"),
    [("harbour town", True), ("towns", True), ("harbour", False), ("operator", False), ("", False)],
)
def test_noun_is_a_class_if_it_is_the_last_word_of_its_name(graph, noun, may_be_further):
    assert AskedKind(graph, "", noun).may_be_further == may_be_further


def test_class_of_which_no_path_leads_to_instances_fits_none(graph):
    assert AskedKind(graph, "", "person").fits([kinds("Ferry"), kinds("date"), kinds()]) == [-1, -1, 0]


def test_kinds_of_the_ends_of_steps(graph):
    steps = {
        "operator": {V + "ShippingCompany"},
        "seats": {XSD + "integer"},
        "launched": {XSD + "date"},
        "sailsAtNight": {XSD + "boolean"},
        "hull": {XSD + "string"},
        "homePort": {V + "HarbourTown"},
    }
    found = graph.paths.kinds([Step(V + name) for name in steps])
    assert {step.relation.removeprefix(V): set(each) for step, each in found.items()} == steps
    assert graph.paths.kinds([Step(V + "operator", "in")]) == {Step(V + "operator", "in"): {V + "Ferry"}}


MIXED = """
@prefix : <http://e/> .
:a :part :b , :c ; :note "one" , "two", 3 ; :part2 :b , :x .
:b a :Gear , :Item . :c a :Wheel , :Item . :x :note "none" .
"""


def test_kind_is_what_more_than_half_of_the_ends_have():
    found = turtle_graph(MIXED).paths.kinds([Step(f"http://e/{name}") for name in ("part", "note", "part2")])
    assert [set(each) for each in found.values()] == [{"http://e/Item"}, {XSD + "string"}, set()]


DECLARED = """
@prefix : <http://e/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:part rdfs:range :Part . :maker rdfs:range :Firm .
:a :part :b ; :maker :f ; :sold :s ; :seen :s ; :heard :s . :b a :Gear .
"""


def test_declared_type_counts_where_the_ends_have_none():
    found = turtle_graph(DECLARED).paths.kinds([Step("http://e/part"), Step("http://e/maker"), Step("http://e/sold")])
    assert [set(each) for each in found.values()] == [{"http://e/Gear"}, {"http://e/Firm"}, set()]
