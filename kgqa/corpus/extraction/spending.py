"""Counts what extraction costs, and stops it at a limit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kgqa.model import Usage
from kgqa.trace.trace import BudgetExhausted, Trace


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent: numbers of calls, tokens of prompts and replies, and USD; None if a price is unknown."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    reasked: int = 0
    repaired: int = 0

    def plus(self, usage: Usage) -> Spent:
        """Return the sum of this and the usage of one chunk."""
        cost = self.cost if usage.cost is None else (self.cost or 0.0) + usage.cost
        return replace(
            self,
            calls=self.calls + usage.calls,
            prompt_tokens=self.prompt_tokens + usage.prompt_tokens,
            completion_tokens=self.completion_tokens + usage.completion_tokens,
            cost=cost,
            reasked=self.reasked + sum(stage.reasked for stage in usage.stages),
            repaired=self.repaired + sum(stage.repaired for stage in usage.stages),
        )


class Spending:
    """Adds up the usage of many chunks that are read at the same time. Thread-safe.

    Args:
        max_cost: The most that may be spent, in USD; None for no limit.
    """

    def __init__(self, max_cost: float | None = None) -> None:
        self._max_cost = max_cost
        self._lock = threading.Lock()
        self._reserved = 0.0
        self._expected = 0.0  # the expected cost of the chunks that are finished
        self.spent = Spent()

    @contextmanager
    def chunk(self, expected_cost: float) -> Iterator[Trace]:
        """Yield a trace for one chunk, whose usage is added at the end.

        Args:
            expected_cost: What the chunk will probably cost. It counts as spent until its real cost is known, so that
                chunks that are read at the same time do not exceed the limit together.

        Raises:
            BudgetExhausted: The limit would be exceeded.
        """
        limit = self._max_cost
        with self._lock:
            spent = self.spent.cost or 0.0
            # if the finished chunks cost more than expected, so will the others
            reserved = expected_cost * max(1.0, spent / self._expected if self._expected else 1.0)
            if limit is not None and spent + self._reserved + reserved > limit:
                raise BudgetExhausted(f"the limit is {limit:g} USD")
            self._reserved += reserved
        trace = Trace()
        try:
            yield trace
        finally:
            with self._lock:
                self._reserved -= reserved
                self._expected += expected_cost
                self.spent = self.spent.plus(trace.usage())
