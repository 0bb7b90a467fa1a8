"""The limits of an endpoint: how many requests are under way, how many a second, and when it wants to be left alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kgqa.errors import StoreTimeout, StoreUnavailable

LONGEST_HOLD = 3600.0
"""Seconds; a server that asks for more has its clock wrong, and is asked again after these."""


class NoPlace(StoreTimeout):
    """A query was not sent in time because of others. It is not to blame for that."""


class Gate:
    """One for each address, shared by everything in this process that speaks to it."""

    _gates: dict[str, Gate] = {}
    _guard = threading.Lock()

    def __init__(self, url: str) -> None:
        self._url = url
        self._changed = threading.Condition()
        self._under_way = 0
        self._waiting = 0
        self._next = 0.0
        self._held_until = 0.0

    @classmethod
    def of(cls, url: str) -> Gate:
        with cls._guard:
            return cls._gates.setdefault(url, cls(url))

    @contextmanager
    def place(self, most: int, deadline: float, closed: threading.Event) -> Iterator[None]:
        """Wait until fewer than `most` requests are under way, and count as one.

        Args:
            deadline: when to give up, in seconds of `time.monotonic`. closed: gives up at once when set.

        Raises:
            NoPlace: there was none in time. StoreUnavailable: `closed`.
        """
        with self._changed:
            self._waiting += 1
            try:
                free = self._changed.wait_for(
                    lambda: closed.is_set() or self._under_way < most, timeout=max(0.0, deadline - time.monotonic())
                )
            finally:
                self._waiting -= 1
            self._refuse_closed(closed)
            if not free:
                raise NoPlace(
                    f"All {most} places at {self._url} were taken for as long as this query may take. Ask less at "
                    "once, or raise endpoint.concurrency if the server bears it."
                )
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def has_place(self, most: int) -> bool:
        """Whether `place` would not wait now."""
        return self._under_way + self._waiting < most

    def turn(self, rate: float, deadline: float, closed: threading.Event) -> None:
        """Wait until a request may be sent: for the server to be spoken to again, and for `rate` requests a second.

        Args:
            rate: 0 for any number. deadline, closed: as for `place`.

        Raises:
            StoreUnavailable: the server wants to be left alone for longer, or `closed`. NoPlace: too many wait.
        """
        while True:
            self._refuse_closed(closed)
            with self._changed:
                now = time.monotonic()
                turn = max(self._next, self._held_until)
                if turn <= now:
                    self._next = now + (1.0 / rate if rate else 0.0)
                    return
                held = self._held_until - now
            if held > 0 and self._held_until >= deadline:
                raise StoreUnavailable(
                    f"{self._url} asked to be left alone for another {held:.0f} s, longer than this query may take. "
                    "Try again later, and with less at once: endpoint.concurrency, endpoint.rate."
                )
            if turn >= deadline:
                raise NoPlace(
                    "So many requests wait that this one could not be sent in time. Ask less at once, or raise "
                    "endpoint.rate if the server bears it."
                )
            closed.wait(turn - now)  # and look again: meanwhile the server may have asked for more

    @property
    def held(self) -> bool:
        """Whether the server has asked to be left alone for now."""
        return self._held_until > time.monotonic()

    def hold_off(self, seconds: float) -> None:
        """Nobody sends anything for so long: the server asked for it."""
        with self._changed:
            self._held_until = max(self._held_until, time.monotonic() + min(seconds, LONGEST_HOLD))

    def wake(self) -> None:
        """Have all who wait for a place look whether they were closed."""
        with self._changed:
            self._changed.notify_all()

    def _refuse_closed(self, closed: threading.Event) -> None:
        if closed.is_set():
            raise StoreUnavailable(f"The connection to {self._url} has been closed.")
