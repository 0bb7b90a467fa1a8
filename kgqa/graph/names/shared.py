"""The index of names of one graph, opened once for all questions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kgqa.graph.endpoint.store import MIN_RETRY_FACTOR
from kgqa.graph.names.interface import Names
from kgqa.graph.names.name_reader import IndexedGraph, Limit
from kgqa.graph.names.selection import open_names
from kgqa.graph.names.unindexed import UnindexedNames
from kgqa.graph.tables.versioned_values import VersionedValues

LONGEST_WAIT = 600.0
UNCOUNTED_SECONDS = 600.0
"""Seconds after a failed count of names during which the count is repeated only for questions with more time.

Such a question must have at least MIN_RETRY_FACTOR times as many seconds left as the question of the failed count."""


class SharedNames:
    """Opens the index of names on first use. Thread-safe.

    Args:
        values: holds the open index for the current version of the store.
        notes: function that returns the graph's notes to the user; a note about the index is added to them.
    """

    def __init__(self, graph: IndexedGraph, values: VersionedValues, *, notes: Callable[[], dict[str, str]]) -> None:
        self._graph = graph
        self._values = values
        self._notes = notes
        # a separate lock: opening may take minutes, during which other questions need the other tables
        self._opening = threading.Lock()

    def within(self, limit: Limit) -> Names:
        """Return the index of names, and open it if necessary, within the time that `limit` allows.

        Raises:
            BudgetExhausted: the question has no more time.
            StoreError: the names cannot be read.
        """
        if (names := self._known(limit)) is not None:
            return names
        with _held(self._opening, limit):  # another question may be opening the index
            if (names := self._known(limit)) is not None:
                return names
            with _held(self._values.lock, limit):
                notes, values = self._notes(), self._values.current()
            seconds = limit() or LONGEST_WAIT
            names, note = open_names(self._graph, limit=limit)
            if note:
                notes[note] = "names"
            if isinstance(names, UnindexedNames) and not names.counted:
                values["uncounted"] = (time.monotonic(), seconds, names)
            else:
                values["names"] = names
            return names

    def _known(self, limit: Limit) -> Names | None:
        """Return the index if it is open, else None.

        For some time after a failed count of names, questions with little time get an index without a count.
        """
        names: Names | None = self._values.get("names")
        if names is None and (uncounted := self._values.get("uncounted")):
            since, seconds, unindexed = uncounted
            recent = time.monotonic() - since < UNCOUNTED_SECONDS
            return unindexed if recent and (limit() or LONGEST_WAIT) < MIN_RETRY_FACTOR * seconds else None
        return names


@contextmanager
def _held(lock: Any, limit: Limit) -> Iterator[None]:
    """Hold a lock during the block; wait for the lock no longer than `limit` allows."""
    while not lock.acquire(timeout=min(limit() or LONGEST_WAIT, LONGEST_WAIT)):
        pass
    try:
        yield
    finally:
        lock.release()
