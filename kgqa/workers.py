"""Threads that do not keep a program from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Workers:
    """At most `most` threads that run what they are given, in order.

    As `concurrent.futures.ThreadPoolExecutor`, whose threads the interpreter waits for when it ends, however long
    a server lets them hang: these are daemons.
    """

    def __init__(self, most: int, *, name: str = "worker") -> None:
        self._most = most
        self._name = name
        self._queue: SimpleQueue = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Raises RuntimeError after `close`."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("it was closed, and takes nothing more")
            self._queue.put((future, function, args))
            if len(self._threads) < self._most:
                # they hold the queue and not the object, which can go away without being closed
                thread = threading.Thread(target=_work, args=(self._queue,), daemon=True, name=self._name)
                self._threads.append(thread)
                thread.start()
        return future

    def close(self) -> None:
        """What has not begun is cancelled; what runs is not waited for. May be called again."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                while True:
                    future = self._queue.get_nowait()[0]
                    future.cancel()
                    future.set_running_or_notify_cancel()  # without it whoever waits is not told
            except Empty:
                pass
            for _ in self._threads:
                self._queue.put(None)

    __del__ = close


def _work(queue: SimpleQueue) -> None:
    while (task := queue.get()) is not None:
        future, function, args = task
        if future.set_running_or_notify_cancel():
            try:
                result = function(*args)
            except BaseException as error:  # whoever waits for it gets it
                future.set_exception(error)
            else:
                future.set_result(result)
                del result
        del task, future, function, args
