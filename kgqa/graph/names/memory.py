"""What was asked for lately, up to a limit, so that questions that share words do not ask a server again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Keeps what was used last. Thread-safe.

    Args:
        most: the size of all values together.
        size: of one value; None counts each as 1.
    """

    def __init__(self, most: int, *, size: Callable[[V], int] | None = None) -> None:
        self._most = most
        self._size = size or (lambda value: 1)
        self._total = 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, keys: Iterable[K]) -> dict[K, V]:
        """The values of those keys that have one."""
        found = {}
        with self._lock:
            for key in keys:
                if key in self._values:
                    self._values.move_to_end(key)
                    found[key] = self._values[key]
        return found

    def keep(self, values: dict[K, V]) -> None:
        with self._lock:
            for key, value in values.items():
                if key in self._values:
                    self._total -= self._size(self._values.pop(key))
                self._values[key] = value
                self._total += self._size(value)
            while self._total > self._most and self._values:
                self._total -= self._size(self._values.popitem(last=False)[1])

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
            self._total = 0

    def with_all(self, keys: Iterable[K], find: Callable[[list[K]], dict[K, V]]) -> dict[K, V]:
        """The values of all these keys: those that are not known come from `find`, and are kept."""
        wanted = list(dict.fromkeys(keys))
        found = self.known(wanted)
        if missing := [key for key in wanted if key not in found]:
            new = find(missing)
            self.keep(new)
            found |= new
        return found
