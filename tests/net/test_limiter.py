"""Request limits of an endpoint, shared by all threads and stores of a process."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from kgqa.errors import StoreTimeout, StoreUnavailable
from kgqa.graph.endpoint.requests.access import Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity
from kgqa.net.limiter import MAX_REQUESTED_PAUSE_SECONDS, QueueTimeout, RequestLimiter
from kgqa.schema import bundled_schema
from kgqa.testing.sparql_server import SparqlReply, SparqlServer, table, truth
from kgqa.trace.trace import Budget, Trace

_numbers = itertools.count()


@pytest.fixture
def limiter():
    return RequestLimiter.for_url(f"http://limiter{next(_numbers)}/sparql")


@pytest.fixture
def closed():
    return threading.Event()


def deadline_in(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def run_in_threads(count, work):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def test_one_limiter_per_url(limiter):
    assert RequestLimiter.for_url(limiter._url) is limiter
    assert RequestLimiter.for_url("http://other/sparql") is not limiter


def test_concurrency_limit(limiter, closed):
    now, most, lock = 0, {2: 0, 5: 0}, threading.Lock()

    def work(number):
        nonlocal now
        limit = 2 if number % 2 else 5
        for _ in range(10):
            with limiter.slot(limit, deadline_in(), closed):
                with lock:
                    now += 1
                    most[limit] = max(most[limit], now) if limit == 5 else most[limit]
                    assert now <= 5
                time.sleep(0.001)
                with lock:
                    now -= 1

    run_in_threads(12, work)
    assert now == 0 and 1 < most[5] <= 5


def test_limit_of_one_is_exclusive(limiter, closed):
    inside = threading.Lock()

    def work(_):
        for _ in range(5):
            with limiter.slot(1, deadline_in(), closed):
                assert inside.acquire(blocking=False)
                time.sleep(0.001)
                inside.release()

    run_in_threads(8, work)


def test_no_slot_in_time_is_a_queue_timeout(limiter, closed):
    with limiter.slot(1, deadline_in(), closed):
        started = time.monotonic()
        with pytest.raises(QueueTimeout, match="Too many requests .* endpoint.concurrency") as caught:
            with limiter.slot(1, deadline_in(0.1), closed):
                pass
        assert isinstance(caught.value, StoreTimeout) and 0.09 < time.monotonic() - started < 2
    with limiter.slot(1, deadline_in(0.1), closed):
        pass


def test_slot_is_released_after_an_error(limiter, closed):
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), limiter.slot(1, deadline_in(), closed):
            1 / 0


def test_rate_is_shared(limiter, closed):
    started, times = time.monotonic(), []

    def work(_):
        for _ in range(3):
            limiter.wait_for_turn(50, deadline_in(), closed)
            times.append(time.monotonic() - started)

    run_in_threads(4, work)
    assert len(times) == 12
    assert 11 / 50 <= max(times) < 3
    assert all(moment >= number / 50 - 0.02 for number, moment in enumerate(sorted(times)))


def test_no_wait_without_rate(limiter, closed):
    started = time.monotonic()
    for _ in range(1000):
        limiter.wait_for_turn(0, deadline_in(), closed)
    assert time.monotonic() - started < 0.5


def test_late_turn_fails_at_once(limiter, closed):
    limiter.wait_for_turn(0.1, deadline_in(), closed)
    started = time.monotonic()
    with pytest.raises(QueueTimeout, match="endpoint.rate"):
        limiter.wait_for_turn(0.1, deadline_in(1), closed)
    assert time.monotonic() - started < 0.5


def test_pause_holds_for_all_threads(limiter, closed):
    limiter.pause(0.3)
    started, times = time.monotonic(), []

    def work(_):
        limiter.wait_for_turn(0, deadline_in(), closed)
        times.append(time.monotonic() - started)

    run_in_threads(4, work)
    assert min(times) >= 0.29


def test_longer_pause_reaches_waiting_threads(limiter, closed):
    limiter.pause(0.2)
    started = time.monotonic()
    threading.Timer(0.1, limiter.pause, (0.4,)).start()
    limiter.wait_for_turn(0, deadline_in(), closed)
    assert time.monotonic() - started >= 0.48


def test_pause_beyond_the_deadline_fails_at_once(limiter, closed):
    limiter.pause(120)
    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match="asks for a pause of 1[12][0-9] s"):
        limiter.wait_for_turn(0, deadline_in(), closed)
    assert time.monotonic() - started < 0.5


def test_pause_is_limited(limiter):
    limiter.pause(1e12)
    assert limiter._paused_until <= time.monotonic() + MAX_REQUESTED_PAUSE_SECONDS


def test_close_ends_waiting(limiter, closed):
    limiter.pause(4)
    problems = []

    def work(number):
        try:
            with limiter.slot(1, deadline_in(), closed):
                limiter.wait_for_turn(0, deadline_in(), closed)
        except StoreUnavailable as error:
            problems.append(error)

    started = time.monotonic()
    threading.Timer(0.1, lambda: (closed.set(), limiter.wake_waiting())).start()
    run_in_threads(3, work)
    assert len(problems) == 3 and time.monotonic() - started < 2


def test_queue_timeout_is_traced():
    """A query without a result leaves an event in the trace."""
    trace = Trace(Budget())
    with SparqlServer(lambda request: truth(True) if "ASK" in request.query else table([], [])) as server:
        store = EndpointStore(server.url, access=Access(concurrency=1), profile="generic")
        graph = KnowledgeGraph(store, bundled_schema("rdfs"), timeout=0.1, scan=False).for_question(trace)
        with (
            store,
            RequestLimiter.for_url(server.url).slot(1, deadline_in(), threading.Event()),
            pytest.raises(QueueTimeout),
        ):
            graph.exists(Entity("http://e/1"))
    assert [(event.kind, event.detail) for event in trace.events()] == [("timeout", {"error": "QueueTimeout"})]


REPLIES = [(truth(True), True), (SparqlReply(429), True), (SparqlReply(500), True), (SparqlReply(503), False)]


@pytest.mark.parametrize(("sent", "responds"), REPLIES)
def test_any_reply_counts_as_responding(sent, responds):
    with SparqlServer(sent) as server, EndpointStore(server.url, profile="generic") as store:
        # all slots are taken, and the check needs none
        with RequestLimiter.for_url(server.url).slot(1, deadline_in(), threading.Event()):
            assert store.responds(5) is responds
    assert store.responds(0.5) is False


def test_hanging_server_does_not_respond():
    with SparqlServer(SparqlReply(seconds=5)) as server, EndpointStore(server.url, profile="generic") as store:
        assert store.responds(0.2) is False
