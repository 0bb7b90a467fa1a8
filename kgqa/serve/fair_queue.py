"""A queue with threads that serve all clients in turn, however many questions each of them asks."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
_Task = tuple["Future[Any]", Callable[[], Any]]


class QueueFull(Exception):
    """So many calls wait that no more are accepted."""


class FairQueue:
    """Runs functions in `workers` threads. The next function is that of the client who has waited longest for a turn.

    Args:
        workers: number of threads.
        limit: maximum number of functions that wait; those of one client take up about half of it at most.
        name: the name of the threads.
    """

    def __init__(self, workers: int, *, limit: int, name: str) -> None:
        self._limit = limit
        self._waiting: OrderedDict[Hashable, deque[_Task]] = OrderedDict()
        self._changed = threading.Condition()
        self._count = self.running = 0
        self._idle = workers
        self._closed = False
        for _ in range(workers):
            threading.Thread(target=self._work, daemon=True, name=name).start()

    @property
    def waiting(self) -> int:
        """The number of functions that wait."""
        return self._count

    def submit(self, client: Hashable, function: Callable[[], T]) -> Future[T]:
        """Call a function when it is the client's turn.

        Raises:
            QueueFull: too many functions wait, in all or of this client, or the queue is closed.
        """
        future: Future[T] = Future()
        with self._changed:
            own = len(self._waiting.get(client, ()))
            if self._closed or self._count >= self._limit + self._idle or own > self._limit // 2 + self._idle:
                raise QueueFull
            self._waiting.setdefault(client, deque()).append((future, function))
            self._count += 1
            self._changed.notify()
        future.add_done_callback(lambda ended: self._remove(client, ended) if ended.cancelled() else None)
        return future

    def position(self, client: Hashable, future: Future[Any]) -> int:
        """Return how many functions come before one that waits, at most; 0 if it does not wait."""
        with self._changed:
            tasks = self._waiting.get(client, ())
            at = next((number for number, task in enumerate(tasks) if task[0] is future), None)
            if at is None:
                return 0
            return at + sum(min(len(others), at + 1) for name, others in self._waiting.items() if name != client)

    def close(self) -> None:
        """End the threads after the functions that they run; functions that wait are cancelled."""
        with self._changed:
            self._closed = True
            waiting = [future for tasks in self._waiting.values() for future, _ in tasks]
            self._changed.notify_all()
        for future in waiting:
            future.cancel()

    def _remove(self, client: Hashable, future: Future[Any]) -> None:
        """Take a cancelled function out of the queue, so that others may wait in its place."""
        with self._changed:
            tasks = self._waiting.get(client, deque())
            kept = deque(task for task in tasks if task[0] is not future)
            self._count -= len(tasks) - len(kept)
            if kept:
                self._waiting[client] = kept
            else:
                self._waiting.pop(client, None)

    def _next(self) -> _Task | None:
        with self._changed:
            while not self._waiting:
                if self._closed:
                    return None
                self._changed.wait()
            client, tasks = next(iter(self._waiting.items()))
            task = tasks.popleft()
            if tasks:
                self._waiting.move_to_end(client)
            else:
                del self._waiting[client]
            self._count -= 1
            self._idle -= 1
            self.running += 1
            return task

    def _work(self) -> None:
        while (task := self._next()) is not None:
            future, function = task
            try:
                if future.set_running_or_notify_cancel():
                    future.set_result(function())
            except BaseException as error:  # noqa: BLE001  passed on to whoever waits for the result
                future.set_exception(error)
            finally:
                with self._changed:
                    self._idle += 1
                    self.running -= 1
            del task, future, function
