"""Classification of replies by status, headers, body and rows."""

from __future__ import annotations

import re

import pytest

from kgqa.errors import LoginRefused, PartialResult, QueryRejected, StoreTimeout, StoreUnavailable
from kgqa.graph.endpoint.profiles import profile_named
from kgqa.graph.endpoint.reply_errors import (
    body_error,
    check_complete,
    error_text,
    is_total_aggregate,
    reply_error,
)
from kgqa.graph.store import Rows

GENERIC, VIRTUOSO = profile_named("generic"), profile_named("virtuoso")
JSON = {"content-type": "application/sparql-results+json; charset=utf-8"}
HTML = {"content-type": "text/html; charset=UTF-8"}
URL = "http://e/sparql"
QUERY = "SELECT ?x WHERE { ?x ?p 'Operation timed out' }"


def verdict(status, headers=JSON, body="", query=QUERY, profile=GENERIC):
    return reply_error(status, headers, body, profile, URL, query=query)


@pytest.mark.parametrize(
    ("status", "headers", "body", "error", "message"),
    [
        (200, {**JSON, "x-sql-state": "S1TAT"}, "", StoreTimeout, "time limit"),
        (206, JSON, "", PartialResult, "206"),
        (200, HTML, "", StoreUnavailable, "a web page"),
        (200, {"content-type": "text/csv"}, "", StoreUnavailable, "text/csv"),
        (200, {"content-type": "application/sparql-results+xml"}, "", StoreUnavailable, "xml"),
        (204, {}, "", StoreUnavailable, "no result"),
        (201, {}, "", StoreUnavailable, "no result"),
        (301, {**HTML, "location": "https://e/query"}, "", StoreUnavailable, "moved .* to https://e/query"),
        (308, {}, "", StoreUnavailable, "new address"),
        (400, JSON, "Virtuoso 37000 Error SP030: syntax error", QueryRejected, "SP030"),
        (400, HTML, "<h1>Bad</h1> query", QueryRejected, "Bad query"),
        (401, {}, "", LoginRefused, "KGQA_ENDPOINT_PASSWORD"),
        (403, {}, "Forbidden", LoginRefused, "refuses access"),
        (404, {}, "", StoreUnavailable, "No SPARQL endpoint"),
        (405, {}, "no such method", StoreUnavailable, "No SPARQL endpoint"),
        (406, {}, "", StoreUnavailable, "JSON"),
        (408, {}, "", StoreTimeout, "408"),
        (413, {}, "", QueryRejected, "too long"),
        (414, HTML, "", QueryRejected, "too long"),
        (429, {}, "Slow down", StoreUnavailable, "Slow down"),
        (500, {}, "Virtuoso S1T00 Error SR171: Transaction timed out", StoreTimeout, "S1T00"),
        (500, {}, "Virtuoso HY008 Error SR203: Async statement killed by SQLCancel.", StoreTimeout, "SR203"),
        (500, {}, '{"head": {"vars": ["x"]}, "results": {"bindings": [ {', StoreTimeout, "while sending"),
        (500, {}, "Virtuoso 42000 Error The estimated execution time 900 (sec) exceeds", StoreTimeout, "estimated"),
        (500, {}, "Virtuoso 42000 Error SR186: No permission to execute", LoginRefused, "SPARQL_UPDATE"),
        (500, {}, "SPARQL-QUERY: queryStr=ASK {}\njava.util.concurrent.TimeoutException\n\tat a.b(C.java:1)", StoreTimeout, "500"),
        (500, {}, "Out of memory", QueryRejected, "Out of memory"),
        (500, HTML, "<h1>Internal</h1>", StoreUnavailable, "error page"),
        (502, HTML, "", StoreUnavailable, "cannot answer now"),
        (503, {}, "Query evaluation took too long", StoreTimeout, "too long"),
        (504, HTML, "", StoreTimeout, "504"),
        (429, {}, '{"query": "ASK {}", "status": "ERROR", "exception": "Operation timed out."}', StoreTimeout, "429"),
        (599, {}, "", QueryRejected, "599"),
    ],
)  # fmt: skip
def test_other_replies_are_errors_with_advice(status, headers, body, error, message):
    found = verdict(status, headers, body)
    assert type(found) is error
    assert re.search(message, str(found))
    assert (str(found).isprintable() and str(found).rstrip(")").endswith((".", "?"))) or "says: " in str(found)


@pytest.mark.parametrize(
    "body",
    [
        f"Virtuoso 37000 Error SP030: syntax error\n\nSPARQL query:\n{QUERY}",
        f"SPARQL-QUERY: queryStr={QUERY}\norg.openrdf.query.MalformedQueryException",
        f'{{"query": "{QUERY}", "exception": "Invalid SPARQL query"}}',
    ],
)
def test_error_words_in_the_query_are_ignored(body):
    assert isinstance(verdict(400, {}, body), QueryRejected)


