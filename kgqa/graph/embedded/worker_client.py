"""The parent's side of a worker process: start it, ask it, kill it."""

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
from typing import Any

from kgqa import errors
from kgqa.errors import StoreCrashed, StoreError, StoreTimeout

OUT_OF_MEMORY = re.compile(r"memory allocation of \d+ bytes failed|bad_alloc|MemoryError")
"""What a process says that is not given the memory it asks for."""
TOO_FEW_FILES = "file descriptors"
"""What the engine says of where it may not open enough files."""
PIPE_BYTES = 1 << 16
MOST_READ = 1 << 20


class WorkerKilled(StoreCrashed):
    """Signal 9 ended the process in the middle of a query. The signal came from outside: the system, short of memory, or
    a person.
    """


class Worker:
    """One worker process with a store open. Not thread-safe: whoever took it from the pool has it alone.

    Args:
        open_request: the `open` request, sent at once; its answer is awaited with the first call.
        keep_open: file descriptors (locks) that the process inherits and holds as long as it lives.
    """

    def __init__(self, open_request: dict[str, Any] | None, keep_open: tuple[int, ...] = ()) -> None:
        # -P and an explicit path: nothing in the working folder can stand in for a module
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._stderr = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kgqa.graph.embedded.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment,
            pass_fds=keep_open,
            bufsize=0,
        )
        self._received = b""
        self.generation = 0
        """The generation of the graph that it has open, for whoever keeps it."""
        self._opening = open_request is not None
        if open_request is not None:
            self._send({"op": "open", **open_request})

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can take a request. A process that has just been killed may not be gone yet, but the pipe
        it answered on is at its end.
        """
        if self._process.poll() is not None or self._process.stdout.closed:
            return False
        return self._opening or not select.select([self._process.stdout.fileno()], [], [], 0)[0]

    def call(
        self,
        request: dict[str, Any],
        *,
        timeout: float | None,
        progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> bytes:
        """Send a request and wait for its answer. On any failure but the engine's own errors the process is
        dead afterwards; also on Ctrl-C, because a late answer would be taken for the next one's.

        Raises:
            StoreTimeout: no answer in `timeout` seconds. StoreCrashed: the process died. WorkerKilled: signal 9 ended it.
                And what it reports.
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
        data = json.dumps(request).encode()
        view = memoryview(struct.pack(">I", len(data)) + data)
        try:
            while view:
                view = view[os.write(self._process.stdin.fileno(), view) :]
        except BrokenPipeError:
            raise self._crashed() from None

    def _receive(self, deadline, progress, timeout=None) -> bytes:
        while True:
            kind, size = struct.unpack(">cI", self._read(5, deadline, timeout))
            payload = self._read(size, deadline, timeout)
            if kind == b"P":
                if progress:
                    progress(json.loads(payload))
            elif kind == b"E":
                report = json.loads(payload)
                raise getattr(errors, report["kind"], StoreError)(report["message"])
            else:
                return payload

    def _read(self, size: int, deadline: float | None, timeout: float | None) -> bytes:
        """The next bytes of the answer. What has arrived beyond them is kept: most answers are one read."""
        fd = self._process.stdout.fileno()
        parts = [self._received]
        missing = size - len(self._received)
        while missing > 0:
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([fd], [], [], left)[0]:
                    limit = f" after {timeout:.3g} s" if timeout is not None else ""
                    raise StoreTimeout(
                        f"The query was ended{limit}, before it had an answer. Give it more time (--timeout) or ask for less."
                    )
            data = os.read(fd, max(PIPE_BYTES, min(missing, MOST_READ)))
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
                "The engine's process was ended from outside (signal 9) in the middle of its work, as a system does that "
                "is short of memory. Free some memory, and try again."
            )
        self._stderr.seek(0)
        tail = self._stderr.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        said = next((line for line in tail if OUT_OF_MEMORY.search(line)), tail[-1] if tail else "")
        why = f" It said: {said[:200]}" if said else ""
        return StoreCrashed(f"The engine died on this query (exit {code}); it is not tried again.{why}")

    def end(self) -> None:
        """End the process from another thread than the one that waits for its answer."""
        self._process.kill()

    def kill(self) -> None:
        """End the process now, whatever it does. Calling it again is fine."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream and not stream.closed:
                stream.close()
