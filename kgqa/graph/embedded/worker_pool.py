"""A pool of worker processes that have the same generation of a graph open."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kgqa.errors import StoreTimeout, StoreUnavailable
from kgqa.graph.embedded.folder import Lock
from kgqa.graph.embedded.worker_client import Worker, WorkerKilled
from kgqa.text.hints import Option


class WorkerPool:
    """Up to `size` worker processes, each of which runs one request at a time. Thread-safe.

    Args:
        size: maximum number of workers.
        writable: whether the workers open the store for editing.
        locks: locks that the workers hold until they end.
        name: the name of the graph, for messages.
    """

    def __init__(self, size: int, *, writable: bool, locks: list[Lock], name: str) -> None:
        self._size = size
        self._mode = "write" if writable else "read"
        self._locks = locks
        self._name = name
        self._path = ""
        self._slots = threading.BoundedSemaphore(size)
        self._turn = threading.Lock()
        self._guard = threading.Lock()
        self._idle: list[Worker] = []
        self._busy: list[Worker] = []
        self._closed = False

    def pids(self) -> list[int]:
        """Return the process ids of idle workers."""
        with self._guard:
            return [worker.pid for worker in self._idle]

    def open(self, path: Path) -> None:
        """Use the engine's files in a folder from now on. A worker is started while the caller continues.

        Idle workers of another folder are killed, and busy ones when they are given back.
        """
        if str(path) == self._path:
            return
        with self._guard:
            idle, self._idle, self._busy = self._idle, [], []
        for worker in idle:
            worker.kill()
        self._path = str(path)
        self._idle.append(self.start(self._path))

    def start(self, path: str) -> Worker:
        """Start a worker outside the pool."""
        return Worker({"path": path, "mode": self._mode}, tuple(lock.fd for lock in self._locks))

    def call(self, request: dict[str, Any], timeout: float) -> bytes:
        """Run a request that changes nothing, once more if the worker is killed by signal 9.

        Raises:
            StoreTimeout, StoreCrashed, KgqaError: see `Worker.call`.
        """
        deadline = time.monotonic() + timeout
        try:
            return self._call_once(request, deadline)
        except WorkerKilled:
            return self._call_once(request, deadline)

    @contextmanager
    def worker(self, timeout: float | None) -> Iterator[Worker]:
        """Lend a worker, for which the caller waits at most `timeout` seconds; None for no limit.

        Raises:
            StoreTimeout: all workers were busy.
            StoreUnavailable: the pool is closed.
        """
        if self._closed:
            raise StoreUnavailable(f"The graph at {self._name} has been closed.", "Open it again.")
        if not self._wait_for_slot(timeout):
            raise StoreTimeout(
                f"All {self._size} workers were busy for {timeout:g} s.",
                "Try again, or allow more time: ",
                Option("timeout"),
            )
        worker = None
        try:
            with self._guard:
                while self._idle and worker is None:
                    worker = self._idle.pop()
                    if not worker.alive:  # the idle worker was killed from outside
                        worker.kill()
                        worker = None
            worker = worker or self.start(self._path)
            self._busy.append(worker)
            yield worker
        finally:
            if worker is not None:
                self._give_back(worker)
            self._slots.release()

    def close(self) -> None:
        """Kill all workers. Threads that wait for a response get StoreCrashed."""
        self._closed = True
        while self._idle:
            self._idle.pop().kill()
        for worker in list(self._busy):
            worker.end()

    def _wait_for_slot(self, timeout: float | None) -> bool:
        """Take a slot. Only one caller at a time waits for one, so that a loop of edits never overtakes a query."""
        at = None if timeout is None else time.monotonic() + timeout
        if not self._turn.acquire(timeout=-1 if timeout is None else timeout):
            return False
        try:
            return self._slots.acquire(timeout=None if at is None else max(0.0, at - time.monotonic()))
        finally:
            self._turn.release()

    def _give_back(self, worker: Worker) -> None:
        with self._guard:
            if worker in self._busy and worker.alive and not self._closed:
                self._idle.append(worker)
            else:
                worker.kill()
            if worker in self._busy:
                self._busy.remove(worker)

    def _call_once(self, request: dict[str, Any], deadline: float) -> bytes:
        with self.worker(max(0.0, deadline - time.monotonic())) as worker:
            return worker.call(request, timeout=max(0.001, deadline - time.monotonic()))
