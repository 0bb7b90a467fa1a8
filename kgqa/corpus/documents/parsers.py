"""Parses files in processes of their own, with limits of time and memory."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from typing import Any

from kgqa.corpus.documents.document import Element, Figure
from kgqa.corpus.documents.formats.content import Content
from kgqa.corpus.documents.limits import Limits
from kgqa.corpus.documents.parser_process import LENGTHS
from kgqa.errors import DocumentError

_READ_BYTES = 1 << 20
_MAX_IDLE = 4


def parse(format_: str, data: bytes, limits: Limits) -> Content:
    """Read a file with the reader of its format. Thread-safe.

    Raises:
        DocumentError: The file is damaged, exceeds a limit, or makes the parser crash.
    """
    parser = _take()
    try:
        content = parser.parse(format_, data, limits)
    except DocumentError:
        parser.end_if_failed()
        raise
    except BaseException:
        parser.end()  # a late response would be taken for the response to the next request
        raise
    finally:
        _give_back(parser)
    return content


class _Parser:
    """One parser process. Not thread-safe."""

    def __init__(self) -> None:
        # -P and an explicit path: no file in the working folder can replace a module
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kgqa.corpus.documents.parser_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            bufsize=0,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._failed = False

    @property
    def alive(self) -> bool:
        """Whether the process can take a request."""
        return not self._failed and self._process.poll() is None

    def parse(self, format_: str, data: bytes, limits: Limits) -> Content:
        header = json.dumps({"format": format_, "limits": asdict(limits)}).encode()
        self._failed = True
        deadline = time.monotonic() + limits.seconds
        try:
            for part in (LENGTHS.pack(len(header), len(data)), header, data):
                self._write(part)
            header_length, data_length = LENGTHS.unpack(self._read(LENGTHS.size, deadline, limits))
            fields = json.loads(self._read(header_length, deadline, limits))
            figures = self._read(data_length, deadline, limits)
        except BrokenPipeError:
            raise DocumentError(self._cause()) from None
        self._failed = False
        if "error" in fields:
            raise DocumentError(fields["error"])
        return _content(fields, figures)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._stdin.fileno(), view) :]

    def _read(self, size: int, deadline: float, limits: Limits) -> bytes:
        parts = []
        while size > 0:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._stdout.fileno()], [], [], left)[0]:
                raise DocumentError(f"reading it takes longer than {limits.seconds:g} seconds")
            data = os.read(self._stdout.fileno(), min(size, _READ_BYTES))
            if not data:
                raise DocumentError(self._cause())
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def _cause(self) -> str:
        """Return why the process ended."""
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            code = 0
        if code < 0 and -code in (signal.SIGKILL, signal.SIGABRT):
            return "the parser was killed, probably because it needed too much memory"
        return f"the parser crashed (exit code {code})"

    def end_if_failed(self) -> None:
        """End the process unless it has answered its last request."""
        if self._failed:
            self.end()

    def end(self) -> None:
        """Kill the process and close its pipes. Calling it twice does no harm."""
        self._failed = True
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._stdin.close()
        self._stdout.close()


_idle: list[tuple[int, _Parser]] = []
"""Processes that wait for a request, each with the id of the process that started it."""
_lock = threading.Lock()


def close_parsers() -> None:
    """End the processes that wait for a request."""
    with _lock:
        parsers = [parser for owner, parser in _idle if owner == os.getpid()]
        _idle.clear()
    for parser in parsers:
        parser.end()


def _take() -> _Parser:
    with _lock:
        while _idle:
            owner, parser = _idle.pop()
            if owner == os.getpid() and parser.alive:
                return parser
            if owner == os.getpid():
                parser.end()
        atexit.unregister(close_parsers)
        atexit.register(close_parsers)
    return _Parser()


def _give_back(parser: _Parser) -> None:
    if parser.alive:
        with _lock:
            if len(_idle) < _MAX_IDLE:
                _idle.append((os.getpid(), parser))
                return
    parser.end()


def _content(fields: dict[str, Any], figures: bytes) -> Content:
    def spans(values: list[list[int]]) -> tuple[tuple[int, int], ...]:
        return tuple((begin, end) for begin, end in values)

    elements = tuple(
        Element(kind, begin, end, level, spans(cells), spans(header), target)
        for kind, begin, end, level, cells, header, target in fields["elements"]
    )
    found = []
    at = 0
    for about in fields["figures"]:
        size = about.pop("size")
        found.append(Figure(figures[at : at + size], **about))
        at += size
    return Content(fields["text"], fields["title"], tuple(fields["pages"]), elements, tuple(found))
