"""A pool of daemon threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


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
            self._queue.put((future, function, args))
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
