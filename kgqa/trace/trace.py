"""Records the events, the usage and the remaining budget of one question.

Stores, language models, graphs and methods add events and counts to the question's `Trace`. `kgqa ask --trace` prints
the events. The cost of an answer is computed from the counts.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from kgqa.model import StageUsage, Usage
from kgqa.trace.event import Event

GRACE = 10.0
"""Seconds allowed for reading the answers of the best path so far, after the question's budget is used up."""


_TOTALS = ("calls", "rounds", "prompt_tokens", "completion_tokens", "cost")
EXHAUSTED = "The budget is exhausted"
"""How the reason of a budget that is used up begins."""


class BudgetExhausted(Exception):
    """The question's budget is used up. Not a KgqaError, because methods turn this exception into a status."""

    @property
    def reason(self) -> str:
        """The string for `Answer.reason`."""
        return f"{EXHAUSTED}: {self}."


class QuestionStopped(BudgetExhausted):
    """The question was stopped by `Trace.stop`."""

    @property
    def reason(self) -> str:
        """The string for `Answer.reason`."""
        return f"{self}."


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on time, queries, language model calls, tokens and cost for one question; None means no limit.

    `seconds`: wall time. `queries`: number of SPARQL queries. `calls`: number of language model calls. `tokens`: tokens
    of prompts and replies together. `cost`: USD.
    """

    seconds: float | None = None
    queries: int | None = None
    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None


NO_LIMITS = Budget()


class Trace:
    """Collects the events and counts of one question; thread-safe.

    Args:
        budget: limits on calls, queries, tokens, cost and time for the question.
        listener: called with each event as soon as the event is recorded.
    """

    def __init__(self, budget: Budget = NO_LIMITS, *, listener: Callable[[Event], None] | None = None) -> None:
        self._start = time.monotonic()
        self.budget = budget
        """The limits of the question."""
        self._listener = listener
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._counts: dict[str, int] = {"hops": 0, "candidates": 0, "comparisons": 0, "queries": 0}
        self._stages: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._grace_until: float | None = None
        self.stopped = threading.Event()
        """Set when `stop` was called."""
        self.empty_replies = 0
        """Number of replies in a row without text."""
        self._why = ""

    def stop(self, why: str = "Stopped by the user") -> None:
        """End the question at its next query, model call or check; it gets no time for a final answer.

        A query or a model call that is waiting for its result is abandoned. May be called from any thread,
        and more than once. `why`: the reason in the answer.
        """
        self._why = self._why or why
        self.stopped.set()

    def record(self, event: Event) -> None:
        """Record an event, with the time since the start of the question."""
        event = structs.replace(event, at=round(self.elapsed(), 4))
        with self._lock:
            self._events.append(event)
        if self._listener:
            self._listener(event)

    def leave_out(self, seconds: float) -> None:
        """Take some seconds off the question's time: those of tables that are made once for all questions."""
        self._start += seconds

    def count(self, what: str, amount: int = 1) -> None:
        """Add to `hops`, `candidates`, `comparisons` or `queries`."""
        with self._lock:
            self._counts[what] += amount

    def charge_query(self, limit: float | None) -> float | None:
        """Count one query and return its time limit in seconds: the smaller of `limit` and the question's time left.

        Raises:
            BudgetExhausted: the question's time or number of queries is used up.
        """
        allowed = self.time_for(limit)
        with self._lock:
            most = self.budget.queries
            if most is not None and self._counts["queries"] >= most and self._grace_until is None:
                raise BudgetExhausted(f"more than {most} SPARQL queries")
            self._counts["queries"] += 1
        return allowed

    def time_for(self, limit: float | None) -> float | None:
        """Return the smaller of `limit` and the question's time left, in seconds; None for no limit.

        Raises:
            BudgetExhausted: no time is left.
        """
        limits = [seconds for seconds in (limit, self.remaining()) if seconds is not None]
        return min(limits, default=None)

    def charge_calls(self, stage: str, calls: int) -> None:
        """Count a batch of language model calls before it is sent.

        Raises:
            BudgetExhausted: the question may not make this many calls, or its tokens, cost or time are used up.
        """
        self.remaining()
        budget = self.budget
        with self._lock:
            if self._grace_until is not None:
                raise BudgetExhausted("no more model calls are allowed")
            spent = self._total()
            if budget.calls is not None and spent["calls"] + calls > budget.calls:
                raise BudgetExhausted(f"more than {budget.calls} model calls")
            if budget.tokens is not None and spent["prompt_tokens"] + spent["completion_tokens"] >= budget.tokens:
                raise BudgetExhausted(f"{budget.tokens} tokens")
            if budget.cost is not None and spent["cost"] >= budget.cost:
                raise BudgetExhausted(f"{budget.cost:g} USD")
            self._stages[stage].update(calls=calls, rounds=1)

    def tally(self, stage: str, **amounts: Any) -> None:
        """Add to tokens, cost (USD, None if unknown) or counts of a stage; named as in `StageUsage`."""
        with self._lock:
            self._stages[stage].update({name: amount for name, amount in amounts.items() if amount is not None})

    def _total(self) -> Counter[str]:
        total = Counter[str]()
        for each in self._stages.values():
            total.update(each)
        return total

    def remaining(self) -> float | None:
        """Return the seconds left for the question, None for no limit. Raises BudgetExhausted if no time is left."""
        if self.stopped.is_set():
            raise QuestionStopped(self._why)
        if self._grace_until is not None:
            left = self._grace_until - time.monotonic()
        elif self.budget.seconds is None:
            return None
        else:
            left = self.budget.seconds - self.elapsed()
        if left <= 0:
            raise BudgetExhausted(f"more than {self.budget.seconds or GRACE:g} seconds")
        return left

    @contextmanager
    def grace(self) -> Iterator[None]:
        """Allow `GRACE` seconds and any number of queries, but no language model calls, for the final answer."""
        self._grace_until = time.monotonic() + GRACE
        try:
            yield
        finally:
            self._grace_until = None

    def elapsed(self) -> float:
        """Return the seconds since the start of the question."""
        return time.monotonic() - self._start

    def usage(self) -> Usage:
        """Return the question's usage so far."""
        with self._lock:
            total: dict[str, Any] = self._total()
            return Usage(
                seconds=round(self.elapsed(), 3),
                stages=tuple(StageUsage(stage, **amounts) for stage, amounts in self._stages.items()),
                **{name: total[name] for name in _TOTALS if name in total},
                **self._counts,
            )

    def events(self) -> tuple[Event, ...]:
        """Return all events recorded so far."""
        with self._lock:
            return tuple(self._events)
