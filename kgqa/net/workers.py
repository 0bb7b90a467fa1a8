"""A pool of daemon threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
POLL_SECONDS = 0.1
"""How often a wait that may be stopped looks whether it was."""


class Workers:
    """A pool of at most `max_threads` daemon threads that run submitted functions in order.

    Unlike `concurrent.futures.ThreadPoolExecutor`, the pool does not delay the end of the program while a thread waits
    for a server.
    """

    def __init__(self, max_threads: int, *, name: str = "worker") -> None:
        self._max_threads = max_threads
        self._name = name
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Schedule a call of a function in one of the threads. Raises RuntimeError after `close`."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot submit: the pool is closed")
            # with the context of the caller, which knows in whose words hints are
            self._queue.put((future, copy_context().run, (function, *args)))
            if len(self._threads) < self._max_threads:
                # threads hold a reference only to the queue, so a pool that was not closed can be garbage-collected
                thread = threading.Thread(target=_work, args=(self._queue,), daemon=True, name=self._name)
                self._threads.append(thread)
                thread.start()
        return future

    def close(self) -> None:
        """Cancel all calls that have not started, without waiting for running calls. May be called repeatedly."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            with suppress(Empty):
                while True:
                    future = self._queue.get_nowait()[0]
                    future.cancel()
                    future.set_running_or_notify_cancel()  # wakes up threads that wait for the result
            for _ in self._threads:
                self._queue.put(None)

    __del__ = close


def _work(queue: SimpleQueue[Any]) -> None:
    while (task := queue.get()) is not None:
        future, function, args = task
        if future.set_running_or_notify_cancel():
            try:
                result = function(*args)
            except BaseException as error:  # noqa: BLE001  passed on to the thread that waits for the result
                future.set_exception(error)
            else:
                future.set_result(result)
                del result
        del task, future, function, args


def wait_for_all(
    futures: Collection[Future[Any]], *, deadline: float | None = None, stop: threading.Event | None = None
) -> None:
    """Wait until all calls have returned.

    Args:
        deadline: time on the clock of `time.monotonic()`; None for no deadline.
        stop: ends the wait when it is set.

    Raises:
        TimeoutError: the deadline has passed, or `stop` was set.
        Exception: a call raised it.
    """
    while True:
        seconds = _part(deadline, stop)
        done, unfinished = wait(futures, timeout=seconds, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
        if not unfinished:
            return
        _check(deadline, stop)


def wait_for_event(
    event: threading.Event, *, deadline: float | None = None, stop: threading.Event | None = None
) -> None:
    """Wait until an event is set. Arguments and TimeoutError: see `wait_for_all`."""
    while not event.wait(_part(deadline, stop)):
        _check(deadline, stop)


def _part(deadline: float | None, stop: threading.Event | None) -> float | None:
    """Return the seconds to wait before the next check."""
    parts = [] if stop is None else [POLL_SECONDS]
    parts += [] if deadline is None else [max(deadline - time.monotonic(), 0.0)]
    return min(parts, default=None)


def _check(deadline: float | None, stop: threading.Event | None) -> None:
    if (stop is not None and stop.is_set()) or (deadline is not None and time.monotonic() >= deadline):
        raise TimeoutError
