"""Gold queries become one candidate whose query returns the same answers, or a reason why there is none."""

from __future__ import annotations

import pytest

from kgqa.model import Entity
from kgqa.testing.gold_candidates import gold_candidate
from kgqa.training.gold_queries import Untranslatable

from ..memory_graph import memory_graph

NS = "http://rdf.freebase.com/ns/"
XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIX = f"PREFIX : <{NS}> PREFIX xsd: <{XSD}> "
FACTS = """
ada governs p1; ada governs p2; ada governs p3; ada knows bo; bo knows ada
p1 country x; p1 from "1998-05-01"; p1 to "2001"; p1 title king
p2 country y; p2 from "2001-02-01"; p2 title king
p3 country z; p3 to "1997"; p3 title duke
x size "5"; y size "12"; z size "7.5"; x founded "1900-01-02"; y founded "1850"; z founded "1901"
x has a; x has b; y has a; z type kingdom; y speaks l1; y speaks l2; z speaks l1
x mayor m1; m1 person ada; m1 year "1999"; x mayor m2; m2 person bo; m2 year "2005"
"""


def line(fact: str) -> str:
    terms = [term if term[0] == '"' else f"<{NS}{term}>" for term in fact.split()]
    return " ".join(terms) + " ."


@pytest.fixture(scope="module")
def graph():
    with memory_graph([line(fact) for facts in FACTS.strip().split("\n") for fact in facts.split(";")]) as made:
        yield made


