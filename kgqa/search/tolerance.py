"""Queries of the search that may fail: the failure is recorded, and the search continues without the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.trace import GaveUp
from kgqa.trace.trace import Trace

Item = TypeVar("Item")
TOLERATED = (StoreTimeout, PartialResult)
"""Errors of queries without which the search continues."""


def without_failures(
    items: Iterable[Item],
    results: Iterable[Any],
    trace: Trace,
    *,
    worded: Callable[[Item], str],
    tolerated: tuple[type[Exception], ...] = TOLERATED,
) -> list[tuple[Item, Any]]:
    """Return the items with their results, without those whose result is an error, which the trace records."""
    found = []
    for item, result in zip(items, results):
        if isinstance(result, tolerated):
            trace.record(GaveUp(path=worded(item), error=str(result)))
        else:
            found.append((item, result))
    return found
