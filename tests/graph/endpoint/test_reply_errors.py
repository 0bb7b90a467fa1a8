"""Replies that only their status, header or wording distinguishes from a result; those of real servers: test_store."""

from __future__ import annotations

import re

import pytest

from kgqa.errors import PartialResult, QueryRejected, StoreTimeout, StoreUnavailable
from kgqa.graph.endpoint.options import profile_named
from kgqa.graph.endpoint.replies import check_complete, error_text, reply_error
from kgqa.graph.store import Rows

GENERIC, VIRTUOSO = profile_named("generic"), profile_named("virtuoso")
HTML = {"content-type": "text/html; charset=UTF-8"}
QUERY = "SELECT ?x WHERE { ?x ?p 'Operation timed out' }"


def verdict(status, headers, body="", **options):
    return reply_error(status, headers, body, GENERIC, "http://e/sparql", query=QUERY, **options)


@pytest.mark.parametrize(
    ("status", "headers", "body", "error", "message"),
    [
        (200, {"content-type": "text/csv"}, "", StoreUnavailable, "text/csv"),
        (204, {}, "", StoreUnavailable, "no result"),
        (400, HTML, "<h1>Bad</h1> query", QueryRejected, "Bad query"),
        # the words of a timeout stand in the query that the message repeats
        (400, {}, f"Virtuoso 37000 Error SP030: syntax error\n\nSPARQL query:\n{QUERY}", QueryRejected, "SP030"),
        (400, {}, f"SPARQL-QUERY: queryStr={QUERY}\norg.openrdf.query.MalformedQueryException", QueryRejected, "org"),
        (400, {}, f'{{"query": "{QUERY}", "exception": "Invalid SPARQL query"}}', QueryRejected, "Invalid"),
        (406, {}, "", StoreUnavailable, "JSON"),
        (408, {}, "", StoreTimeout, "408"),
        (500, {}, "Virtuoso HY008 Error SR203: Async statement killed by SQLCancel.", StoreTimeout, "SR203"),
        (500, {}, "Virtuoso 42000 Error The estimated execution time 900 (sec) exceeds", StoreTimeout, "estimated"),
        (500, {}, "Out of memory", QueryRejected, "Out of memory"),
        (503, {}, "Query evaluation took too long", StoreTimeout, "too long"),
        (599, {}, "x" * 100_000, QueryRejected, "599"),
    ],
)  # fmt: skip
def test_other_replies_are_errors_with_advice(status, headers, body, error, message):
    found = verdict(status, headers, body)
    assert type(found) is error and re.search(message, str(found))
    assert str(found).isprintable() and len(str(found)) < 500


def test_server_message_is_one_clean_line():
    assert error_text("<h1>No\x1b[31m\u202e</h1>\n\n query", "") == "No[31m query"
    assert error_text('{"message": "Bad"}', "") == "Bad"
    assert "{" in error_text("{" * 100_000, "")


def check(query: str, count: int, caps=(), headers=None) -> None:
    check_complete(Rows(("x",), [(None,)] * count), query, VIRTUOSO, caps, headers or {})


SELECT = "SELECT ?x WHERE { ?x ?p ?o }"
HEADER = {"x-sparql-maxrows": "100"}


@pytest.mark.parametrize(
    ("query", "count", "caps", "headers", "cut"),
    [
        (SELECT, 100, [100], {}, True),
        (SELECT, 99, [100], {}, False),
        (SELECT, 1_048_576, [], {}, True),
        (SELECT, 100, [], {"x-sparql-maxrows": "yes"}, True),
        (SELECT, 3, [], HEADER, True),
        (SELECT + " LIMIT 100", 100, [], HEADER, False),
        (SELECT + " LIMIT 200", 100, [], HEADER, True),
        ("SELECT ?x { { SELECT ?x { ?x ?p ?o } LIMIT 100 } ?x ?q ?y }", 100, [100], {}, True),
        ("SELECT ?x { ?x ?p 'LIMIT 100' } # LIMIT 100", 100, [100], {}, True),
    ],
)
def test_result_of_row_cap_size_is_partial(query, count, caps, headers, cut):
    if not cut:
        check(query, count, caps, headers)
        return
    with pytest.raises(PartialResult, match="row cap"):
        check(query, count, caps, headers)


def test_count_without_row_is_an_error():
    for query in (
        "PREFIX ns: <http://e/>\nSELECT (count ( DISTINCT ?x) AS ?n) (MAX(?y) AS ?m) { ?x ns:p ?y }",
        "SELECT (SUM(?x) + 1 AS ?n) FROM <http://e/g> { ?x ?p ?o } LIMIT 1",
    ):
        with pytest.raises(StoreTimeout, match="no row as the result of a count"):
            check(query, 0)
    for query in (
        "SELECT (COUNT(*) AS ?n) WHERE { ?x ?p ?o } GROUP BY ?x",
        "SELECT (COUNT(*) AS ?n) WHERE { ?x ?p ?o } HAVING (COUNT(*) > 5)",
        "SELECT ?x (COUNT(*) AS ?n) WHERE { ?x ?p ?o }",
        "SELECT ?n WHERE { { SELECT (COUNT(?o) AS ?n) WHERE { ?x ?p ?o } } FILTER(?n > 3) }",
    ):
        check(query, 0)
