"""Runs one query for many items, and one query per item where that fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kgqa.errors import PartialResult, QueryRejected, ResultCapped, StoreCrashed, StoreTimeout

Item = TypeVar("Item")
TIME_SHARE = 0.25
"""Share of the time limit of a query that a batch may take."""
SINGLY = (StoreTimeout, PartialResult, ResultCapped, QueryRejected, StoreCrashed)
"""Errors of a batch after which its items are queried one by one, because a single item may be the cause."""
CallEach = Callable[..., list[Any]]
"""Calls a function for each item, and returns errors of the types `tolerated` in place of results; see
`ThreadPool.map`."""


def in_batches(
    items: Sequence[Item],
    batch: Callable[[Sequence[Item]], Sequence[Any]],
    single: Callable[[Item], Any],
    *,
    size: int,
    call_each: CallEach,
    tolerated: tuple[type[Exception], ...] = (),
) -> list[Any]:
    """Return a result for each item, or the error of its query if that is tolerated.

    Args:
        batch: runs one query for several items, and returns their results.
        single: runs the query for one item.
        size: most items of a batch.

    Raises:
        StoreError: the query for an item failed with an error that is not tolerated, or a batch with an error that is
            not the fault of an item.
    """
    numbers = range(len(items))
    batches = [each for start in range(0, len(items), size) if len(each := numbers[start : start + size]) > 1]
    results = call_each(lambda each: batch([items[n] for n in each]), batches, tolerated=SINGLY) if batches else ()
    found: dict[int, Any] = {}
    for each, result in zip(batches, results):
        found |= {} if isinstance(result, SINGLY) else dict(zip(each, result))
    rest = [n for n in numbers if n not in found]
    found |= dict(zip(rest, call_each(lambda n: single(items[n]), rest, tolerated=tolerated)))
    return [found[n] for n in numbers]
