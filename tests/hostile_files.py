"""Hostile files: damaged JSON documents, and commands run with a memory limit.

@given(hostile(document))
def test_...(damaged):
    path.write_text(as_json(damaged))
    done = run_limited("eval", "status", path)
    assert done.code in (1, 2) and "internal error" not in done.text
"""

from __future__ import annotations

import json
import os
import resource
import signal
import struct
import sys
import tempfile
import time
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

MEMORY = 2 << 30
"""Bytes that a command may use in addition to those of the test process."""
DEEP = 100_000
VALUES: list[Any] = [
    None, True, -1, 0, 1, 10**30, 1e308, -1e308, float("nan"), float("inf"), "", "x", "1", "1/../../victim", "../victim",
    "/etc/passwd", "\0", "\x1b[31m", "\ud800", "a." * 5000, [], {}, [1], [[1]], {"x": 1}, {"": []}, [None],
]  # fmt: skip


@dataclass(frozen=True)
class Nested:
    """Stands for a list nested DEEP times, which `json.dumps` cannot write; see `as_json`."""


def value_paths(document: Any) -> list[tuple]:
    """Return the path of keys and indexes to every value of a JSON document, including `()`."""
    found: list[tuple] = [()]
    if isinstance(document, dict):
        items = list(document.items())
    else:
        items = list(enumerate(document)) if isinstance(document, list) else []
    for key, value in items:
        found += [(key, *rest) for rest in value_paths(value)]
    return found


@st.composite
def hostile(draw, document: Any) -> Any:
    """Draw the document with one to three values replaced or removed."""
    damaged = deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(value_paths(damaged)))
        value = deepcopy(draw(st.sampled_from([*VALUES, Nested()])))
        if not path:
            return value
        parent = damaged
        for key in path[:-1]:
            parent = parent[key]
        if draw(st.integers(0, 4)) == 0:
            del parent[path[-1]]
        else:
            parent[path[-1]] = value
    return damaged


def as_json(document: Any) -> str:
    """Return JSON text, with NaN, lone surrogates and every `Nested` written out."""
    text = json.dumps(document, default=lambda value: "NESTED" if isinstance(value, Nested) else None)
    return text.replace('"NESTED"', "[" * DEEP + "]" * DEEP)


@dataclass(frozen=True)
class CommandResult:
    """How a command ended: its exit code (negative: a signal) and all it printed."""

    code: int
    text: str


def run_limited(*arguments: object, memory: int = MEMORY, seconds: float = 60) -> CommandResult:
    """Run a kgqa command in a child process with at most `memory` bytes more than this process has.

    A fork needs no imports, so a property can run hundreds of commands. Fails if the command hangs.
    """
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            _run_child([str(argument) for argument in arguments], output.fileno(), memory)
        deadline = time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise AssertionError(f"kgqa {arguments} did not end within {seconds} s")
            time.sleep(0.005)
        output.seek(0)
        return CommandResult(os.waitstatus_to_exitcode(status), output.read().decode(errors="replace"))


def _run_child(arguments: list[str], output: int, memory: int) -> None:
    code = 70
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdin = open(os.devnull)
        sys.stdout = open(1, "w", closefd=False, errors="backslashreplace")
        sys.stderr = open(2, "w", closefd=False, errors="backslashreplace")
        with open("/proc/self/statm") as statm:
            now = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))
        from kgqa.cli.main import main

        main(arguments)
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else int(bool(exit_.code))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


def journal_naming(victim: Path) -> bytes:
    """Return a journal of SQLite after whose rollback SQLite removes the file `victim`."""
    magic, name = bytes.fromhex("d9d505f920a163d7"), bytes(victim)
    head = (magic + struct.pack(">5I", 0, 0, 1, 512, 4096)).ljust(512, b"\0")
    return head + struct.pack(">I", 1 << 18) + name + struct.pack(">2I", len(name), sum(name)) + magic
