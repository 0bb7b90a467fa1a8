"""Values derived from one version of a store, each computed once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class VersionedValues:
    """Keeps values by name until the store's version changes. Thread-safe.

    Args:
        version: returns the current version; see `Store.version`.
        drop: called with the values of an outdated version, to close the resources that they hold.
    """

    def __init__(self, version: Callable[[], str], *, drop: Callable[[dict[str, Any]], None]) -> None:
        self.lock = threading.RLock()
        self._current = version
        self._drop = drop
        self._version = ""
        self._values: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """Return a value already computed for the current version, else None. Never waits for another thread."""
        # the version is compared first: values read before the comparison could be outdated
        return self._values.get(name) if self._version == self._current() else None

    def current(self) -> dict[str, Any]:
        """Return the dictionary of all values of the current version. The caller may change this dictionary.

        Waits while another thread computes a value.
        """
        with self.lock:
            version = self._current()
            if self._version != version:
                self.clear()
                self._version = version
            return self._values

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """Return a value, computed on first use."""
        version, values = self._current(), self._values
        if self._version == version and name in values:
            known: T = values[name]
            return known
        with self.lock:
            if name not in self.current():
                self._values[name] = compute()
            found: T = self._values[name]
            return found

    def clear(self) -> None:
        """Forget all values."""
        with self.lock:
            values, self._values = self._values, {}
            self._drop(values)
