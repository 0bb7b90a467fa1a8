"""Files that a stranger wrote: damaged JSON documents, and commands that meet them under a limit of memory.

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
import sys
import tempfile
import time
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

MEMORY = 2 << 30
"""Bytes that a command may take beyond what the test has taken."""
DEEP = 100_000
VALUES: list[Any] = [
    None, True, -1, 0, 1, 10**30, 1e308, -1e308, float("nan"), float("inf"), "", "x", "1", "1/../../victim", "../victim",
    "/etc/passwd", "\0", "\x1b[31m", "\ud800", "a." * 5000, [], {}, [1], [[1]], {"x": 1}, {"": []}, [None],
]  # fmt: skip


@dataclass(frozen=True)
class Nested:
    """Stands for a list in a list in a list, DEEP times: too deep for `json.dumps`, see `as_json`."""


def places(document: Any) -> list[tuple]:
    """The path of keys and positions to every value of a JSON document, itself `()` included."""
    found: list[tuple] = [()]
    if isinstance(document, dict):
        items = list(document.items())
    else:
        items = list(enumerate(document)) if isinstance(document, list) else []
    for key, value in items:
        found += [(key, *rest) for rest in places(value)]
    return found


@st.composite
def hostile(draw, document: Any) -> Any:
    """The document with one to three of its values exchanged for others, or taken out."""
    damaged = deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places(damaged)))
        value = deepcopy(draw(st.sampled_from([*VALUES, Nested()])))
        if not place:
            return value
        parent = damaged
        for key in place[:-1]:
            parent = parent[key]
        if draw(st.integers(0, 4)) == 0:
            del parent[place[-1]]
        else:
            parent[place[-1]] = value
    return damaged


def as_json(document: Any) -> str:
    """JSON text, NaN and lone surrogates included, with every `Nested` written out."""
    text = json.dumps(document, default=lambda value: "NESTED" if isinstance(value, Nested) else None)
    return text.replace('"NESTED"', "[" * DEEP + "]" * DEEP)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative: a signal) and all it printed."""

    code: int
    text: str


def run_limited(*arguments: object, memory: int = MEMORY, seconds: float = 60) -> Ended:
    """Run a kgqa command in a child of this process, with `memory` bytes more than there are now at most.

    A fork costs no imports, so a property can run hundreds of commands. Fails when the command hangs.
    """
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            _run_child([str(argument) for argument in arguments], output.fileno(), memory)
        until = time.monotonic() + seconds
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise AssertionError(f"kgqa {arguments} did not end within {seconds} s")
            time.sleep(0.005)
        output.seek(0)
        return Ended(os.waitstatus_to_exitcode(status), output.read().decode(errors="replace"))


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
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(bool(ending.code))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)
