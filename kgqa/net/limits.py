"""Limits on the requests to one server: deadlines, concurrency, requests per second, and pauses that it asks for.

A socket timeout limits only the time between two packets, so it never ends the reply of a server that sends one byte
per second. Therefore a background thread watches all active requests, and shuts down the sockets of requests that have
ended: past their deadline, stopped with their question, or of a closed client. The thread that reads from such a socket
then sees the end of the stream.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import ClassVar

from kgqa.errors import StoreTimeout, StoreUnavailable
from kgqa.net.threads import CHECK_SECONDS, question_stop

MAX_REQUESTED_PAUSE_SECONDS = 3600.0
"""The longest pause for a server; a server that asks for a longer pause probably has a wrong clock."""

MAX_FAILURES = 2
"""A request is not sent again after this many broken connections or damaged replies: it may crash the server."""


class QueueTimeout(StoreTimeout):
    """A query was not sent in time because of other requests; the query itself is not the cause."""


class ConnectionLost(StoreUnavailable):
    """The connection ended in the middle of a reply.

    This is not a `PartialResult`, because the cause is neither the query nor the graph: a further attempt may succeed.
    """


class RequestDeadline:
    """The deadline of one request to a server, enforced on what this thread sends in its `with` block.

    Attributes:
        at: the deadline, in seconds of `time.monotonic`.
        failures: how often the connection broke or the reply was damaged.
        connection: the socket on which the reply arrives; None before and after.
    """

    def __init__(self, at: float, url: str, closed: threading.Event) -> None:
        self.at = at
        self.failures = 0
        self.connection: socket.socket | None = None
        self._url = url
        self._closed = closed
        self._stop = question_stop.get() or threading.Event()

    @property
    def left(self) -> float:
        """Seconds until the deadline, at least a millisecond."""
        return max(0.001, self.at - time.monotonic())

    @property
    def stopped(self) -> bool:
        """Whether the question that sent the request was stopped."""
        return self._stop.is_set()

    def check(self, cause: Exception | None = None) -> None:
        """Raise an error if the request has ended.

        Raises:
            StoreUnavailable: the client was closed.
            StoreTimeout: the deadline has passed, or the question was stopped.
        """
        if self._closed.is_set():
            raise StoreUnavailable(f"The connection to {self._url} has been closed.", "Open it again.") from cause
        if self.stopped:
            raise StoreTimeout("The query was stopped together with its question.") from cause
        if time.monotonic() >= self.at:
            raise StoreTimeout(
                f"The server at {self._url} did not answer in time.", "Narrow the query, or raise graph.timeout."
            ) from cause

    def sleep(self, seconds: float) -> None:
        """Wait, or raise the error of `check` as soon as the request has ended."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, CHECK_SECONDS))

    def __enter__(self) -> RequestDeadline:
        _start_watching()
        self._token = current_deadline.set(self)
        _active.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        current_deadline.reset(self._token)
        _active.discard(self)

    def cut_if_ended(self) -> None:
        """Cut the connection if the deadline has passed, the question was stopped or the client was closed."""
        try:
            self.check()
        except (StoreTimeout, StoreUnavailable):
            connection = self.connection
            with suppress(OSError):  # already closed
                if connection is not None:
                    # `shutdown` of a TLS socket would remove the encryption while another thread reads
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)


current_deadline: ContextVar[RequestDeadline | None] = ContextVar("current_deadline", default=None)
"""The deadline in whose block this thread is; None outside such a block."""
_active: set[RequestDeadline] = set()


@cache
def _start_watching() -> None:
    def watch() -> None:
        while True:
            for deadline in list(_active):
                deadline.cut_if_ended()
            time.sleep(CHECK_SECONDS)

    threading.Thread(target=watch, daemon=True, name="kgqa-deadlines").start()


class RequestLimiter:
    """Limits the requests to one address. All clients in this process share the limiter of an address. Thread-safe."""

    limiters: ClassVar[dict[str, RequestLimiter]] = {}

    def __init__(self, url: str) -> None:
        self._url = url
        self._changed = threading.Condition()
        self._active = 0
        self._next_start = 0.0
        self._paused_until = 0.0

    @classmethod
    def for_url(cls, url: str) -> RequestLimiter:
        """Return the limiter of an address."""
        return cls.limiters.setdefault(url, cls(url))

    @contextmanager
    def slot(self, concurrency: int, deadline: RequestDeadline) -> Iterator[None]:
        """Wait for one of `concurrency` slots, and occupy the slot during the block.

        Raises:
            QueueTimeout: no slot was free in time. StoreUnavailable, StoreTimeout: see `RequestDeadline.check`.
        """
        with self._changed:
            while self._active >= concurrency:
                if time.monotonic() >= deadline.at:
                    raise QueueTimeout(
                        f"Too many requests are queued at {self._url} (concurrency: {concurrency}). Send fewer "
                        "requests at the same time, or raise endpoint.concurrency if the server can handle more."
                    )
                deadline.check()
                self._changed.wait(min(CHECK_SECONDS, deadline.left))
            self._active += 1
        try:
            yield
        finally:
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

    def has_free_slot(self, concurrency: int) -> bool:
        """Return whether `slot` would return without waiting."""
        return self._active < concurrency

    def wait_for_turn(self, rate: float, deadline: RequestDeadline) -> None:
        """Wait until a request may be sent: after any pause, and at most `rate` requests per second (0: no limit).

        Raises:
            StoreUnavailable: the pause lasts beyond the deadline, or see `RequestDeadline.check`.
            QueueTimeout: the rate allows no further request before the deadline.
        """
        while True:
            deadline.check()
            with self._changed:
                now = time.monotonic()
                start = max(self._next_start, self._paused_until)
                if start <= now:
                    self._next_start = now + (1.0 / rate if rate else 0.0)
                    return
            if self._paused_until >= deadline.at:
                pause = self._paused_until - now
                raise StoreUnavailable(
                    f"{self._url} asks for a pause of {pause:.0f} s, longer than this query may take.",
                    "Try again later, and lower endpoint.concurrency or endpoint.rate.",
                )
            if start >= deadline.at:
                raise QueueTimeout(
                    f"Too many requests are queued at {self._url}. Send fewer requests at the same time, or raise "
                    "endpoint.rate if the server can handle more."
                )
            deadline.sleep(min(start - now, CHECK_SECONDS))  # then check again: the pause may have become longer

    @property
    def is_paused(self) -> bool:
        """Whether the server has asked for a pause that has not ended yet."""
        return self._paused_until > time.monotonic()

    def pause(self, seconds: float) -> None:
        """Send nothing to this address for `seconds`."""
        with self._changed:
            self._paused_until = max(self._paused_until, time.monotonic() + min(seconds, MAX_REQUESTED_PAUSE_SECONDS))
