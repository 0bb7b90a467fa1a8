"""The trace of a question: events, usage and budgets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from msgspec import structs

from kgqa.model import StageUsage
from kgqa.trace import Event, Reasoning
from kgqa.trace.trace import Budget, BudgetExhausted, QuestionStopped, Trace


@pytest.fixture
def clock(monkeypatch):
    """A clock that is advanced by the test."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("kgqa.trace.trace.time.monotonic", lambda: clock.now)
    return clock


def test_events_are_kept_in_order_with_their_time_and_the_listener_gets_each(clock):
    received: list[Event] = []
    trace = Trace(listener=received.append)
    first, second = Reasoning(stage="decide", text="a"), Reasoning(stage="decide", text="b")
    trace.record(first)
    clock.now += 1.5
    trace.record(second)
    assert trace.events() == (first, structs.replace(second, at=1.5)) == tuple(received)


@pytest.mark.parametrize(("elapsed", "limit", "given"), [(0, None, 10), (0, 60, 10), (0, 4, 4), (7, 4, 3)])
def test_query_limit_is_the_remaining_time(clock, elapsed, limit, given):
    trace = Trace(Budget(seconds=10))
    clock.now += elapsed
    assert trace.charge_query(limit) == pytest.approx(given)
    assert Trace().charge_query(limit) == limit
    clock.now += 10
    with pytest.raises(BudgetExhausted, match="10 seconds"):
        trace.charge_query(limit)
    with pytest.raises(BudgetExhausted, match="10 seconds"):
        trace.charge_calls("decide", 1)
    assert (trace.usage().queries, trace.usage().calls) == (1, 0)


def test_budgets_across_threads():
    trace = Trace(Budget(queries=50, calls=50))
    refused: list[str] = []

    def work() -> None:
        for charge in (lambda: trace.charge_query(None), lambda: trace.charge_calls("decide", 2)) * 20:
            try:
                charge()
            except BudgetExhausted as error:
                refused.append(error.reason)
            trace.tally("decide", prompt_tokens=3)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: work(), range(8)))
    usage = trace.usage()
    assert (usage.queries, usage.calls, usage.rounds, usage.prompt_tokens) == (50, 50, 25, 8 * 40 * 3)
    exhausted = "The budget is exhausted: more than 50 "
    assert set(refused) == {f"{exhausted}SPARQL queries.", f"{exhausted}model calls."}


@pytest.mark.parametrize(
    ("budget", "spent", "message"),
    [
        (Budget(tokens=10, cost=9.1), {"prompt_tokens": 6, "completion_tokens": 3, "cost": 9.0}, None),
        (Budget(cost=0.5), {"prompt_tokens": 10**9}, None),
        (Budget(tokens=10), {"prompt_tokens": 7, "completion_tokens": 3}, "10 tokens"),
        (Budget(tokens=0), {}, "0 tokens"),
        (Budget(cost=0.5), {"cost": 0.5}, "0.5 USD"),
        (Budget(calls=0), {}, "0 model calls"),
    ],
)
def test_token_and_cost_budgets(budget, spent, message):
    trace = Trace(budget)
    trace.tally("link", **spent)
    with pytest.raises(BudgetExhausted, match=message) if message else nullcontext():
        trace.charge_calls("decide", 1)
    assert trace.usage().calls == (message is None)
    assert trace.charge_query(None) is None, "queries have a budget of their own"


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


def test_usage_by_stage_and_in_total(clock):
    trace = Trace()
    trace.count("candidates", 12)
    trace.count("candidates", 3)
    clock.now += 2.25
    trace.charge_calls("tournament", 4)
    trace.tally("tournament", prompt_tokens=400, completion_tokens=40, cost=0.25)
    trace.charge_calls("decide", 1)
    trace.tally("decide", prompt_tokens=100, completion_tokens=10)
    trace.charge_calls("tournament", 2)
    trace.tally("tournament", prompt_tokens=200, completion_tokens=20, cost=0.5)
    trace.tally("tournament", unparsed=1, reasked=2)
    trace.tally("tournament", repaired=1, failed=1, unparsed=1)
    usage = trace.usage()
    assert (usage.hops, usage.candidates, usage.seconds) == (0, 15, 2.25)
    assert usage.stages == (
        StageUsage("tournament", 6, 2, 600, 60, 0.75, unparsed=2, repaired=1, reasked=2, failed=1),
        StageUsage("decide", 1, 1, 100, 10, None),
    )
    assert (usage.calls, usage.rounds, usage.prompt_tokens, usage.completion_tokens) == (7, 3, 700, 70)
    assert usage.cost == 0.75


def test_unknown_cost_and_zero_cost():
    trace = Trace()
    trace.tally("decide", prompt_tokens=5)
    assert trace.usage().cost is None
    trace.tally("decide", cost=0.0)
    assert trace.usage().cost == 0.0


def test_a_stopped_question_ends_at_its_next_query_without_a_final_answer():
    trace = Trace()
    trace.stop("Stopped by the user")
    trace.stop("A later reason")
    with pytest.raises(QuestionStopped) as stopped, trace.grace():
        trace.charge_query(None)
    assert stopped.value.reason == "Stopped by the user."
