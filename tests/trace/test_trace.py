"""The trace of a question: events, usage and budgets."""

from __future__ import annotations

import threading

import pytest

from kgqa.model import StageUsage
from kgqa.trace import Event, Shown
from kgqa.trace.trace import Budget, BudgetExhausted, Trace


class Retrieved(Event, frozen=True):
    """An event of another package."""

    chunks: tuple[str, ...]


class Clock:
    """A clock that is advanced by the test."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("kgqa.trace.trace.time.monotonic", clock)
    return clock


def test_events_are_kept_in_order_with_their_time(clock):
    trace = Trace()
    trace.record(Shown(question="who?"))
    clock.now += 1.5
    trace.record(Retrieved(chunks=("c1",)))
    assert trace.events() == (Shown(question="who?", at=0.0), Retrieved(chunks=("c1",), at=1.5))


def test_listener_receives_each_event():
    received: list[Event] = []
    trace = Trace(listener=received.append)
    trace.record(Shown(question="who?"))
    assert [event.kind for event in received] == ["shown"]
    trace.record(Retrieved(chunks=()))
    assert tuple(received) == trace.events()


def test_listener_can_read_the_trace():
    seen: list[int] = []
    trace = Trace(listener=lambda event: seen.append(len(trace.events())))
    trace.record(Shown(question="one"))
    trace.record(Shown(question="two"))
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


def test_unknown_counter_is_an_error():
    with pytest.raises(KeyError):
        Trace().count("querys")


# ---- budget ----


def test_no_budget(clock):
    trace = Trace()
    clock.now += 1e9
    assert trace.remaining() is None
    assert trace.charge_query(None) is None
    assert trace.charge_query(60.0) == 60.0


@pytest.mark.parametrize(
    ("elapsed", "limit", "given"), [(0, None, 10), (0, 60, 10), (0, 4, 4), (7, 4, 3), (7, None, 3), (6, 4, 4)]
)
def test_query_limit_is_the_remaining_time(clock, elapsed, limit, given):
    trace = Trace(Budget(seconds=10))
    clock.now += elapsed
    assert trace.charge_query(limit) == pytest.approx(given)


@pytest.mark.parametrize("elapsed", [10, 11, 1e6])
def test_time_budget(clock, elapsed):
    trace = Trace(Budget(seconds=10))
    clock.now += elapsed
    with pytest.raises(BudgetExhausted, match="10 seconds"):
        trace.remaining()
    with pytest.raises(BudgetExhausted):
        trace.charge_query(5.0)


def test_query_budget():
    trace = Trace(Budget(queries=2))
    trace.charge_query(None)
    trace.charge_query(None)
    with pytest.raises(BudgetExhausted, match="2 SPARQL queries"):
        trace.charge_query(None)


def test_refused_query_is_not_counted():
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


def test_counts_and_events_of_threads():
    trace = Trace()

    def work() -> None:
        for _ in range(200):
            trace.count("candidates", 2)
            trace.record(Retrieved(chunks=()))

    _in_threads(work)
    assert trace.usage().candidates == 3200
    assert len(trace.events()) == 1600


def test_query_budget_across_threads():
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
    trace.record(Shown(question="one"))
    before = trace.events()
    trace.record(Shown(question="two"))
    assert len(before) == 1


# ---- language models ----


def test_call_budget():
    trace = Trace(Budget(calls=5))
    trace.charge_calls("filter", 2)
    trace.charge_calls("decide", 2)
    for _ in range(2):
        with pytest.raises(BudgetExhausted, match="more than 5 model calls"):
            trace.charge_calls("decide", 2)
    assert trace.usage().calls == 4
    trace.charge_calls("decide", 1)
    assert (trace.usage().calls, trace.usage().rounds) == (5, 3)


@pytest.mark.parametrize(
    ("budget", "spent", "message"),
    [
        (Budget(tokens=10), {"prompt_tokens": 7, "completion_tokens": 3}, "10 tokens"),
        (Budget(tokens=10), {"prompt_tokens": 30}, "10 tokens"),
        (Budget(tokens=0), {}, "0 tokens"),
        (Budget(cost=0.5), {"cost": 0.5}, "0.5 USD"),
        (Budget(cost=0.0), {}, "0 USD"),
        (Budget(calls=0), {}, "0 model calls"),
    ],
)
def test_token_and_cost_budgets(budget, spent, message):
    trace = Trace(budget)
    trace.tally("link", **spent)
    with pytest.raises(BudgetExhausted, match=message):
        trace.charge_calls("decide", 1)
    assert trace.usage().calls == 0
    assert trace.charge_query(None) is None, "queries have a budget of their own"


@pytest.mark.parametrize(
    ("budget", "spent"),
    [
        (Budget(tokens=10), {"prompt_tokens": 6, "completion_tokens": 3, "cost": 9.0}),
        (Budget(cost=0.5), {"prompt_tokens": 10**9, "cost": 0.499}),
        (Budget(cost=0.5), {"prompt_tokens": 10**9}),
        (Budget(), {"prompt_tokens": 10**9, "cost": 10.0**9}),
    ],
)
def test_calls_within_the_budget(budget, spent):
    trace = Trace(budget)
    trace.tally("decide", **spent)
    trace.charge_calls("decide", 3)
    assert trace.usage().calls == 3


def test_budget_is_shared_by_stages():
    trace = Trace(Budget(tokens=100))
    for stage in ("filter", "tournament", "decide"):
        trace.charge_calls(stage, 1)
        trace.tally(stage, prompt_tokens=30, completion_tokens=5)
    with pytest.raises(BudgetExhausted):
        trace.charge_calls("link", 1)


def test_no_model_call_after_the_time_budget(clock):
    trace = Trace(Budget(seconds=10))
    trace.charge_calls("decide", 1)
    clock.now += 10
    with pytest.raises(BudgetExhausted, match="10 seconds"):
        trace.charge_calls("decide", 1)
    assert trace.usage().calls == 1


def test_grace_allows_queries_only(clock):
    trace = Trace(Budget(seconds=10, queries=1, calls=9))
    trace.charge_query(None)
    clock.now += 50
    with trace.grace():
        assert [trace.charge_query(None) for _ in range(3)] == [pytest.approx(10)] * 3
        with pytest.raises(BudgetExhausted, match="no more model calls"):
            trace.charge_calls("decide", 1)
        clock.now += 8
        assert trace.charge_query(60.0) == pytest.approx(2)
        clock.now += 2
        with pytest.raises(BudgetExhausted):
            trace.charge_query(None)
    with pytest.raises(BudgetExhausted):
        trace.remaining()
    assert (trace.usage().queries, trace.usage().calls) == (5, 0)


def test_grace_ends_on_errors(clock):
    trace = Trace(Budget(calls=1))
    with pytest.raises(OSError), trace.grace():
        raise OSError
    assert trace.remaining() is None
    trace.charge_calls("decide", 1)


def test_usage_by_stage_and_in_total():
    trace = Trace()
    trace.charge_calls("tournament", 4)
    trace.tally("tournament", prompt_tokens=400, completion_tokens=40, cost=0.25)
    trace.charge_calls("decide", 1)
    trace.tally("decide", prompt_tokens=100, completion_tokens=10)
    trace.charge_calls("tournament", 2)
    trace.tally("tournament", prompt_tokens=200, completion_tokens=20, cost=0.5)
    trace.tally("tournament", unparsed=1, reasked=2)
    trace.tally("tournament", repaired=1, failed=1, unparsed=1)
    usage = trace.usage()
    assert usage.stages == (
        StageUsage("tournament", 6, 2, 600, 60, 0.75, unparsed=2, repaired=1, reasked=2, failed=1),
        StageUsage("decide", 1, 1, 100, 10, None),
    )
    assert (usage.calls, usage.rounds, usage.prompt_tokens, usage.completion_tokens) == (7, 3, 700, 70)
    assert usage.cost == 0.75


def test_unknown_cost_and_zero_cost():
    assert Trace().usage().cost is None and Trace().usage().stages == ()
    trace = Trace()
    trace.tally("decide", prompt_tokens=5)
    assert trace.usage().cost is None
    trace.tally("decide", cost=0.0)
    assert trace.usage().cost == 0.0


def test_unknown_tally_is_an_error():
    with pytest.raises(TypeError):
        Trace().tally("decide", misread=1)


def test_call_budget_across_threads():
    trace = Trace(Budget(calls=50))
    calls: list[int] = []

    def work() -> None:
        for _ in range(20):
            try:
                trace.charge_calls("decide", 2)
            except BudgetExhausted:
                return
            trace.tally("decide", prompt_tokens=3)
            calls.append(2)

    _in_threads(work)
    assert sum(calls) == trace.usage().calls == 50 and trace.usage().prompt_tokens == 75
