"""Requests over real connections: kept, limited, repeated, ended in time."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from kgqa.errors import PartialResult, StoreTimeout, StoreUnavailable
from kgqa.graph.endpoint.requests.transport import ConnectionLost
from kgqa.model import Entity, Literal
from kgqa.testing.sparql_faults import (
    busy,
    dropped,
    pieces,
    qlever_limit,
    qlever_timeout,
    trickling,
    web_page,
    zipped,
)
from kgqa.testing.sparql_server import SparqlReply, table, table_bytes, truth
from kgqa.virtuoso.instance.processes import free_port
from tests.graph import scripted
from tests.graph.scripted import asked, took

QUERY = "SELECT ?x WHERE { ?x ?p ?o }"
serve, to = scripted.serve, scripted.to
TABLE = table(["x"], [[Entity("http://e/1")]])


# --- connections


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("size", [1, 5000])
def test_a_connection_is_kept(serve, to, framing, size):
    body = table_bytes(["x"], [[Entity(f"http://e/{n}")] for n in range(size)])
    server = serve(SparqlReply(body=body) if framing == "length" else pieces(body[:100], body[100:]))
    transport = to(server)
    for _ in range(20):
        assert asked(transport) == (200, body)
    assert len(server.requests) == 20 and server.connections == 1


def test_a_connection_is_kept_after_an_error_and_not_after_half_a_reply(serve, to):
    server = serve(SparqlReply(400, b"No.", "text/plain"))
    transport = to(server)
    for _ in range(3):
        assert asked(transport) == (400, b"No.")
    assert server.connections == 1
    server.enqueue(SparqlReply(body=b"x" * 10_000_000))
    with transport.query(QUERY, is_ask=False, seconds=5) as reply:
        next(reply.chunks)
    assert asked(transport) == (400, b"No.") and server.connections == 2


def test_a_server_that_closes_every_connection_is_borne(serve, to):
    server = serve(pieces(TABLE.body, framing="close"))
    transport = to(server)
    assert [asked(transport) for _ in range(3)] == [(200, TABLE.body)] * 3
    assert server.connections == 3


def test_no_more_are_under_way_than_is_allowed_whoever_asks(serve, to):
    server = serve(SparqlReply(body=TABLE.body, seconds=0.05))
    transports = [to(server, concurrency=3) for _ in range(4)]
    with ThreadPoolExecutor(12) as threads:
        for found in [threads.submit(asked, transports[number % 4]) for number in range(24)]:
            assert found.result() == (200, TABLE.body)
    assert server.most_at_once == 3


def test_the_rate_is_kept(serve, to):
    server = serve(TABLE)
    transport = to(server, rate=20.0)
    assert took(lambda: [asked(transport) for _ in range(7)]) >= 0.28


def test_packed_replies_are_unpacked(serve, to):
    server = serve([zipped(TABLE.body * 1000), zipped(TABLE.body * 1000, missing=20)])
    transport = to(server)
    assert asked(transport) == (200, TABLE.body * 1000)
    try:
        assert len(asked(transport)[1]) < len(TABLE.body) * 1000
    except (PartialResult, ConnectionLost):
        pass
    server.enqueue(SparqlReply(body=b"not packed at all", headers=(("Content-Encoding", "gzip"),)))
    with pytest.raises(PartialResult, match="cannot be decompressed"):
        asked(transport)


# --- time


@pytest.mark.parametrize(
    "sent",
    [
        SparqlReply(body=TABLE.body, seconds=30),
        SparqlReply(body=TABLE.body, head_pause=0.05),
        trickling(TABLE.body, seconds=0.1),
        trickling(TABLE.body, seconds=0.1, framing="close"),
        pieces(TABLE.body[:30], 30.0, TABLE.body[30:]),
        SparqlReply(404, trickling(b"x" * 100, seconds=0.1).body, framing="close"),
        pieces(b'{"head": {"vars": ["x"]}', *[b" ", 0.2] * 100),
    ],
    ids=["first byte", "head", "chunks", "bytes", "silence", "error", "endless"],
)
def test_a_server_that_is_late_in_any_way_ends_in_time(serve, to, sent):
    transport = to(serve(sent))
    started = time.monotonic()
    with pytest.raises(StoreTimeout) if sent.status == 200 else contextlib.nullcontext():
        asked(transport, seconds=0.3)
    assert 0.25 < time.monotonic() - started < 1.3


def test_a_whole_reply_after_the_time_is_up_is_not_trusted(serve, to):
    """Virtuoso, told a limit, gives at that time what it has."""
    transport = to(serve(pieces(TABLE.body[:20], 0.25, TABLE.body[20:])))
    with pytest.raises(StoreTimeout):
        with transport.query(QUERY, is_ask=False, seconds=0.2) as reply:
            next(reply.chunks)
            time.sleep(0.3)
            list(reply.chunks)


def test_a_server_that_takes_no_connection_is_given_up(to):
    import socket

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    others = [socket.socket() for _ in range(4)]
    try:
        for other in others:  # fill the queue of connections that nobody takes
            other.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                other.connect(listener.getsockname())
        transport = to(f"http://127.0.0.1:{listener.getsockname()[1]}/sparql", connect_seconds=0.2, patience=0.5)
        started = time.monotonic()
        with pytest.raises((StoreUnavailable, StoreTimeout)):
            asked(transport, seconds=3)
        assert time.monotonic() - started < 2.5
    finally:
        for each in (listener, *others):
            each.close()


def test_closing_ends_what_is_under_way(serve, to):
    server = serve(SparqlReply(body=TABLE.body, seconds=30))
    transport = to(server, concurrency=2)
    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(asked, transport, seconds=30) for _ in range(4)]  # two wait for a place
        while len(server.requests) < 2:
            time.sleep(0.01)
        started = time.monotonic()
        transport.close()
        for each in waiting:
            with pytest.raises(StoreUnavailable, match="has been closed"):
                each.result()
    assert time.monotonic() - started < 2
    with pytest.raises(StoreUnavailable, match="has been closed"):
        asked(transport)


CTRL_C = """
import sys
from kgqa.graph.endpoint.store import EndpointStore
store = EndpointStore(sys.argv[1], profile="generic")
print("asking", flush=True)
try:
    store.select("SELECT ?x WHERE { ?x ?p ?o }", timeout=60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.readline()
"""


def test_ctrl_c_closes_the_connection(serve, python, wait_until):
    server = serve(trickling(b" " * 100_000, seconds=0.02))
    process = python(CTRL_C, server.url)
    assert process.stdout.readline().strip() == "asking"
    assert wait_until(lambda: server.requests)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline().strip() == "interrupted"
    assert wait_until(lambda: server.cut == 1, 2)  # while the process lives on


# --- trying again


def test_a_server_that_comes_up_a_moment_later_is_waited_for(serve, to):
    port = free_port()
    transport = to(f"http://127.0.0.1:{port}/sparql")
    threading.Timer(0.6, lambda: serve(TABLE, port=port)).start()
    assert asked(transport) == (200, TABLE.body)


def test_nobody_waits_long_for_an_address_where_nothing_ever_answered(to):
    transport = to(f"http://127.0.0.1:{free_port()}/sparql")
    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match="Nothing answers at .*whether the server is running"):
        asked(transport, seconds=30)
    assert time.monotonic() - started < 4


def test_a_server_that_has_answered_before_is_given_patience(serve, to):
    server = serve(TABLE)
    transport = to(server, patience=1.5)
    asked(transport)
    server.close()
    seconds = took(asked, transport, seconds=30)
    assert 0.4 < seconds < 2.5
    threading.Timer(0.5, lambda: serve(TABLE, port=server.port)).start()
    assert asked(transport, seconds=30) == (200, TABLE.body)


def test_without_patience_nothing_is_tried_again(to):
    transport = to(f"http://127.0.0.1:{free_port()}/sparql", patience=0.0)
    assert took(asked, transport) < 0.2


def test_a_connection_that_is_dropped_once_is_no_error(serve, to):
    server = serve([dropped(), TABLE])
    assert asked(to(server)) == (200, TABLE.body)
    assert len(server.requests) == 2


def test_a_query_that_breaks_the_connection_is_sent_twice_at_most(serve, to):
    server = serve(dropped())
    with pytest.raises(StoreUnavailable, match="lost during a query"):
        asked(to(server), seconds=20)
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [429, 502, 503])
def test_a_busy_server_is_asked_again(serve, to, status):
    server = serve([busy(status), busy(status), TABLE])
    assert asked(to(server)) == (200, TABLE.body)
    first, second, third = (request.arrived for request in server.requests)
    assert second - first >= 0.13 and third - second >= 0.25


def test_a_query_that_met_a_deadlock_is_asked_again(serve, to):
    deadlock = SparqlReply(500, b"Virtuoso 40001 Error SR172: Transaction deadlocked", content_type="text/plain")
    server = serve([deadlock, TABLE])
    assert asked(to(server)) == (200, TABLE.body)
    assert len(server.requests) == 2


def test_an_error_that_quotes_the_words_of_a_query_is_not_asked_again(serve, to):
    query = 'SELECT ?x { ?x ?y "Transaction deadlocked" }'
    server = serve(SparqlReply(500, f"Virtuoso 22023 Error SR008: {query}".encode(), content_type="text/plain"))
    assert asked(to(server), query=query)[0] == 500
    assert len(server.requests) == 1


def test_a_server_that_stays_busy_is_an_error_that_says_so(serve, to):
    server = serve(busy(503))
    with pytest.raises(StoreUnavailable, match=r"cannot answer now \(HTTP 503\).*endpoint.concurrency"):
        asked(to(server, patience=0.6))
    assert 2 <= len(server.requests) <= 4


@pytest.mark.parametrize("form", ["number", "date"])
def test_retry_after_is_obeyed_by_all(serve, to, form):
    wait = 1 if form == "number" else datetime.now(UTC) + timedelta(seconds=2)
    server = serve(TABLE)
    server.enqueue(busy(429, retry_after=wait))
    transports = [to(server) for _ in range(3)]
    with ThreadPoolExecutor(6) as threads:
        first = threads.submit(asked, transports[0])
        while not server.requests:
            time.sleep(0.005)
        time.sleep(0.1)
        others = [threads.submit(asked, transports[number % 3]) for number in range(5)]
        assert all(each.result() == (200, TABLE.body) for each in (first, *others))
    turned_away, *later = sorted(request.arrived for request in server.requests)
    assert min(later) - turned_away >= 0.9


@pytest.mark.parametrize("wait", [30, 10**15, datetime.now(UTC) + timedelta(hours=1)], ids=["30 s", "ages", "date"])
def test_a_wait_that_is_longer_than_the_time_left_is_an_error_at_once(serve, to, wait):
    server = serve(busy(429, retry_after=wait))
    transport = to(server)
    started = time.monotonic()
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="asks for a pause of"):
            asked(transport, seconds=5)
    assert time.monotonic() - started < 1 and len(server.requests) == 1


@pytest.mark.parametrize("value", ["", "soon", "-5", "²", "Wed, 99 Foo 2020", "Wed, 21 Oct 2015 07:28:00 GMT", "0"])
def test_a_wait_that_is_none_is_none(serve, to, value):
    server = serve([busy(503, retry_after=value), TABLE])
    assert asked(to(server)) == (200, TABLE.body)


def test_a_query_that_ran_out_of_time_is_not_asked_again_though_it_says_429(serve, to):
    server = serve(qlever_timeout)
    assert asked(to(server))[0] == 429
    assert len(server.requests) == 1


# --- limits that the server is told


def test_a_limit_is_told_in_what_is_left_of_the_time(serve, to):
    server = serve(TABLE)
    asked(to(server, profile="qlever"), seconds=20)
    assert server.requests[0].fields["timeout"] == "20s"
    asked(to(server, profile="blazegraph"), seconds=20)
    assert 19_000 < int(server.requests[1].headers["x-bigdata-max-query-millis"]) <= 20_000


def test_qlever_is_told_no_limit_that_it_refuses(serve, to):
    def script(request):
        return qlever_limit(30) if request.fields.get("timeout", "1s") not in ("1s", "20s") else TABLE

    server = serve(script)
    transport = to(server, profile="qlever")
    assert asked(transport, seconds=60) == (200, TABLE.body)
    assert asked(transport, seconds=60) == (200, TABLE.body)
    assert asked(transport, seconds=20) == (200, TABLE.body)
    assert [request.fields.get("timeout") for request in server.requests] == ["60s", None, None, "20s"]


@pytest.mark.parametrize(("own", "told"), [("10", None), ("30", "20000"), (None, None)])
def test_virtuoso_is_told_a_limit_only_beside_its_own(serve, to, own, told):
    def script(request):
        if "MaxQueryExecutionTime" not in request.query:
            return TABLE
        return (
            SparqlReply(500, b"No permission", "text/plain")
            if own is None
            else table(["seconds", "rows"], [[Literal(own), None]])
        )

    server = serve(script, server="Virtuoso/07.20.3229 (Linux)")
    transport = to(server, detects=True)
    asked(transport, seconds=20)
    assert transport.profile.name == "virtuoso"
    found = server.requests[-1].fields.get("timeout")
    assert found == told or (told and int(told) - 1000 < int(found) <= int(told))
    asked(transport, seconds=20)
    assert len(server.requests) == 4  # what it is and what limits it has is asked once


def test_what_a_server_is_is_not_told_by_the_error_of_another(serve, to):
    server = serve(TABLE, server="Virtuoso/07")
    transport = to(server, detects=True)
    server.enqueue(SparqlReply(404, b"", "text/html", headers=()))
    transport.profile
    asked(transport)
    assert transport.profile.name == "virtuoso"

    other = serve(truth(True), server="nginx")
    other.enqueue(web_page(404))
    transport = to(other, detects=True)
    assert asked(transport)[0] == 200
    assert transport.profile.name == "generic" and len(other.requests) == 2
    asked(transport)
    assert len(other.requests) == 4  # and asked again, once it answered at all
    asked(transport)
    assert len(other.requests) == 5