def test_server_message_is_one_clean_line():
    text = error_text("<h1>No\x1b[31m\u202e</h1>\n\n query", "")
    assert text == "No[31m query"
    assert len(str(verdict(400, {}, "x" * 100_000))) < 500
    assert error_text('{"message": "Bad"}', "") == "Bad"
    assert "{" in error_text("{" * 100_000, "")


def test_error_after_the_rows():
    cut = PartialResult("It breaks off.")
    assert isinstance(body_error(cut, b'{"x": \n !!!!>># An error ... Operation timed out.', GENERIC), StoreTimeout)
    assert isinstance(body_error(cut, b'"value": "java.util.concurrent.TimeoutException\n\tat', GENERIC), StoreTimeout)
    assert body_error(cut, b'{"x": {"type": "ur', GENERIC) is cut


def rows(count):
    return Rows(("x",), [(None,)] * count)


SELECT = "SELECT ?x WHERE { ?x ?p ?o }"


@pytest.mark.parametrize(
    ("query", "count", "caps", "headers", "cut"),
    [
        (SELECT, 100, [100], {}, True),
        (SELECT, 99, [100], {}, False),
        (SELECT, 101, [100], {}, False),
        (SELECT, 0, [0], {}, False),
        (SELECT, 100, [], {"x-sparql-maxrows": "100"}, True),
        (SELECT, 100, [], {"x-sparql-maxrows": "yes"}, True),
        (SELECT, 3, [], {"x-sparql-maxrows": "100"}, True),
        (SELECT, 3, [], {"content-type": "application/json", "server": "100"}, False),
        (SELECT + " LIMIT 100", 100, [], {"x-sparql-maxrows": "100"}, False),
        (SELECT + " LIMIT 200", 100, [], {"x-sparql-maxrows": "100"}, True),
        (SELECT + " LIMIT 100", 100, [100], {}, False),
        (SELECT + " limit 100 offset 200", 100, [100], {}, False),
        ("SELECT ?x { { SELECT ?x { ?x ?p ?o } LIMIT 100 } ?x ?q ?y }", 100, [100], {}, True),
        ("SELECT ?x { ?x ?p 'LIMIT 100' } # LIMIT 100", 100, [100], {}, True),
        ("SELECT ?x { ?x <http://e/LIMIT> 100 }", 100, [100], {}, True),
        (SELECT, 1048576, [], {}, True),
    ],
)  # fmt: skip
def test_result_of_row_cap_size_is_partial(query, count, caps, headers, cut):
    profile = VIRTUOSO if count > 10_000 else GENERIC
    if cut:
        with pytest.raises(PartialResult, match="row cap"):
            check_complete(rows(count), query, profile, caps, headers)
    else:
        check_complete(rows(count), query, profile, caps, headers)


@pytest.mark.parametrize(
    ("query", "always_has_a_row"),
    [
        ("SELECT (COUNT(*) AS ?n) WHERE { ?x ?p ?o }", True),
        ("SELECT (COUNT(*) AS ?n) FROM <http://e/g> { ?x ?p ?o }", True),
        ("PREFIX ns: <http://e/>\nSELECT (count ( DISTINCT ?x) AS ?n) (MAX(?y) AS ?m) { ?x ns:p ?y }", True),
        ("SELECT (GROUP_CONCAT(?x; separator=', ') AS ?n) WHERE { ?x ?p ?o }", True),
        ("SELECT (SUM(?x) + 1 AS ?n) { ?x ?p ?o } LIMIT 1", True),
        ("SELECT ?x (COUNT(*) AS ?n) WHERE { ?x ?p ?o } GROUP BY ?x", False),
        ("SELECT (COUNT(*) AS ?n) WHERE { ?x ?p ?o } GROUP BY ?x", False),
        ("SELECT (COUNT(*) AS ?n) WHERE { ?x ?p ?o } HAVING (COUNT(*) > 5)", False),
        ("SELECT ?x (COUNT(*) AS ?n) WHERE { ?x ?p ?o }", False),
        ("SELECT ?x WHERE { ?x ?p ?o }", False),
        ("SELECT ?x WHERE { { SELECT ?x (COUNT(?o) AS ?n) WHERE { ?x ?p ?o } GROUP BY ?x } FILTER(?n > 3) }", False),
        ("SELECT ?n WHERE { { SELECT (COUNT(?o) AS ?n) WHERE { ?x ?p ?o } } FILTER(?n > 3) }", False),
        ("SELECT ?x WHERE { ?x ?p 'COUNT (x)' }", False),
        ("SELECT (STR(?x) AS ?count) WHERE { ?x ?p ?o }", False),
    ],
)  # fmt: skip
def test_count_without_row_is_an_error(query, always_has_a_row):
    assert is_total_aggregate(query) is always_has_a_row
    if always_has_a_row:
        with pytest.raises(StoreTimeout, match="no row as the result of a count"):
            check_complete(rows(0), query, GENERIC, [], {})
    else:
        check_complete(rows(0), query, GENERIC, [], {})
