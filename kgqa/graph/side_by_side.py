"""Independent queries of one question, several of them under way at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from kgqa.workers import Workers

Item = TypeVar("Item")
Result = TypeVar("Result")


class SideBySide:
    """Runs calls on the thread of the caller and on helpers, which all questions about a graph share: however many
    questions are asked, no more than `most() - 1` calls are added to those that they make themselves. Thread-safe.

    Args:
        most: how many calls may be under way at once; asked once, before the first helpers start.
    """

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._helpers: Workers | None = None
        self._count = 0

    def each(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        tolerated: tuple[type[Exception], ...] = (),
    ) -> list[Any]:
        """What the function gives for each item, in their order, whatever order the calls end in.

        Args:
            tolerated: exceptions that stand in the place of a result.

        Raises:
            Exception: the first other exception, in the order of the items. Calls that have not begun by then are not
                made; those that are under way are not waited for, nor are they on Ctrl-C.
        """
        calls: list[tuple[Future[Any], Item]] = [(Future(), item) for item in items]
        waiting = deque(calls)

        def work() -> None:
            while True:
                try:
                    future, item = waiting.popleft()
                except IndexError:
                    return
                try:
                    future.set_result(function(item))
                except Exception as error:
                    if not isinstance(error, tolerated):
                        waiting.clear()
                    future.set_exception(error)

        try:
            self._help(work, len(calls) - 1)
            work()
            return [self._outcome(future, tolerated) for future, _ in calls]
        finally:
            waiting.clear()

    def close(self) -> None:
        """Let the helpers go. May be called again."""
        with self._lock:
            if self._helpers is not None:
                self._helpers.close()
            self._helpers, self._count = None, 0

    def _help(self, work: Callable[[], None], wanted: int) -> None:
        if wanted < 1:
            return
        with self._lock:
            if self._helpers is None:
                self._count = max(0, self._most() - 1)
                self._helpers = Workers(self._count, name="kgqa-graph")
            for _ in range(min(wanted, self._count)):
                self._helpers.submit(work)

    @staticmethod
    def _outcome(future: Future[Any], tolerated: tuple[type[Exception], ...]) -> Any:
        try:
            return future.result()
        except tolerated as error:
            return error
