"""Worker processes around the engine, as the parent sees them: a pool of processes that can be killed.

`kgqa.graph.embedded.worker` is the other side. A request is a JSON object; a reply begins with a letter for its kind:
`R` (result), `E` (error) or `P` (progress).
"""

from __future__ import annotations

import json
import math
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, BinaryIO

from kgqa import errors
from kgqa.errors import StoreCrashed, StoreError, StoreTimeout, StoreUnavailable
from kgqa.net.threads import CHECK_SECONDS, question_stop
from kgqa.text.hints import Option

OUT_OF_MEMORY = re.compile(
    r"memory allocation of \d+ bytes failed|bad_alloc|MemoryError|what\(\): +Resource temporarily unavailable"
)
"""Matches the message of a process that failed to allocate memory; the last one, for the stack of a thread."""


STALL_SECONDS = 5
"""How long a process that has begun its reply may send nothing; it is then treated like one that was killed."""


class WorkerKilled(StoreCrashed):
    """The worker was killed during a query by signal 9, sent by the system (out of memory) or by a user."""


class Worker:
    """One worker process. Not thread-safe: only one caller may use a worker at a time.

    Args:
        path: the engine's files, which the process opens at once; the first `call` waits for it. None for a worker that
            opens no store.
        mode: "read" or "write".
        locks: the process inherits these locks and holds them until it ends.
    """

    def __init__(self, path: Path | None, mode: str = "read", locks: Sequence[BinaryIO] = ()) -> None:
        self.path = path
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", STALL_SECONDS, 0))
        self._connection = Connection(ours.detach())
        # Connection.poll would build a selector for each call, which takes as long as a small query
        self._poll = select.poll()
        self._poll.register(self._connection, select.POLLIN)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill()
        try:
            self._process = subprocess.Popen(
                # -P and an explicit path: no file in the working folder can replace a module
                [sys.executable, "-P", "-m", "kgqa.graph.embedded.worker", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._stderr,
                stderr=self._stderr,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
                pass_fds=(theirs.fileno(), *(lock.fileno() for lock in locks)),
            )
        except BaseException:  # Ctrl-C, too: a process that was started nevertheless holds locks until this is closed
            self._connection.close()
            raise
        finally:
            theirs.close()
        self.pid = self._process.pid
        self._opening = path is not None
        if self._opening:
            self._send({"op": "open", "path": str(path), "mode": mode})

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def call(
        self,
        request: dict[str, Any],
        *,
        seconds: float = math.inf,
        progress: Callable[[dict[str, Any]], None] = lambda fields: None,
    ) -> memoryview:
        """Send a request and wait for its response.

        The process is kept after an error in the query or update itself. After other errors and after Ctrl-C, the
        process is killed, because a late response would be mistaken for the response to the next request.

        Args:
            request: the fields of the request; `op` is the operation.
            seconds: how long to wait.
            progress: called with each progress report of the worker.

        Raises:
            StoreTimeout: there was no response in time, or the question of this thread was stopped.
            StoreCrashed: the process died; WorkerKilled: by signal 9.
            KgqaError: the worker reported an error.
        """
        at = time.monotonic() + seconds
        try:
            if self._opening:
                self._receive(at, seconds, progress)
                self._opening = False
            self._send(request)
            return self._receive(at, seconds, progress)
        except (EOFError, OSError):
            raise self._crash() from None
        except BaseException as error:
            if self._opening or not isinstance(error, StoreError) or isinstance(error, (StoreTimeout, StoreCrashed)):
                self.kill()
            raise

    def _send(self, request: dict[str, Any]) -> None:
        self._connection.send_bytes(json.dumps(request).encode())

    def _receive(self, at: float, seconds: float, progress: Callable[[dict[str, Any]], None]) -> memoryview:
        stop = question_stop.get()
        while True:
            left = at - time.monotonic()
            if stop is not None and stop.is_set():
                raise StoreTimeout("The query was stopped together with its question.")
            if left <= 0:
                raise StoreTimeout(
                    f"The query was stopped after {seconds:.3g} s without a result.",
                    "Allow more time (",
                    Option("timeout"),
                    "), or narrow the query.",
                )
            if self._poll.poll(1000 * min(left, CHECK_SECONDS)):
                reply = memoryview(self._connection.recv_bytes())
                kind = bytes(reply[:1])
                if kind == b"R":
                    return reply[1:]
                fields = json.loads(bytes(reply[1:]))
                if kind == b"E":
                    raise getattr(errors, fields["kind"])(fields["message"], fields["hint"])
                progress(fields)

    def _crash(self) -> StoreCrashed:
        """Return the error for a process that has closed its connection."""
        try:
            code = self._process.wait(STALL_SECONDS)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL
        self._stderr.seek(0)
        tail = self._stderr.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        self.kill()
        if code == -signal.SIGKILL:
            return WorkerKilled(
                "The engine's process was killed (signal 9), probably because the system ran out of memory. Free some "
                "memory and try again."
            )
        line = next((line for line in tail if OUT_OF_MEMORY.search(line)), tail[-1] if tail else "")
        why = f" Its last message: {line[:200]}" if line else ""
        return StoreCrashed(f"The engine crashed on this query (exit code {code}). The query is not retried.{why}")

    def end(self) -> None:
        """Kill the process, from a thread other than the one that waits for a response."""
        self._process.kill()

    def kill(self) -> None:
        """Kill the process and close its pipe. Calling it twice does no harm."""
        self._process.kill()
        self._process.wait()
        self._connection.close()
        self._stderr.close()


class WorkerPool:
    """Up to `size` workers that have the same generation of a graph open, each for one caller at a time. Thread-safe.

    Args:
        size: maximum number of workers.
        mode: "read" or "write".
        locks: locks that the workers hold until they end.
        name: the name of the graph, for messages.
    """

    def __init__(self, size: int, *, mode: str, locks: list[BinaryIO], name: str) -> None:
        self._size, self._mode, self._locks, self._name = size, mode, locks, name
        self._path: Path | None = None
        self._slots = threading.BoundedSemaphore(size)
        self._turn, self._guard = threading.Lock(), threading.Lock()
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._closed = False

    def open(self, path: Path) -> None:
        """Use the engine's files in a folder from now on. A worker is started while the caller continues.

        Idle workers of another folder are killed, and busy ones when they are given back.
        """
        with self._guard:
            self._path = path
            self._kill_idle()
            self._idle.append(Worker(path, self._mode, self._locks))

    @contextmanager
    def lend(self, seconds: float = math.inf) -> Iterator[Worker]:
        """Lend a worker, for which the caller waits at most `seconds`.

        Raises:
            StoreTimeout: all workers were busy.
            StoreUnavailable: the pool is closed.
        """
        if self._closed:
            raise StoreUnavailable(f"The graph at {self._name} has been closed.", "Open it again.")
        # only one caller at a time waits for a slot, so that a loop of edits never overtakes a query
        at = time.monotonic() + seconds
        free = False
        if self._turn.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            try:
                free = self._slots.acquire(timeout=min(max(0.0, at - time.monotonic()), threading.TIMEOUT_MAX))
            finally:
                self._turn.release()
        if not free:
            raise StoreTimeout(
                f"All {self._size} workers were busy for {seconds:g} s.",
                "Try again, or allow more time: ",
                Option("timeout"),
            )
        try:
            with self._guard:
                worker = self._take()
            try:
                yield worker
            finally:
                with self._guard:
                    self._give_back(worker)
        finally:
            self._slots.release()

    def _take(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                break
            worker.kill()  # the idle worker was killed from outside
        else:
            worker = Worker(self._path, self._mode, self._locks)
        self._busy.add(worker)
        return worker

    def _give_back(self, worker: Worker) -> None:
        self._busy.discard(worker)
        if worker.path == self._path and worker.alive and not self._closed:
            self._idle.append(worker)
        else:
            worker.kill()

    def _kill_idle(self) -> None:
        while self._idle:
            self._idle.pop().kill()

    def close(self) -> None:
        """Kill all workers. Threads that wait for a response get StoreCrashed."""
        self._closed = True
        self._kill_idle()
        for worker in list(self._busy):
            worker.end()