P = ":ada :governs ?y . ?y :country ?x . "
IN_1999 = (
    'FILTER(NOT EXISTS { ?y :from ?a } || EXISTS { ?y :from ?b . FILTER(str(?b) <= "1999-12-31") }) '
    'FILTER(NOT EXISTS { ?y :to ?c } || EXISTS { ?y :to ?d . FILTER(str(?d) >= "1999-01-01") })'
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT ?x { FILTER(?x != :ada) " + P + "}", "x y z"),
        ("SELECT ?x { " + P + "?x :speaks :l2 ; :speaks :l1 }", "y"),
        ("SELECT ?x { " + P + "?y :title ?t FILTER(?t = :king) }", "x y"),
        ("SELECT ?x { " + P + "?y :title :king " + IN_1999 + "}", "x"),
        ("SELECT ?x { " + P + "FILTER NOT EXISTS { ?y :to ?t } }", "y"),
        ("SELECT ?x { " + P + "MINUS { ?x :has :b } }", "y z"),
        ("SELECT ?x { " + P + "?x :size ?s FILTER(xsd:double(?s) > 7) }", "y z"),
        ("SELECT ?x { " + P + "?x :founded ?f FILTER(YEAR(?f) < 1901) }", "x y"),
        ("SELECT ?x { " + P + "?x :size '5' }", "x"),
        ("SELECT ?x { " + P + "?x :size ?s } ORDER BY DESC(xsd:double(?s)) LIMIT 1 OFFSET 1", "z"),
        ("SELECT ?x { " + P + "?x :founded ?s } ORDER BY str(?s) LIMIT 1", "y"),
        ("SELECT ?x { " + P + "?y :from ?s } ORDER BY DESC(xsd:datetime(?s)) LIMIT 1", "y"),
        ("SELECT ?x { " + P + "?x :has ?h } GROUP BY ?x ORDER BY DESC(COUNT(?h)) LIMIT 1", "x"),
        ("SELECT ?s { " + P + "?x :size ?s } ORDER BY DESC(xsd:double(?s)) LIMIT 1", "12"),
        ("SELECT (MAX(?s) AS ?m) { " + P + "?x :size ?s }", "12"),
        ("SELECT (SUM(?s) AS ?m) { " + P + "?x :size ?s }", "24.5"),
        ("SELECT (COUNT(DISTINCT ?x) AS ?n) { " + P + "}", "3"),
        ("SELECT (COUNT(?x) AS ?n) { SELECT DISTINCT ?x { " + P + "VALUES ?t { :kingdom } ?x :type ?t } }", "1"),
        ("SELECT ?x { " + P + "?x :founded ?f FILTER(?f < '1900-01-03') }", "x y"),
        ("ASK { :ada :governs/:country :z }", "true"),
        ("ASK { :ada :governs/:country :a }", "false"),
        ("SELECT ?r { :x :size ?a . :y :size ?b BIND(IF(?a > ?b, :x, :y) AS ?r) }", "y"),
        ("SELECT ?x { VALUES ?a { :ada } ?a :governs ?y . ?y :country ?x . FILTER EXISTS { ?x :has :b } }", "x"),
        ("SELECT ?x { :ada :governs ?y . ?y :country ?c . ?c :speaks ?x FILTER(?c = :y) }", "l1 l2"),
        # the path begins at the entity that leads past the node with two conditions
        ("SELECT ?x { " + P + "?x :mayor ?m . ?m :person :bo ; :year ?t FILTER(?t > 2000) }", "x"),
        ("SELECT ?x { " + P + "?x :mayor ?m . ?m :person :bo ; :year ?t FILTER(?t < 2000) }", ""),
        ("SELECT ?x { " + P + "OPTIONAL { ?x :size ?s } FILTER(?s < 10) }", "! unconnected parts"),
        ("SELECT ?x { " + P + "FILTER EXISTS { ?x :has ?h VALUES ?h { :b } } }", "x"),
        ("SELECT (ABS(?a - ?b) AS ?d) { :x :size ?a . :y :size ?b }", "7"),
        # the reasons
        ("ASK { :ada :knows :bo . :ada :governs :p9 }", "! fact without a variable"),
        ("ASK { :ada :governs ?y . ?y :title :king . :ada :knows :m1 }", "! fact without a variable"),
        (
            "SELECT (COUNT(DISTINCT ?y) AS ?n) { :ada :governs ?y . ?y :title ?t } "
            "GROUP BY ?t ORDER BY DESC(?n) LIMIT 1",
            "! a value per group",
        ),
        (
            "SELECT (ABS(?a - ?b) AS ?d) { :x :size ?a . :y :size ?b FILTER(?a > 100) }",
            "! computed value",
        ),
        ("SELECT ?x { " + P + "} VALUES ?x { :x }", "! HAVING, or VALUES after the pattern"),
        (
            "SELECT ?x { " + P + "?x :founded ?f FILTER(?f > '1900-01-02T12:00:00'^^xsd:dateTime) }",
            "! time of day",
        ),
        (
            "SELECT ?x { " + P + "?x :size ?s FILTER(?s < 10) } ORDER BY DESC(xsd:double(?s)) LIMIT 1",
            "! several conditions on a node beside the path",
        ),
        ("SELECT ?x { { :ada :knows ?x } UNION { ?x :knows :ada } }", "! pattern or filter GroupOrUnion"),
        ("SELECT ?x { :ada :knows* ?x }", "! relation that is not fixed"),
        ("SELECT ?x { :ada :knows ?x . ?x :knows ?z . ?z :knows ?x }", "! cycle, or unconnected parts"),
        ("SELECT ?x { :ada :knows ?x . ?y :knows :bo }", "! unconnected parts"),
        ("SELECT ?x { ?x :knows ?y }", "! no topic"),
        (
            "SELECT ?x { " + P + "?x :mayor ?m . ?m :person ?p . ?m :year ?t FILTER(?t > 2000) }",
            "! several conditions on a node beside the path",
        ),
        ("SELECT ?x { :ada :knows ?x } LIMIT 1", "! LIMIT without order by one value"),
        ("SELECT ?x { :ada :size ?x FILTER(?x + 1 > 2) }", "! comparison of computed values"),
        ("SELECT ?x { SERVICE <http://e/> { :ada :knows ?x } }", "! not allowed"),
        ("SELECT ?x { :ada :knows }", "! not valid SPARQL 1.1"),
        ("SELECT ?z { :ada :knows ?x BIND(?x AS ?z) }", "bo"),
    ],
)
def test_the_candidate_of_a_gold_query_returns_its_answers(graph, query, expected):
    if expected.startswith("!"):
        with pytest.raises(Untranslatable, match=expected[2:]):
            gold_candidate(PREFIX + query, [NS + "ada"])
        return
    found = gold_candidate(PREFIX + query, [NS + "ada"])
    options = {name: getattr(found, name) for name in ("joins", "conditions", "operation")}
    values = graph.run_exported(graph.answer_query(found.path, **options))
    texts = {value.iri.removeprefix(NS) if isinstance(value, Entity) else value.value for value in values}
    assert texts == set(expected.split())
