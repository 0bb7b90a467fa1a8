"""The limits of an endpoint hold for all threads and stores of this process."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from kgqa.errors import StoreTimeout, StoreUnavailable
from kgqa.graph.endpoint.requests.access import Access
from kgqa.graph.endpoint.requests.limiter import MAX_REQUESTED_PAUSE_SECONDS, QueueTimeout, RequestLimiter
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity
from kgqa.schema import bundled_schema
from kgqa.testing.sparql_server import SparqlReply, SparqlServer, table, truth
from kgqa.trace import Budget, Trace

_numbers = itertools.count()


@pytest.fixture
def limiter():
    return RequestLimiter.for_url(f"http://limiter{next(_numbers)}/sparql")


@pytest.fixture
def closed():
    return threading.Event()


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def test_there_is_one_for_each_address(limiter):
    assert RequestLimiter.for_url(limiter._url) is limiter
    assert RequestLimiter.for_url("http://other/sparql") is not limiter


def test_never_more_are_under_way_than_the_smallest_limit_of_who_asks(limiter, closed):
    now, most, lock = 0, {2: 0, 5: 0}, threading.Lock()

    def work(number):
        nonlocal now
        limit = 2 if number % 2 else 5
        for _ in range(10):
            with limiter.slot(limit, soon(), closed):
                with lock:
                    now += 1
                    most[limit] = max(most[limit], now) if limit == 5 else most[limit]
                    assert now <= 5
                time.sleep(0.001)
                with lock:
                    now -= 1

    in_threads(12, work)
    assert now == 0 and 1 < most[5] <= 5


def test_a_limit_of_one_is_one_at_a_time(limiter, closed):
    inside = threading.Lock()

    def work(_):
        for _ in range(5):
            with limiter.slot(1, soon(), closed):
                assert inside.acquire(blocking=False)
                time.sleep(0.001)
                inside.release()

    in_threads(8, work)


def test_without_a_place_in_time_it_is_not_the_querys_fault(limiter, closed):
    with limiter.slot(1, soon(), closed):
        started = time.monotonic()
        with pytest.raises(QueueTimeout, match="Too many requests .* endpoint.concurrency") as caught:
            with limiter.slot(1, soon(0.1), closed):
                pass
        assert isinstance(caught.value, StoreTimeout) and 0.09 < time.monotonic() - started < 2
    with limiter.slot(1, soon(0.1), closed):
        pass


def test_a_place_is_given_back_whatever_happens(limiter, closed):
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), limiter.slot(1, soon(), closed):
            1 / 0


def test_a_rate_holds_for_all_together(limiter, closed):
    started, times = time.monotonic(), []

    def work(_):
        for _ in range(3):
            limiter.wait_for_turn(50, soon(), closed)
            times.append(time.monotonic() - started)

    in_threads(4, work)
    assert len(times) == 12
    assert 11 / 50 <= max(times) < 3
    assert all(moment >= number / 50 - 0.02 for number, moment in enumerate(sorted(times)))


def test_without_a_rate_nobody_waits(limiter, closed):
    started = time.monotonic()
    for _ in range(1000):
        limiter.wait_for_turn(0, soon(), closed)
    assert time.monotonic() - started < 0.5


def test_a_turn_that_comes_too_late_is_not_waited_for(limiter, closed):
    limiter.wait_for_turn(0.1, soon(), closed)
    started = time.monotonic()
    with pytest.raises(QueueTimeout, match="endpoint.rate"):
        limiter.wait_for_turn(0.1, soon(1), closed)
    assert time.monotonic() - started < 0.5


def test_everybody_leaves_a_server_alone_that_asks_for_it(limiter, closed):
    limiter.pause(0.3)
    started, times = time.monotonic(), []

    def work(_):
        limiter.wait_for_turn(0, soon(), closed)
        times.append(time.monotonic() - started)

    in_threads(4, work)
    assert min(times) >= 0.29


def test_a_longer_wish_reaches_those_who_wait_already(limiter, closed):
    limiter.pause(0.2)
    started = time.monotonic()
    threading.Timer(0.1, limiter.pause, (0.4,)).start()
    limiter.wait_for_turn(0, soon(), closed)
    assert time.monotonic() - started >= 0.48


def test_a_wish_that_is_longer_than_the_time_left_is_an_error_at_once(limiter, closed):
    limiter.pause(120)
    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match="asks for a pause of 1[12][0-9] s"):
        limiter.wait_for_turn(0, soon(), closed)
    assert time.monotonic() - started < 0.5


def test_nobody_is_held_off_for_ever(limiter):
    limiter.pause(1e12)
    assert limiter._paused_until <= time.monotonic() + MAX_REQUESTED_PAUSE_SECONDS


def test_who_waits_when_it_is_closed_waits_no_longer(limiter, closed):
    limiter.pause(4)
    problems = []

    def work(number):
        try:
            with limiter.slot(1, soon(), closed):
                limiter.wait_for_turn(0, soon(), closed)
        except StoreUnavailable as error:
            problems.append(error)

    started = time.monotonic()
    threading.Timer(0.1, lambda: (closed.set(), limiter.wake_waiting())).start()
    in_threads(3, work)
    assert len(problems) == 3 and time.monotonic() - started < 2


def test_a_query_without_a_place_is_noted_in_the_trace():
    """Whoever goes on without its result does not do so in silence."""
    trace = Trace(Budget())
    with SparqlServer(lambda request: truth(True) if "ASK" in request.query else table([], [])) as server:
        store = EndpointStore(server.url, access=Access(concurrency=1), profile="generic")
        graph = KnowledgeGraph(store, bundled_schema("rdfs"), timeout=0.1, scan=False).for_question(trace)
        with store, RequestLimiter.for_url(server.url).slot(1, soon(), threading.Event()), pytest.raises(QueueTimeout):
            graph.exists(Entity("http://e/1"))
    assert [(event.kind, event.detail) for event in trace.events()] == [("timeout", {"error": "QueueTimeout"})]


ANYTHING = [(truth(True), True), (SparqlReply(429), True), (SparqlReply(500), True), (SparqlReply(503), False)]


@pytest.mark.parametrize(("sent", "responds"), ANYTHING)
def test_a_server_that_sends_anything_is_there(sent, responds):
    with SparqlServer(sent) as server, EndpointStore(server.url, profile="generic") as store:
        # all places are taken: it is the server that is asked for, not a place
        with RequestLimiter.for_url(server.url).slot(1, soon(), threading.Event()):
            assert store.responds(5) is responds
    assert store.responds(0.5) is False


def test_a_server_that_hangs_is_not_there():
    with SparqlServer(SparqlReply(seconds=5)) as server, EndpointStore(server.url, profile="generic") as store:
        assert store.responds(0.2) is False
