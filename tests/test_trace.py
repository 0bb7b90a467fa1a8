"""A question's trace: what it did, what it cost, and when its budget is spent."""

from __future__ import annotations

import threading

import pytest

from kgqa.model import Event
from kgqa.trace import Budget, BudgetExhausted, Trace


class Clock:
    """A clock that goes on only when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("kgqa.trace.time.monotonic", clock)
    return clock


def test_events_are_kept_in_order_with_their_time(clock):
    trace = Trace()
    trace.event("expanded", hop=1)
    clock.now += 1.5
    trace.event("match", picked=["capital"], kind="detail may have this name")
    assert trace.events() == (
        Event("expanded", 0.0, {"hop": 1}),
        Event("match", 1.5, {"picked": ["capital"], "kind": "detail may have this name"}),
    )


def test_the_listener_hears_each_event_as_it_happens():
    heard: list[Event] = []
    trace = Trace(listener=heard.append)
    trace.event("expanded", hop=1)
    assert [event.kind for event in heard] == ["expanded"]
    trace.event("match")
    assert tuple(heard) == trace.events()


def test_a_listener_may_look_at_the_trace():
    seen: list[int] = []
    trace = Trace(listener=lambda event: seen.append(len(trace.events())))
    trace.event("one")
    trace.event("two")
    assert seen == [1, 2]


def test_usage_counts(clock):
    trace = Trace()
    trace.count("hops")
    trace.count("candidates", 12)
    trace.count("candidates", 3)
    trace.count("comparisons", 4)
    trace.charge_query(None)
    trace.charge_query(None)
    clock.now += 2.25
    usage = trace.usage()
    assert (usage.hops, usage.candidates, usage.comparisons, usage.queries) == (1, 15, 4, 2)
    assert usage.seconds == 2.25


def test_only_known_things_are_counted():
    with pytest.raises(KeyError):
        Trace().count("querys")


# ---- budget ----


def test_without_a_budget_nothing_runs_out(clock):
    trace = Trace()
    clock.now += 1e9
    assert trace.remaining() is None
    assert trace.charge_query(None) is None
    assert trace.charge_query(60.0) == 60.0


@pytest.mark.parametrize(
    ("elapsed", "limit", "given"), [(0, None, 10), (0, 60, 10), (0, 4, 4), (7, 4, 3), (7, None, 3), (6, 4, 4)]
)
def test_a_query_gets_what_is_left_at_most(clock, elapsed, limit, given):
    trace = Trace(Budget(seconds=10))
    clock.now += elapsed
    assert trace.charge_query(limit) == pytest.approx(given)


@pytest.mark.parametrize("elapsed", [10, 11, 1e6])
def test_time_runs_out(clock, elapsed):
    trace = Trace(Budget(seconds=10))
    clock.now += elapsed
    with pytest.raises(BudgetExhausted, match="10 seconds"):
        trace.remaining()
    with pytest.raises(BudgetExhausted):
        trace.charge_query(5.0)


def test_queries_run_out():
    trace = Trace(Budget(queries=2))
    trace.charge_query(None)
    trace.charge_query(None)
    with pytest.raises(BudgetExhausted, match="2 SPARQL queries"):
        trace.charge_query(None)


def test_a_query_that_was_refused_was_not_sent():
    trace = Trace(Budget(queries=2))
    for _ in range(5):
        try:
            trace.charge_query(None)
        except BudgetExhausted:
            pass
    assert trace.usage().queries == 2


# ---- threads ----


def _in_threads(work, count: int = 8) -> None:
    barrier = threading.Barrier(count)

    def run() -> None:
        barrier.wait()
        work()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_counts_and_events_of_threads_all_arrive():
    trace = Trace()

    def work() -> None:
        for _ in range(200):
            trace.count("candidates", 2)
            trace.event("match")

    _in_threads(work)
    assert trace.usage().candidates == 3200
    assert len(trace.events()) == 1600


def test_threads_together_get_no_more_queries_than_the_budget():
    trace = Trace(Budget(queries=50))
    sent: list[int] = []

    def work() -> None:
        for _ in range(20):
            try:
                trace.charge_query(None)
            except BudgetExhausted:
                return
            sent.append(1)

    _in_threads(work)
    assert len(sent) == 50


def test_events_are_a_snapshot():
    trace = Trace()
    trace.event("one")
    before = trace.events()
    trace.event("two")
    assert len(before) == 1
