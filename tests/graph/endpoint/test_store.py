"""The endpoint store on a scripted server: every faulty reply is an error, never a partial result."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from kgqa.errors import PartialResult, QueryRejected, SettingsError, StoreError, StoreTimeout, StoreUnavailable
from kgqa.graph.endpoint import transport
from kgqa.graph.endpoint.options import Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.queries import Queries
from kgqa.model import Entity, Literal, Triple
from kgqa.testing import sparql_faults as faults
from kgqa.testing.sparql_server import SparqlReply, table_bytes, truth
from kgqa.trace.trace import Trace
from tests.graph import scripted_endpoint
from tests.graph.scripted_endpoint import ASK, QUERY, TABLE, count_reply, counting_script, insert

serve, store_of, cache = scripted_endpoint.serve, scripted_endpoint.store_of, scripted_endpoint.cache

BODY = TABLE.body
TRUE = truth(True)


FAULTS = {
    "anytime": (faults.virtuoso_timeout(BODY), StoreTimeout, "time limit"),
    "anytime while sending": (faults.virtuoso_timeout_while_sending(BODY), StoreTimeout, "while sending"),
    "row cap": (faults.virtuoso_row_cap(BODY, 50), PartialResult, "row cap of 50 rows"),
    "transaction timed out": (faults.virtuoso_error("S1T00", "SR171: Transaction timed out"), StoreTimeout, "S1T00"),
    "syntax": (faults.virtuoso_error("37000", "SP030: SPARQL compiler, line 1: syntax error", status=400), QueryRejected, "SP030"),
    "qlever": (faults.qlever_timeout, StoreTimeout, "Operation timed out"),
    "qlever while sending": (faults.qlever_timeout_while_sending(BODY), StoreTimeout, "while sending"),
    "blazegraph": (faults.blazegraph_timeout, StoreTimeout, "TimeoutException"),
    "blazegraph while sending": (faults.blazegraph_timeout_while_sending(BODY), StoreTimeout, "while sending"),
    "206": (SparqlReply(206, BODY), PartialResult, "206"),
    "cut json": (SparqlReply(body=BODY[:-10]), PartialResult, "truncated or damaged"),
    "cut body": (SparqlReply(body=BODY[:-10], missing=10), StoreUnavailable, "lost in the middle of a reply"),
    "cut chunks": (SparqlReply(body=lambda: iter([BODY[:40]]), framing="chunked", missing=1), StoreUnavailable, "lost in the middle of a reply"),
    "cut gzip": (faults.zipped(BODY * 50, missing=30), PartialResult, "."),
    "no gzip": (SparqlReply(body=BODY, headers=(("Content-Encoding", "gzip"),)), PartialResult, "cannot be decompressed"),
    "no UTF-8": (SparqlReply(body=BODY.replace(b"http://e/7", b"http://e/\xff")), PartialResult, "truncated or damaged"),
    "web page": (faults.web_page(), StoreUnavailable, "a web page"),
    "nothing": (SparqlReply(body=b""), StoreUnavailable, "an empty reply"),
    "garbage": (SparqlReply(body=bytes(range(256)) * 100), StoreUnavailable, "not a SPARQL result|other than a SPARQL result"),
    "deep": (SparqlReply(body=b'{"head": ' + b"[" * 100_000), StoreUnavailable, "not a SPARQL result"),
    "error beside the rows": (SparqlReply(body=BODY.replace(b"{", b'{"status": "ERROR", ', 1)), PartialResult, "an error beside its result"),
    "exception beside the rows": (SparqlReply(body=BODY.replace(b"{", b'{"exception": "Out of memory", ', 1)), PartialResult, "Out of memory"),
    "an answer for a table": (TRUE, StoreUnavailable, "not a SPARQL result|other than a SPARQL result"),
    "xml": (SparqlReply(body=b"<sparql/>", content_type="application/sparql-results+xml"), StoreUnavailable, "xml"),
    "moved": (faults.moved("http://elsewhere/sparql"), StoreUnavailable, "moved .* to http://elsewhere/sparql"),
    "401": (SparqlReply(401, b"", "text/html"), StoreUnavailable, "endpoint.user"),
    "403": (SparqlReply(403, b"No.", "text/plain"), StoreUnavailable, "No. Check the setting endpoint.user"),
    "404": (faults.web_page(404), StoreUnavailable, "No SPARQL endpoint"),
    "413": (SparqlReply(413, b"", "text/plain"), QueryRejected, "too long"),
    "429": (faults.busy(429), StoreUnavailable, "too many requests"),
    "503": (faults.busy(503), StoreUnavailable, "cannot answer now"),
    "504": (faults.web_page(504), StoreTimeout, "504"),
    "500 page": (faults.web_page(500), StoreUnavailable, "error page"),
    "dropped": (faults.dropped(), StoreUnavailable, "lost during a query"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_reply_to_select_is_an_error(serve, store_of, cache, name):
    sent, error, message = FAULTS[name]

    def script(request):
        if request.query.startswith("SELECT (COUNT"):
            return count_reply(7)
        return sent if isinstance(sent, SparqlReply) else sent(request)

    server = serve(script)
    store = store_of(server, cache=cache())
    with pytest.raises(error, match=message) as caught:
        store.select(QUERY)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 600
    before = len(server.requests)
    with pytest.raises(StoreError):
        store.select(QUERY)  # the faulty reply was not cached
    if error is StoreTimeout:
        assert len(server.requests) == before  # a query that timed out is not sent again
    else:
        assert len(server.requests) > before


def test_columns_are_read_by_name(serve, store_of, cache):
    """A server may send columns in another order, and more of them."""
    body = table_bytes(
        ["z", "o", "x"], [[Literal("z"), Literal("o"), Literal("x")], [Literal("z"), None, Literal("x")]]
    )
    store = store_of(serve(counting_script({"?x ?o": SparqlReply(body=body)})), cache=cache())
    for _ in range(2):
        assert store.select("SELECT ?x ?o WHERE { ?x <http://e/p> ?o }").rows == [
            (Literal("x"), Literal("o")),
            (Literal("x"), None),
        ]
    assert store.select("SELECT (COUNT(?p) AS ?x) ?o WHERE { ?x ?o ?p }").variables == ("x", "o")
    assert store.select("SELECT * WHERE { ?x ?o ?z }").variables == ("z", "o", "x")
    with pytest.raises(StoreUnavailable, match="lacks the variable .y"):
        store.select("SELECT ?x ?y WHERE { ?x ?o ?y }")


@pytest.mark.parametrize("expression", ["COUNT(?y)", "(COUNT(?y))", "?y + 1", "<http://e/f>(?y)", "COUNT(?y) AS ?z"])
def test_column_whose_name_the_server_makes_up_is_kept(serve, store_of, expression):
    body = table_bytes(["x", "callret-1"], [[Literal("x"), Literal("2")]])
    rows = store_of(serve(SparqlReply(body=body))).select(f"SELECT DISTINCT ?x {expression} WHERE {{ ?x ?o ?y }}")
    assert rows.variables == ("x", "callret-1") and rows.rows == [(Literal("x"), Literal("2"))]


def test_an_endless_reply_is_stopped(serve, store_of, monkeypatch):
    monkeypatch.setattr(transport, "MAX_RESULT_BYTES", 1 << 20)
    with pytest.raises(PartialResult, match="larger than 1,048,576 bytes"):
        store_of(serve(faults.endless_rows())).select(QUERY)


@pytest.mark.parametrize("name", ["cut json", "cut gzip"])
def test_damaged_reply_is_requested_once_more(serve, store_of, name):
    server = serve([FAULTS[name][0], TABLE])
    assert len(store_of(server).select(QUERY)) == 50 and len(server.requests) == 2
    server = serve([FAULTS[name][0]] * 3)
    with pytest.raises(PartialResult):
        store_of(server).select(QUERY)
    assert len(server.requests) == 2


def test_a_stopped_question_cuts_its_query_which_is_not_taken_for_a_slow_one(serve, store_of):
    server = serve(lambda request: SparqlReply(body=BODY, seconds=0.0 if len(server.requests) > 1 else 60.0))
    store, trace, started = store_of(server), Trace(), time.monotonic()
    threading.Timer(0.2, trace.stop).start()
    with pytest.raises(StoreTimeout, match="together with its question"):
        Queries(store, (), timeout=60.0, trace=trace).rows(QUERY)
    assert time.monotonic() - started < 30
    assert store.select(QUERY, timeout=0.5).rows


def test_timed_out_query_is_repeated_only_with_more_time(serve, store_of):
    server = serve(SparqlReply(body=BODY, seconds=0.5))
    store = store_of(server)
    for _ in range(3):
        with pytest.raises(StoreTimeout):
            store.select(QUERY, timeout=0.2)
    assert len(server.requests) == 1
    with pytest.raises(StoreTimeout, match="already timed out .* not sent again"):
        store.select(QUERY, timeout=0.1)
    assert len(store.select(QUERY, timeout=3)) == 50
    with pytest.raises(StoreTimeout):
        store.select(QUERY + " ", timeout=0.2)  # a different text is a different query


@pytest.mark.parametrize(
    ("call", "query"),
    [
        ("select", ASK),
        ("ask", QUERY),
        pytest.param("select", f"{QUERY} # {'x' * (1 << 20)}", id="long"),
        ("select", "# SELECT\nINSERT DATA { GRAPH <http://e/g> { <http://e/s> <http://e/p> 1 } }"),
        ("select", 'PREFIX x: <\\u0062if:> SELECT (x:exec("shutdown") AS ?x) WHERE { ?s ?p ?o }'),
    ],
)
def test_refused_query_is_not_sent(serve, store_of, call, query):
    server = serve(TABLE)
    with pytest.raises(QueryRejected):
        getattr(store_of(server), call)(query)
    assert server.requests == []


def test_update_writes_only_to_its_graph(serve, store_of):
    server = serve([SparqlReply(204)])
    store = store_of(server, writable="http://e/g")
    with pytest.raises(QueryRejected, match="<?http://e/h>? is not writable"):
        insert(store, "http://e/h")
    with pytest.raises(QueryRejected, match="http://e/h"):
        store.edit("http://e/h", [Triple(Entity("http://e/a"), "http://e/r", Entity("http://e/b"))])
    version = store.version_of()
    insert(store)
    assert store.version_of() != version and [bool(request.update) for request in server.requests] == [True]


@pytest.mark.parametrize(
    ("sent", "error", "message"),
    [
        (faults.web_page(), StoreUnavailable, "web page"),
        (faults.moved("http://e/"), StoreUnavailable, "moved"),
        (SparqlReply(401, b""), StoreUnavailable, "KGQA_ENDPOINT_PASSWORD"),
        (SparqlReply(500, b"Virtuoso 42000 Error SR186:SECURITY: No permission to execute procedure", "text/plain"), StoreUnavailable, "SPARQL_UPDATE"),
        (SparqlReply(400, b"Virtuoso 37000 Error SP030", "text/plain"), QueryRejected, "SP030"),
        (faults.dropped(), StoreUnavailable, "may have been carried out"),
        (SparqlReply(body=b"", seconds=3), StoreTimeout, "in time"),
    ],
)  # fmt: skip
def test_failed_update_is_sent_once(serve, store_of, sent, error, message):
    server = serve(sent)
    store = store_of(server, writable="http://e/g")
    with pytest.raises(error, match=message):
        insert(store, timeout=0.5)
    assert len(server.requests) == 1


SECRET = "s3cr3t-Geheim"


@pytest.mark.parametrize("name", ["401", "403", "moved", "web page", "dropped", "cut body", "syntax", "429", "garbage"])
def test_password_is_not_shown(serve, store_of, caplog, name):
    caplog.set_level(logging.DEBUG)
    server = serve(FAULTS[name][0])
    access = Access(user="u", password=SECRET, patience=0.0)
    store = store_of(server, access=access, writable="http://e/g")
    for call in (lambda: store.select(QUERY), lambda: insert(store)):
        error: BaseException | None = None
        try:
            call()
        except StoreError as caught:
            error = caught
        assert error is not None or name in ("cut body", "garbage")  # with status 200 an update was carried out
        while error is not None:
            assert SECRET not in str(error) and SECRET not in repr(error)
            error = error.__cause__ or error.__context__
    assert SECRET not in caplog.text and SECRET not in repr(access) and SECRET not in repr(store)


@pytest.mark.parametrize("url", ["", "http://e/a b", f"http://u:{SECRET}@e/sparql", f"http://u:{SECRET}#x@e/"])
def test_invalid_url_is_an_error_without_its_password(url):
    with pytest.raises(SettingsError) as caught:
        EndpointStore(url)
    assert SECRET not in str(caught.value)
