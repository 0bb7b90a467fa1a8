"""Limits on requests: deadlines enforced from another thread, concurrency, rate and pauses of a server."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgqa.errors import StoreTimeout, StoreUnavailable
from kgqa.graph.endpoint.options import Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity
from kgqa.net.limits import MAX_REQUESTED_PAUSE_SECONDS, QueueTimeout, RequestDeadline, RequestLimiter
from kgqa.net.threads import stoppable
from kgqa.schema import bundled_schema
from kgqa.testing.sparql_server import SparqlReply, SparqlServer, table, truth
from kgqa.trace.trace import Budget, Trace

_numbers = itertools.count()


@pytest.fixture
def limiter():
    return RequestLimiter.for_url(f"http://limiter{next(_numbers)}/sparql")


def deadline_in(seconds: float = 5.0, closed: threading.Event | None = None) -> RequestDeadline:
    return RequestDeadline(time.monotonic() + seconds, "http://e/sparql", closed or threading.Event())


def seconds_in_threads(count, work) -> float:
    started = time.monotonic()
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(work, range(count)))
    return time.monotonic() - started


@pytest.mark.parametrize(
    ("how", "error"), [("late", StoreTimeout), ("stop", StoreTimeout), ("close", StoreUnavailable)]
)
def test_reader_is_cut_off(how, error):
    stop, closed, started = threading.Event(), threading.Event(), time.monotonic()
    threading.Timer(0.2, {"stop": stop.set, "close": closed.set}.get(how, int)).start()
    ours, theirs = socket.socketpair()
    with ours, theirs, stoppable(stop), deadline_in(0.2 if how == "late" else 60, closed) as deadline:
        deadline.connection = ours
        assert ours.recv(1) == b""  # blocks without a timeout of its own
        with pytest.raises(error):
            deadline.check()
        assert 0.2 <= time.monotonic() - started < 30
        assert theirs.recv(1) == b""


def test_rate_is_shared(limiter):
    assert 11 / 50 <= seconds_in_threads(12, lambda _: limiter.wait_for_turn(50, deadline_in())) < 3
    assert seconds_in_threads(1, lambda _: [limiter.wait_for_turn(0, deadline_in()) for _ in range(1000)]) < 0.5


def test_late_turn_fails_at_once(limiter):
    limiter.wait_for_turn(0.1, deadline_in())
    with pytest.raises(QueueTimeout, match="endpoint.rate"):
        limiter.wait_for_turn(0.1, deadline_in(1))
    limiter.pause(120)
    with pytest.raises(StoreUnavailable, match="asks for a pause of 1[12][0-9] s"):
        limiter.wait_for_turn(0, deadline_in())
    limiter.pause(1e12)
    assert limiter._paused_until <= time.monotonic() + MAX_REQUESTED_PAUSE_SECONDS


def test_pause_and_a_longer_one_hold_for_all_threads(limiter):
    limiter.pause(0.2)
    threading.Timer(0.1, limiter.pause, (0.3,)).start()
    assert seconds_in_threads(4, lambda _: limiter.wait_for_turn(0, deadline_in())) >= 0.38


def test_queue_timeout_is_traced():
    """A query without a result leaves an event in the trace."""
    trace = Trace(Budget())
    with SparqlServer(lambda request: truth(True) if "ASK" in request.query else table([], [])) as server:
        store = EndpointStore(server.url, access=Access(concurrency=1), profile="generic")
        graph = KnowledgeGraph(store, bundled_schema("rdfs"), timeout=0.1, scan=False).for_question(trace)
        with store, RequestLimiter.for_url(server.url).slot(1, deadline_in()), pytest.raises(QueueTimeout):
            Entity("http://e/1") in graph.paths.present([Entity("http://e/1")])
    assert [(event.kind, event.detail) for event in trace.events()] == [("timeout", {"error": "QueueTimeout"})]


@pytest.mark.parametrize(
    ("sent", "responds"),
    [(truth(True), True), (SparqlReply(429), True), (SparqlReply(500), True), (SparqlReply(503), False)],
)
def test_any_reply_counts_as_responding(sent, responds):
    with SparqlServer(sent) as server, EndpointStore(server.url, profile="generic") as store:
        # all slots are taken, and the check needs none
        with RequestLimiter.for_url(server.url).slot(1, deadline_in()):
            assert store.responds(5) is responds
    time.sleep(0.01)  # an earlier reply counts
    assert store.responds(0.001) is False
