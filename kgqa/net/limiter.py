"""Limits on the requests to one endpoint: concurrency, requests per second, and pauses that the server asks for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from kgqa.errors import StoreTimeout, StoreUnavailable

MAX_REQUESTED_PAUSE_SECONDS = 3600.0
"""The longest pause for a server; a server that asks for a longer pause probably has a wrong clock."""


class QueueTimeout(StoreTimeout):
    """A query was not sent in time because of other requests; the query itself is not the cause."""


class RequestLimiter:
    """Limits the requests to one address. All stores in this process share the limiter of an address. Thread-safe."""

    limiters: ClassVar[dict[str, RequestLimiter]] = {}

    def __init__(self, url: str) -> None:
        self._url = url
        self._changed = threading.Condition()
        self._active = 0
        self._waiting = 0
        self._next_start = 0.0
        self._paused_until = 0.0

    @classmethod
    def for_url(cls, url: str) -> RequestLimiter:
        """Return the limiter of an address."""
        return cls.limiters.setdefault(url, cls(url))

    @contextmanager
    def slot(self, concurrency: int, deadline: float, closed: threading.Event) -> Iterator[None]:
        """Wait for one of `concurrency` slots, and occupy the slot during the block.

        Args:
            deadline: when to stop waiting, in seconds of `time.monotonic`.
            closed: event that stops waiting at once when it is set.

        Raises:
            QueueTimeout: no slot was free in time. StoreUnavailable: `closed` is set.
        """
        with self._changed:
            self._waiting += 1
            try:
                free = self._changed.wait_for(
                    lambda: closed.is_set() or self._active < concurrency, timeout=max(0.0, deadline - time.monotonic())
                )
            finally:
                self._waiting -= 1
            self._check_open(closed)
            if not free:
                raise QueueTimeout(
                    f"Too many requests are queued at {self._url} (concurrency: {concurrency}). Send fewer requests at "
                    "the same time, or raise endpoint.concurrency if the server can handle more."
                )
            self._active += 1
        try:
            yield
        finally:
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

    def has_free_slot(self, concurrency: int) -> bool:
        """Return whether `slot` would return without waiting."""
        return self._active + self._waiting < concurrency

    def wait_for_turn(self, rate: float, deadline: float, closed: threading.Event) -> None:
        """Wait until a request may be sent: after any pause, and at most `rate` requests per second.

        Args:
            rate: requests per second; 0 for no limit. deadline, closed: see `slot`.

        Raises:
            StoreUnavailable: the pause lasts beyond the deadline, or `closed` is set.
            QueueTimeout: the rate allows no further request before the deadline.
        """
        while True:
            self._check_open(closed)
            with self._changed:
                now = time.monotonic()
                start = max(self._next_start, self._paused_until)
                if start <= now:
                    self._next_start = now + (1.0 / rate if rate else 0.0)
                    return
                pause = self._paused_until - now
            if pause > 0 and self._paused_until >= deadline:
                raise StoreUnavailable(
                    f"{self._url} asks for a pause of {pause:.0f} s, longer than this query may take.",
                    "Try again later, and lower endpoint.concurrency or endpoint.rate.",
                )
            if start >= deadline:
                raise QueueTimeout(
                    f"Too many requests are queued at {self._url}. Send fewer requests at the same time, or raise "
                    "endpoint.rate if the server can handle more."
                )
            closed.wait(start - now)  # then check again: the pause may have become longer

    @property
    def is_paused(self) -> bool:
        """Whether the server has asked for a pause that has not ended yet."""
        return self._paused_until > time.monotonic()

    def pause(self, seconds: float) -> None:
        """Send nothing to this address for `seconds`."""
        with self._changed:
            self._paused_until = max(self._paused_until, time.monotonic() + min(seconds, MAX_REQUESTED_PAUSE_SECONDS))

    def wake_waiting(self) -> None:
        """Wake all threads that wait for a slot, so that they notice that their endpoint was closed."""
        with self._changed:
            self._changed.notify_all()

    def _check_open(self, closed: threading.Event) -> None:
        if closed.is_set():
            raise StoreUnavailable(f"The connection to {self._url} has been closed.", "Open it again.")
