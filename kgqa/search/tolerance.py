"""Queries of the search that may fail: the failure is recorded, and the search continues without the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.trace import GaveUp
from kgqa.trace.trace import Trace

Item = TypeVar("Item")
TOLERATED = (StoreTimeout, PartialResult)
"""Errors of queries without which the search continues."""


def map_tolerantly(
    graph: KnowledgeGraph,
    function: Callable[[Item], Any],
    items: Iterable[Item],
    trace: Trace,
    *,
    worded: Callable[[Item], str],
    tolerated: tuple[type[Exception], ...] = TOLERATED,
) -> list[tuple[Item, Any]]:
    """Call a function for each item concurrently; return the items with their results, without failed ones.

    Args:
        graph: The graph.
        function: Makes a query.
        items: The arguments of the function.
        trace: Records the failures.
        worded: Describes an item.
        tolerated: Errors after which an item is left out; other errors are raised.
    """
    items = list(items)
    results = graph.map(function, items, tolerated=tolerated)
    return without_failures(items, results, trace, worded=worded, tolerated=tolerated)


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
