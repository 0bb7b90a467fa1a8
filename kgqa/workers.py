"""A pool of daemon threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Workers:
    """A pool of at most `most` daemon threads that run submitted functions in order.

    Unlike `concurrent.futures.ThreadPoolExecutor`, it does not delay the end of the program while a thread waits for
    a server.
    """

    def __init__(self, most: int, *, name: str = "worker") -> None:
        self._most = most
        self._name = name
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Schedule a call. Raises RuntimeError after `close`."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot submit: the pool is closed")
            self._queue.put((future, function, args))
            if len(self._threads) < self._most:
                # threads reference the queue only, so that a pool nobody closed can be garbage-collected
                thread = threading.Thread(target=_work, args=(self._queue,), daemon=True, name=self._name)
                self._threads.append(thread)
                thread.start()
        return future

    def close(self) -> None:
        """Cancel what has not started, and do not wait for what is running. Can be called repeatedly."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                while True:
                    future = self._queue.get_nowait()[0]
                    future.cancel()
                    future.set_running_or_notify_cancel()  # wakes up waiters
            except Empty:
                pass
            for _ in self._threads:
                self._queue.put(None)

    __del__ = close


def _work(queue: SimpleQueue[Any]) -> None:
    while (task := queue.get()) is not None:
        future, function, args = task
        if future.set_running_or_notify_cancel():
            try:
                result = function(*args)
            except BaseException as error:  # noqa: BLE001  passed on to the waiter
                future.set_exception(error)
            else:
                future.set_result(result)
                del result
        del task, future, function, args
