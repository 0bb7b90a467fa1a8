"""A cache of the most recently used values, such as the results of looking up words on a server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """Keeps the most recently used values. Thread-safe.

    Args:
        max_size: the largest total size of all values.
        size: function that returns the size of a value; None if each value has size 1.
    """

    def __init__(self, max_size: int, *, size: Callable[[V], int] | None = None) -> None:
        self._max_size = max_size
        self._size = size or (lambda value: 1)
        self._total = 0
        self._values: dict[K, V] = {}  # the least recently used value first
        self._lock = threading.Lock()

    def get_many(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the values of those keys that are cached."""
        with self._lock:
            found = {key: self._values.pop(key) for key in dict.fromkeys(keys) if key in self._values}
            self._values |= found
        return found

    def put_many(self, values: dict[K, V]) -> None:
        """Add values, and drop the least recently used values until the total size is at most `max_size`."""
        with self._lock:
            for key, value in values.items():
                if key in self._values:
                    self._total -= self._size(self._values.pop(key))
                self._values[key] = value
                self._total += self._size(value)
            while self._total > self._max_size and self._values:
                self._total -= self._size(self._values.pop(next(iter(self._values))))

    def get_or_find(self, keys: Iterable[K], find: Callable[[list[K]], dict[K, V]]) -> dict[K, V]:
        """Return the values of all keys.

        Args:
            find: function that receives the keys that are not cached, and returns their values. These values are then
                cached.
        """
        wanted = list(dict.fromkeys(keys))
        found = self.get_many(wanted)
        if missing := [key for key in wanted if key not in found]:
            new = find(missing)
            self.put_many(new)
            found |= new
        return found
