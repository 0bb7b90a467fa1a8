"""Deadlines of requests, enforced by cutting the connection.

A socket timeout limits only the time between two packets, so it never ends the reply of a server that sends one byte
per second. Therefore a background thread watches all active requests, and shuts down the sockets of requests past their
deadline. The thread that reads from such a socket then sees the end of the stream.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from kgqa.net.stopping import CHECK_SECONDS, current_stop

_current = threading.local()
_active: set[RequestDeadline] = set()


class RequestDeadline:
    """The deadline of one active request, and the socket to cut when it passes or the question is stopped.

    Attributes:
        at: the deadline, in seconds of `time.monotonic`. seconds: the total time given to the request.
        failures: how often the connection broke or the reply was damaged.
    """

    def __init__(self, at: float) -> None:
        self.at = at
        self.seconds = at - time.monotonic()
        self.failures = 0
        self._stop = current_stop()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._cancelled = False

    @property
    def passed(self) -> bool:
        """Whether the deadline has passed, or the question that sent the request was stopped."""
        return time.monotonic() >= self.at or self.stopped

    @property
    def stopped(self) -> bool:
        """Whether the question that sent the request was stopped."""
        return self._stop is not None and self._stop.is_set()

    def attach(self, connection: socket.socket | None) -> None:
        """Set the socket on which the reply arrives; None detaches it."""
        with self._lock:
            self._socket = connection
            if self._cancelled:
                self._cut()

    def cancel(self) -> None:
        """Cut the connection, now or as soon as it is attached. May be called from any thread."""
        with self._lock:
            self._cancelled = True
            self._cut()

    def _cut(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # already closed
                # `shutdown` of a TLS socket would remove the encryption while another thread reads
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _cancel_passed() -> None:
    """Cancel requests past their deadline, for ever."""
    while True:
        for deadline in list(_active):
            if deadline.passed:
                deadline.cancel()
        time.sleep(CHECK_SECONDS)


@cache
def _start_thread() -> None:
    threading.Thread(target=_cancel_passed, daemon=True, name="kgqa-deadlines").start()


@contextmanager
def enforced_deadline(at: float) -> Iterator[RequestDeadline]:
    """Enforce a deadline on the requests that this thread sends in the block.

    Args:
        at: the deadline, in seconds of `time.monotonic`.
    """
    deadline = _current.deadline = RequestDeadline(at)
    _start_thread()
    _active.add(deadline)
    try:
        yield deadline
    finally:
        _current.deadline = None
        _active.discard(deadline)


def current_deadline() -> RequestDeadline | None:
    """Return the deadline that `enforced_deadline` enforces in this thread; None outside its block."""
    return getattr(_current, "deadline", None)
