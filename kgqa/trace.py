"""What a question did (events), what it cost (usage), and what it may still spend (budget).

One `Trace` belongs to one question. Stores, graphs and methods charge it; the printed trace, the cost line
and the tests read the same events.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from kgqa.model import Event, Usage


class BudgetExhausted(Exception):
    """The question has used up its time or its queries. Methods turn it into a status, so it is no KgqaError."""


class Trace:
    """Collects events and counts; thread-safe.

    Args:
        seconds: wall time this question may take, None for no limit.
        queries: SPARQL queries it may send, None for no limit.
        listener: called with each event as it happens.
    """

    def __init__(
        self,
        *,
        seconds: float | None = None,
        queries: int | None = None,
        listener: Callable[[Event], None] | None = None,
    ) -> None:
        self._start = time.monotonic()
        self._seconds = seconds
        self._max_queries = queries
        self._listener = listener
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._counts: dict[str, int] = {"hops": 0, "candidates": 0, "comparisons": 0, "queries": 0}

    def event(self, kind: str, /, **detail: Any) -> None:
        """Record a decision. `detail` holds plain JSON values only."""
        event = Event(kind, round(self.elapsed(), 4), detail)
        with self._lock:
            self._events.append(event)
        if self._listener:
            self._listener(event)

    def count(self, what: str, amount: int = 1) -> None:
        """Add to `hops`, `candidates`, `comparisons` or `queries`."""
        with self._lock:
            self._counts[what] += amount

    def charge_query(self, limit: float | None) -> float | None:
        """Count one query and give the time it may take: `limit` or what is left of the budget.

        Raises:
            BudgetExhausted: nothing is left.
        """
        left = self.remaining()
        with self._lock:
            if self._max_queries is not None and self._counts["queries"] >= self._max_queries:
                raise BudgetExhausted(f"more than {self._max_queries} SPARQL queries")
            self._counts["queries"] += 1
        if left is None:
            return limit
        return left if limit is None else min(limit, left)

    def remaining(self) -> float | None:
        """Seconds left, None without a limit. Raises BudgetExhausted at zero."""
        if self._seconds is None:
            return None
        left = self._seconds - self.elapsed()
        if left <= 0:
            raise BudgetExhausted(f"more than {self._seconds:g} seconds")
        return left

    def elapsed(self) -> float:
        return time.monotonic() - self._start

    def usage(self) -> Usage:
        with self._lock:
            return Usage(seconds=round(self.elapsed(), 3), **self._counts)

    def events(self) -> tuple[Event, ...]:
        with self._lock:
            return tuple(self._events)
