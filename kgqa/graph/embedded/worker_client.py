"""The parent's side of a worker process: starting the worker, sending requests, killing the worker."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from kgqa import errors
from kgqa.errors import StoreCrashed, StoreError, StoreTimeout
from kgqa.net.threads import CHECK_SECONDS, question_stop
from kgqa.text.hints import Option, current_place

OUT_OF_MEMORY = re.compile(
    r"memory allocation of \d+ bytes failed|bad_alloc|MemoryError|what\(\): +Resource temporarily unavailable"
)
"""Matches the message of a process that failed to allocate memory; the last one, for the stack of a thread."""
TOO_FEW_FILES = "file descriptors"
"""Part of the engine's message when the limit on open files is too low."""
PIPE_BYTES = 1 << 16
MAX_READ_BYTES = 1 << 20


class WorkerKilled(StoreCrashed):
    """The worker was killed during a query by signal 9, sent by the system (out of memory) or by a user."""


class Worker:
    """One worker process with an open store. Not thread-safe: only one caller may use a worker at a time.

    Args:
        open_request: fields of the `open` request; None for a worker that opens no store. The request is sent at once,
            and the first `call` reads its response.
        keep_open: file descriptors of locks. The process inherits the descriptors and holds the locks until it ends.
    """

    def __init__(self, open_request: dict[str, Any] | None, keep_open: tuple[int, ...] = ()) -> None:
        # -P and an explicit path: no file in the working folder can replace a module
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kgqa.graph.embedded.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment,
            pass_fds=keep_open,
            bufsize=0,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._received = b""
        self._opening = open_request is not None
        if open_request is not None:
            self._send({"op": "open", **open_request})

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the worker can take a request. A closed pipe shows that the process has just been killed."""
        if self._process.poll() is not None or self._stdout.closed:
            return False
        return self._opening or not select.select([self._stdout.fileno()], [], [], 0)[0]

    def call(
        self,
        request: dict[str, Any],
        *,
        timeout: float | None,
        progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> bytes:
        """Send a request and wait for its response.

        The process is kept after an error in the query or update itself. After other errors and after Ctrl-C, the
        process is killed, because a late response would be mistaken for the response to the next request.

        Args:
            request: the fields of the request; `op` is the operation.
            timeout: maximum seconds for the response; None for no limit.
            progress: called with each progress report of the worker.

        Raises:
            StoreTimeout: there was no response within `timeout` seconds.
            StoreCrashed: the process died.
            WorkerKilled: signal 9 ended the process.
            KgqaError: the worker reported an error.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            if self._opening:
                self._receive(deadline, None)
                self._opening = False
            self._send(request)
            return self._receive(deadline, progress, timeout)
        except StoreError as error:
            if self._opening or isinstance(error, (StoreTimeout, StoreCrashed)):
                self.kill()
            raise
        except BaseException:
            self.kill()
            raise

    def _send(self, request: dict[str, Any]) -> None:
        # the worker words the hints of its errors for the place where they are shown
        data = json.dumps({**request, "place": asdict(current_place())}).encode()
        view = memoryview(struct.pack(">I", len(data)) + data)
        try:
            while view:
                view = view[os.write(self._stdin.fileno(), view) :]
        except BrokenPipeError:
            raise self._crashed() from None

    def _receive(
        self,
        deadline: float | None,
        progress: Callable[[dict[str, Any]], None] | None,
        timeout: float | None = None,
    ) -> bytes:
        while True:
            kind, size = struct.unpack(">cI", self._read(5, deadline, timeout))
            payload = self._read(size, deadline, timeout)
            if kind == b"P":
                if progress:
                    progress(json.loads(payload))
            elif kind == b"E":
                report = json.loads(payload)
                raise getattr(errors, report["kind"], StoreError)(report["message"], report["hint"])
            else:
                return payload

    def _read(self, size: int, deadline: float | None, timeout: float | None) -> bytes:
        """Read the next `size` bytes of the response. Bytes received beyond `size` are kept for the next call."""
        fd = self._stdout.fileno()
        parts = [self._received]
        missing = size - len(self._received)
        while missing > 0:
            _wait(fd, deadline, timeout)
            data = os.read(fd, max(PIPE_BYTES, min(missing, MAX_READ_BYTES)))
            if not data:
                raise self._crashed()
            parts.append(data)
            missing -= len(data)
        data = b"".join(parts)
        self._received = data[size:]
        return data[:size] if self._received else data

    def _crashed(self) -> StoreCrashed:
        try:
            code: int | str = self._process.wait(5)
        except subprocess.TimeoutExpired:
            code = "still running"
        if code == -signal.SIGKILL:
            return WorkerKilled(
                "The engine's process was killed (signal 9), probably because the system ran out of memory. Free some "
                "memory and try again."
            )
        self._stderr.seek(0)
        tail = self._stderr.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        line = next((line for line in tail if OUT_OF_MEMORY.search(line)), tail[-1] if tail else "")
        why = f" Its last message: {line[:200]}" if line else ""
        return StoreCrashed(f"The engine crashed on this query (exit code {code}). The query is not retried.{why}")

    def end(self) -> None:
        """Kill the process, from a thread other than the one that waits for a response."""
        self._process.kill()

    def kill(self) -> None:
        """Kill the process and close its pipes. Calling it twice does no harm."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for stream in (self._stdin, self._stdout, self._stderr):
            if not stream.closed:
                stream.close()


def _wait(fd: int, deadline: float | None, timeout: float | None) -> None:
    """Wait until a response can be read. `timeout`: the seconds until `deadline`, for the message.

    Raises:
        StoreTimeout: the deadline has passed, or the question of this thread was stopped.
    """
    stop, ready = question_stop.get(), False
    while not ready:
        left = None if deadline is None else deadline - time.monotonic()
        if stop is not None and stop.is_set():
            raise StoreTimeout("The query was stopped together with its question.")
        if left is not None and left <= 0:
            limit = f" after {timeout:.3g} s" if timeout is not None else ""
            raise StoreTimeout(
                f"The query was stopped{limit} without a result.",
                "Allow more time (",
                Option("timeout"),
                "), or narrow the query.",
            )
        waits = [seconds for seconds in (left, CHECK_SECONDS if stop else None) if seconds is not None]
        ready = bool(select.select([fd], [], [], min(waits, default=None))[0])
