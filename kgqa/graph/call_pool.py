"""A thread pool that runs the independent queries of one question concurrently."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from kgqa.net.workers import Workers

Item = TypeVar("Item")
Result = TypeVar("Result")


class CallPool:
    """Runs calls on the caller's thread and on helper threads that all questions about a graph share. Thread-safe.

    However many questions run at the same time, helper threads add at most `max_concurrency() - 1` concurrent calls.

    Args:
        max_concurrency: returns the maximum number of concurrent calls of one question; called once, before the first
            helper threads start.
        has_room: tells whether the store can take one more call now; called by a helper thread before each call.
    """

    def __init__(self, max_concurrency: Callable[[], int], *, has_room: Callable[[], bool] = lambda: True) -> None:
        self._max_concurrency = max_concurrency
        self._has_room = has_room
        self._lock = threading.Lock()
        self._helpers: Workers | None = None
        self._count = 0
        self._running = 0

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        tolerated: tuple[type[Exception], ...] = (),
    ) -> list[Any]:
        """Call the function for each item and return the results in the order of the items.

        Args:
            tolerated: types of exceptions that are returned in place of a result.

        Raises:
            Exception: a call raised an exception that is not tolerated. If several calls did, the one whose item
                comes first is raised. Calls that have not started are dropped, and running calls are not waited
                for. The same happens on Ctrl-C.
        """
        calls: list[tuple[Future[Any], Item]] = [(Future(), item) for item in items]
        waiting = deque(calls)

        def work() -> bool:
            """Make the next waiting call. Returns False if no call is waiting."""
            try:
                future, item = waiting.popleft()
            except IndexError:
                return False
            try:
                future.set_result(function(item))
            except BaseException as error:
                if not isinstance(error, tolerated):
                    waiting.clear()
                # also after Ctrl-C: without an outcome, a thread could wait for this future forever
                future.set_exception(error)
                if not isinstance(error, Exception):
                    raise
            return True

        def help_out() -> None:
            # if the questions' own threads use the whole limit, they must not wait behind helper threads
            while waiting and self._begin(as_helper=True):
                try:
                    work()
                finally:
                    self._end()

        self._begin()
        try:
            if len(calls) > 1:
                self._submit(help_out, len(calls) - 1)
            while work():
                pass
        finally:
            self._end()
            waiting.clear()
        return [self._outcome(future, tolerated) for future, _ in calls]

    def close(self) -> None:
        """End the helper threads. Closing twice does no harm."""
        with self._lock:
            if self._helpers is not None:
                self._helpers.close()
            self._helpers, self._count = None, 0

    def _begin(self, *, as_helper: bool = False) -> bool:
        """Add one to the number of calling threads. Returns False if the thread is a helper thread that must stop."""
        with self._lock:
            if as_helper and (self._running > self._count or not self._has_room()):
                return False
            self._running += 1
            return True

    def _end(self) -> None:
        with self._lock:
            self._running -= 1

    def _submit(self, work: Callable[[], None], times: int) -> None:
        with self._lock:
            if self._helpers is None:
                self._count = max(0, self._max_concurrency() - 1)
                self._helpers = Workers(self._count, name="kgqa-graph")
            for _ in range(min(times, self._count)):
                self._helpers.submit(work)

    @staticmethod
    def _outcome(future: Future[Any], tolerated: tuple[type[Exception], ...]) -> Any:
        try:
            return future.result()
        except tolerated as error:
            return error
