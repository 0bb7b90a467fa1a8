"""Values derived from one version of a graph, which follow the graph's edits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kgqa.graph.tables.changes import ATTEMPTS, Changes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Known:
    version: str
    value: Any
    complete: bool


class VersionedValues:
    """Keeps values by name, each for the latest version of a graph for which it was wanted. Thread-safe.

    Args:
        version: returns the current version; see `Store.version_of`.
        changes: returns the changes since a version; None if values must be computed anew.
        complete: returns whether the value just computed covers the whole graph. Others are not followed by edits.
    """

    def __init__(
        self,
        version: Callable[[], str],
        changes: Callable[[str], Changes | None],
        *,
        complete: Callable[[], bool],
    ) -> None:
        self._current = version
        self._changes = changes
        self._complete = complete
        self._lock = threading.RLock()
        self._known: dict[str, _Known] = {}

    def __contains__(self, name: str) -> bool:
        """Return whether a value that covers the whole graph is known for some version."""
        known = self._known.get(name)
        return known is not None and known.complete

    def get(self, name: str, compute: Callable[[], T], follow: Callable[[T, Changes], T | None] | None = None) -> T:
        """Return a value for the current version.

        Other threads may still use the value of an earlier version, so `follow` must not change it.

        Args:
            compute: computes the value from the graph.
            follow: computes the value from that of an earlier version and the changes since; None if it cannot.
        """
        version, known = self._current(), self._known.get(name)
        if known is not None and (known.version == version or known.version + "+" == version):
            found: T = known.value
            return found
        with self._lock:
            value: T | None = None
            for _ in range(ATTEMPTS):
                version, known = self._current(), self._known.get(name)
                if known is not None and known.version == version:
                    value = known.value
                    break
                value = self._followed(known, follow) if known and follow else None
                complete = value is not None
                if value is None:
                    value = compute()
                    complete = follow is not None and self._complete()
                # a value that was read during an edit belongs to no version
                if self._current() == version:
                    self._known[name] = _Known(version, value, complete)
                    break
            assert value is not None
            return value

    def _followed(self, known: _Known, follow: Callable[[T, Changes], T | None]) -> T | None:
        changes = self._changes(known.version) if known.complete else None
        return None if changes is None else follow(known.value, changes)
