"""Runs the installed `kgqa` as its users do: a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

KGQA = str(Path(sys.executable).with_name("kgqa"))


@pytest.fixture
def kgqa(tmp_path):
    """Run kgqa and give the finished process; fails on a traceback, whatever else happened."""

    def run(
        *arguments: str,
        input: str | bytes | None = None,
        timeout: float = 120,
        cwd: Path = tmp_path,
        **environment: str,
    ):
        data = input.encode() if isinstance(input, str) else input
        done = subprocess.run(
            [KGQA, *map(str, arguments)],
            input=b"" if data is None else data,
            capture_output=True,
            cwd=cwd,
            timeout=timeout,
            env={**os.environ, **environment},
        )
        done.out, done.err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in done.err, done.err
        assert "internal error" not in done.err, done.err
        return done

    return run


@pytest.fixture
def started(tmp_path):
    """Start kgqa and give the process; it is killed when the test is over."""
    running = []

    def start(*arguments: str, **options):
        process = subprocess.Popen(
            [KGQA, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            **options,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()
