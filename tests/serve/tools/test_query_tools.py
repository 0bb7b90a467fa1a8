"""A client's own queries only read, only the graph that is open, and are never cut short."""

from __future__ import annotations

import pytest

from kgqa.errors import PartialResult, QueryRejected
from kgqa.serve.tools.query_tools import explain_query, run_query
from tests.memory_graph import memory_graph

CAPITAL = "SELECT ?c { ?c <http://rdf.freebase.com/ns/location.country.capital> ?o }"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
        r"SELECT * { S\u0045RVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
        "PREFIX a: <urn:a:> SELECT * { ?s ?p ?o . SERVICE SILENT a:b { ?s ?p ?o } }",
        "LOAD <file:///etc/passwd>",
        "SELECT * { ?s ?p ?o } ; LOAD <http://127.0.0.1:9/>",
        "INSERT DATA { <urn:a> <urn:b> <urn:c> }",
        "PREFIX a: <urn:a:> DELETE WHERE { ?s ?p ?o }",
        "DROP ALL",
        "CLEAR DEFAULT",
        "SELECT * FROM <file:///etc/passwd> { ?s ?p ?o }",
        "PREFIX a: <urn:a:> SELECT * FROM a:b { ?s ?p ?o }",
        "SELECT * { GRAPH ?g { ?s ?p ?o } }",
        r"SELECT * { GR\u0041PH ?g { ?s ?p ?o } }",
        # "less than" without a space: the longest match is an IRI, but the engine finds what is in it
        "PREFIX : <http://127.0.0.1:9/> SELECT * { FILTER(1<2)SERVICE:x#>\n{ ?s ?p ?o } }",
        "PREFIX a: <http://127.0.0.1:9/> SELECT * { FILTER(true<a:b)SERVICE a:x#>\n{ ?s ?p ?o } }",
        "SELECT * { FILTER(1<2)GRAPH?g#>\n{ ?s ?p ?o } }",
        "SELECT * { FILTER(1<2)#>'''\nGRAPH ?g { ?s ?p ?o } #'''\n}",
        "PREFIX : <urn:g:> SELECT (1<2AS?x)FROM:closed#>\n{ ?s ?p ?o }",
        # the engine ends such a name at its second dot
        "BASE <urn:x:> PREFIX p: <r> SELECT * { ?s p:a p:a.b.GRAPH ?g { ?s ?p ?o } }",
        "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
        "DESCRIBE <urn:a>",
        "",
        "SELECT * {",
        "SELECT ?s { ?s ?p ?o } #" + "x" * 100_000,
    ],
)
def test_a_query_that_does_more_than_read_the_open_graph_is_refused(demo, query):
    with pytest.raises(QueryRejected):
        run_query(demo, query, seconds=5, rows=100)


def test_a_result_that_is_too_long_is_an_error_and_no_short_result(demo):
    total = len(run_query(demo, CAPITAL, seconds=5, rows=1000)["rows"])
    assert len(run_query(demo, CAPITAL, seconds=5, rows=total)["rows"]) == total
    with pytest.raises(PartialResult, match="more than"):
        run_query(demo, CAPITAL, seconds=5, rows=total - 1)


def test_what_would_take_long_to_parse_or_hold_much_memory_is_refused(demo):
    with pytest.raises(QueryRejected, match="more than 10,000 characters"):
        explain_query(demo, f"SELECT * {{ ?s ?p {','.join(f'?o{number}' for number in range(2000))} }}")
    doubled = " ".join(f"BIND(CONCAT(?o{at}, ?o{at}) AS ?o{at + 1})" for at in range(20))
    with pytest.raises(PartialResult, match="characters"):
        run_query(demo, f"SELECT * {{ BIND('abcdefghijklmnop' AS ?o0) {doubled} }}", seconds=5, rows=9)


def test_a_query_reads_the_view_and_no_graph_beside_it():
    lines = [f'<urn:a> <urn:p> "{name}" <urn:g:{name}> .' for name in ("open", "closed")]
    graph = memory_graph(lines, view=["urn:g:open"])
    open_, more = "SELECT ?o { ?s ?p ?o }", "SELECT ?o FROM <urn:g:closed> WHERE { ?s ?p ?o }"
    assert [row[0]["value"] for row in run_query(graph, open_, seconds=5, rows=9)["rows"]] == ["open"]
    counted = "SELECT (EXISTS { ?s ?p 'closed' } AS ?found) WHERE {}"
    assert run_query(graph, counted, seconds=5, rows=9)["rows"][0][0]["value"] == "false"
    with pytest.raises(QueryRejected, match="FROM"):
        run_query(graph, more, seconds=5, rows=9)
    assert run_query(graph, more, seconds=5, rows=9, graphs=["urn:g:closed"])["rows"][0][0]["value"] == "closed"


def test_prefixes_of_the_graph_need_no_declaration(demo):
    query = "SELECT ?f WHERE { ?f ns:film.film.directed_by ?d } LIMIT 5"
    assert len(run_query(demo, query, seconds=5, rows=9)["rows"]) == 5
    assert "?f has “film directed by”: ?d" in explain_query(demo, query)
    own = f"PREFIX ns: <urn:other:> {query}"  # a declaration counts
    assert run_query(demo, own, seconds=5, rows=9)["rows"] == []
    with pytest.raises(QueryRejected, match="Not valid SPARQL"):  # whatever the prefixes, this is no “less than”
        run_query(demo, "SELECT * { ?s ns:p ?o FILTER(1<ns:x)#>\n}", seconds=5, rows=9)


@pytest.mark.parametrize(
    ("query", "said", "explained"),
    [
        ("SELECT ?f { ?f no:film ?d }", "Unknown prefix no. Declare it: PREFIX no: <...>", None),
        ("SELECT ?f { ?f :film ?d }", "Unknown prefix :. Declare it: PREFIX : <...>", None),
        ("SELECT ?f { 'no:film' ?p }", "at line 1, column 26.", "at or after line 1, column 13."),
        ("SELECT ?f\n{ ?f ns:film.film.genre }", "at line 2, column 25.", "at or after line 2, column 3."),
        ("SELECT ?f {\t?f ns:a 1 } LIMIT", "at line 1, column 30.", "at or after line 1, column 25."),
        ("SELECT (COUNT(*) AS ?c) ?f { ?f ?p ?o }", "The SELECT contains a variable that is unbound.", ""),
    ],
)
def test_what_is_not_valid_is_said_in_one_line_with_its_place_in_the_query_as_written(demo, query, said, explained):
    with pytest.raises(QueryRejected) as error:
        run_query(demo, query, seconds=5, rows=9)
    assert str(error.value).endswith(said) and "\n" not in str(error.value)
    if explained != "":
        with pytest.raises(QueryRejected) as error:
            explain_query(demo, query)
        assert str(error.value) == (said if explained is None else f"Not valid SPARQL {explained}")
