"""A pool of daemon threads, and waits that end at a deadline or when their question is stopped."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
CHECK_SECONDS = 0.1
"""How often a wait checks whether it was stopped."""
question_stop: ContextVar[threading.Event | None] = ContextVar("question_stop", default=None)
"""The event that is set when the question of this thread is stopped; None outside `stoppable`."""
question_end: ContextVar[float | None] = ContextVar("question_end", default=None)
"""When the time of the question of this thread is over, in seconds of `time.monotonic`; None for no limit."""


@contextmanager
def stoppable(stop: threading.Event) -> Iterator[None]:
    """End the requests that are sent in the block when `stop` is set."""
    token = question_stop.set(stop)
    try:
        yield
    finally:
        question_stop.reset(token)


class ThreadPool:
    """At most `max_threads` daemon threads that run calls in order, each with the context of its caller. Thread-safe.

    Unlike `concurrent.futures.ThreadPoolExecutor`, the pool does not delay the end of the program while a thread waits
    for a server.
    """

    def __init__(self, max_threads: int, *, name: str = "kgqa-worker") -> None:
        self._max_threads = max_threads
        self._name = name
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._closed = False

    def submit(self, function: Callable[..., Result], *args: Any) -> Future[Result]:
        """Schedule a call of a function in one of the threads. Raises RuntimeError after `close`."""
        future: Future[Result] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot submit: the pool is closed")
            self._queue.put((future, copy_context().run, (function, *args)))
            if self._started < self._max_threads:
                # threads hold a reference only to the queue, so a pool that was not closed can be garbage-collected
                threading.Thread(target=_work, args=(self._queue,), daemon=True, name=self._name).start()
                self._started += 1
        return future

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        tolerated: tuple[type[Exception], ...] = (),
        has_room: Callable[[], bool] = lambda: True,
    ) -> list[Any]:
        """Call a function for each item, on the caller's thread and on those of the pool; calls may be nested.

        However many threads call `map` at the same time, the pool adds at most `max_threads` calls to theirs.

        Args:
            tolerated: types of exceptions that are returned in place of a result.
            has_room: tells whether the server can take one more call now; called before each call in the pool.

        Returns:
            The results in the order of the items.

        Raises:
            Exception: a call raised an exception that is not tolerated. If several calls did, the one whose item
                comes first is raised. Calls that have not started are dropped, and running calls are not waited
                for. The same happens on Ctrl-C.
        """
        calls: list[tuple[Future[Any], Item]] = [(Future(), item) for item in items]
        waiting = deque(calls)

        def work(may_go_on: Callable[[], bool]) -> None:
            while may_go_on():
                try:
                    future, item = waiting.popleft()
                except IndexError:
                    return
                try:
                    future.set_result(function(item))
                except BaseException as error:
                    # also after Ctrl-C: without an outcome, a thread could wait for this future forever
                    future.set_exception(error)
                    if not isinstance(error, tolerated):
                        waiting.clear()
                    if not isinstance(error, Exception):
                        raise

        for _ in range(min(self._max_threads, len(calls) - 1)):
            self.submit(work, has_room)
        try:
            work(lambda: True)
        finally:
            waiting.clear()
        outcomes: list[Any] = []
        for future, _ in calls:
            try:
                outcomes.append(future.result())
            except tolerated as error:
                outcomes.append(error)
        return outcomes

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
            for _ in range(self._started):
                self._queue.put(None)

    __del__ = close


def _work(queue: SimpleQueue[Any]) -> None:
    while (task := queue.get()) is not None:
        future, function, args = task
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function(*args))
            except BaseException as error:  # noqa: BLE001  passed on to the thread that waits for the result
                future.set_exception(error)
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
        limits = [] if stop is None else [CHECK_SECONDS]
        limits += [] if deadline is None else [max(deadline - time.monotonic(), 0.0)]
        done, unfinished = wait(futures, timeout=min(limits, default=None), return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
        if not unfinished:
            return
        if (stop is not None and stop.is_set()) or (deadline is not None and time.monotonic() >= deadline):
            raise TimeoutError
