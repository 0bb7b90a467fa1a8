"""Canonical form of values, and the listed values on which the two engines differ."""

from __future__ import annotations

import pytest

from kgqa.graph.endpoint.replies import canonical_text
from kgqa.graph.query.text import render_term
from kgqa.model import Candidate, Entity, Literal, RelationPath, Step
from tests.graph.graph_factories import EmbeddedGraphFactory, VirtuosoGraphFactory

XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.mark.parametrize(
    ("text", "datatype", "expected"),
    [
        ("1", "boolean", "true"),
        ("0", "boolean", "false"),
        ("maybe", "boolean", "maybe"),
        ("1e+10", "double", "10000000000"),
        ("1.37101e+06", "double", "1371010"),
        ("-0.0", "double", "-0"),
        ("5e-07", "double", "0.0000005"),
        ("1e999", "double", "INF"),
        ("NaN", "double", "NaN"),
        ("1e99999999", "double", "1e99999999"),
        ("-044", "gYear", "-0044"),
        ("-044-03-15", "date", "-0044-03-15"),
        ("-5-03-15T10:00:00Z", "dateTime", "-0005-03-15T10:00:00Z"),
        ("-753-04", "gYearMonth", "-0753-04"),
        ("-12345-01-01", "date", "-12345-01-01"),
    ],
)
def test_canonical_form_is_that_of_the_embedded_engine(text, datatype, expected):
    assert canonical_text(text, XSD + datatype) == expected


# --- both engines

SAME = [
    Literal("x"), Literal(""), Literal(" x "), Literal("x", language="en"), Literal("x", language="en-US"), Literal("", language="de"),
    Literal("5"), Literal("é"), Literal("e\u0301"), Literal("😀"), Literal("\u202e\u2028\u200b\ufeff\ufffe"), Literal("a\x1b\x7f"), Literal("a\x08b\x85"),
    Literal("a\"b'c\\d\ne\tf\rg"), Literal("\\u0041"), Literal("%41 &amp;"), Literal("nodeID://b1"), Literal("x" * 5000),
    *(Literal(text, XSD + "integer") for text in ("5", "05", "-0", "2147483647")),
    *(Literal(text, XSD + "decimal") for text in ("1.0", "1.50", "0.1", "123456789.123456")),
    *(Literal(text, XSD + "double") for text in ("1e0", "1.5", "1.0E10", "1371010", "-0.0", "INF", "1e-5", "668000.0")),
    *(Literal(text, XSD + "float") for text in ("0.5", "1868.0", "1e10")),
    *(Literal(text, XSD + "boolean") for text in ("true", "false", "1", "0")),
    *(Literal(text, XSD + "date") for text in ("2020-01-02", "2020-01-02Z", "2020-01-02+01:00", "0044-03-15", "-0044-03-15", "10000-01-01")),
    *(Literal(text, XSD + "dateTime") for text in ("2020-01-02T03:04:05Z", "2020-01-02T03:04:05.678Z", "2020-01-02T03:04:05+02:00", "-0753-04-21T00:00:00Z")),
    *(Literal(text, XSD + "gYear") for text in ("1868", "-0044", "0005")),
    Literal("1868-05", XSD + "gYearMonth"), Literal("--05-06", XSD + "gMonthDay"), Literal("10:20:30", XSD + "time"),
    Literal("http://x/", XSD + "anyURI"), Literal("x", "http://e/type"), Literal("a b", XSD + "token"),
    Entity("http://e/ü"), Entity("http://e/%C3%BC"), Entity("http://E/😀"), Entity("http://e/\u2028"), Entity("http://e/x?a=b&c=d#f'(x)"), Entity("urn:x"),
]  # fmt: skip
DIFFERENT = {
    # Virtuoso returns six digits of a double or float in every result format
    Literal("37.774929", XSD + "double"): Literal("37.7749", XSD + "double"),
    Literal("107476259.0", XSD + "double"): Literal("107476000", XSD + "double"),
    # and fifteen decimal places of a decimal
    Literal("3.14159265358979323846", XSD + "decimal"): Literal("3.141592653589793", XSD + "decimal"),
    # the embedded engine has one integer type
    Literal("5", XSD + "int"): Literal("5", XSD + "int"),
    Literal("5", XSD + "nonNegativeInteger"): Literal("5", XSD + "nonNegativeInteger"),
    # the loader of Virtuoso turns integers beyond 32 bits into decimals
    Literal("2147483648", XSD + "integer"): Literal("2147483648", XSD + "decimal"),
    # and rewrites XML
    Literal("<a/>", "http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral"): Literal("<a />", "http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral"),
}  # fmt: skip
"""Values that Virtuoso returns differently from the embedded engine."""
NOT_QUERYABLE = {Literal("10:20:30", XSD + "time"), Literal("INF", XSD + "double")}
"""Values that Virtuoso 7 loads and returns, but does not find when a query contains them."""


@pytest.fixture(scope="module")
def graphs_of_values(tmp_path_factory, virtuoso_server):
    makers = EmbeddedGraphFactory(tmp_path_factory.mktemp("values")), VirtuosoGraphFactory(virtuoso_server)
    values = [*SAME, *DIFFERENT]
    lines = [f"<http://e/s{n}> <http://e/p{n}> {render_term(value)} ." for n, value in enumerate(values)]
    yield [maker.make(lines, "rdfs") for maker in makers]
    for maker in makers:
        maker.close()


def ends(graph, number: int):
    (value,) = graph.paths.ends(
        [Candidate(RelationPath(Entity(f"http://e/s{number}"), (Step(f"http://e/p{number}"),)))]
    )[0].values
    return value


def test_values_are_equal_in_both_stores(graphs_of_values):
    embedded, virtuoso = graphs_of_values
    for number, value in enumerate(SAME):
        assert ends(embedded, number) == ends(virtuoso, number), value
    for number, (value, expected) in enumerate(DIFFERENT.items(), start=len(SAME)):
        assert ends(virtuoso, number) == expected != ends(embedded, number), value
