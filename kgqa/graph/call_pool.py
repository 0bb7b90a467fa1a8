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


class CallPool:
    """Runs calls on the thread of the caller and on helpers, which all questions about a graph share: however many
    questions are asked, no more than `most() - 1` calls are added to those that they make themselves. Thread-safe.

    Args:
        most: how many calls may be under way at once; asked once, before the first helpers start.
        spare: whether there is room for one more call now; asked by a helper before each.
    """

    def __init__(self, most: Callable[[], int], *, spare: Callable[[], bool] = lambda: True) -> None:
        self._most = most
        self._spare = spare
        self._lock = threading.Lock()
        self._helpers: Workers | None = None
        self._count = 0
        self._under_way = 0

    def map(
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

        def work() -> bool:
            """Make the next call; whether there was one."""
            try:
                future, item = waiting.popleft()
            except IndexError:
                return False
            try:
                future.set_result(function(item))
            except Exception as error:
                if not isinstance(error, tolerated):
                    waiting.clear()
                future.set_exception(error)
            except (
                BaseException
            ) as error:  # Ctrl-C, or what a store of another package raises: nobody is to wait for it
                waiting.clear()
                future.set_exception(error)
                raise
            return True

        def help_out() -> None:
            # questions that fill all places by themselves are not to queue behind the helpers of others
            while waiting and self._begin(as_helper=True):
                try:
                    work()
                finally:
                    self._end()

        self._begin()
        try:
            self._help(help_out, len(calls) - 1)
            while work():
                pass
        finally:
            self._end()
            waiting.clear()
        return [self._outcome(future, tolerated) for future, _ in calls]

    def close(self) -> None:
        """Let the helpers go. May be called again."""
        with self._lock:
            if self._helpers is not None:
                self._helpers.close()
            self._helpers, self._count = None, 0

    def _begin(self, *, as_helper: bool = False) -> bool:
        """Count one more thread that makes calls; whether it may, which a helper may only where there is room."""
        with self._lock:
            if as_helper and (self._under_way > self._count or not self._spare()):
                return False
            self._under_way += 1
            return True

    def _end(self) -> None:
        with self._lock:
            self._under_way -= 1

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
