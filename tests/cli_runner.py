"""The command line under test: in this process with `run_cli` (most tests), or as a separate process.

A separate process is needed for signals, broken pipes, terminal output, and one test of each command;
such tests are marked `cli` (see `conftest.py`).
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner

from kgqa.cli.main import main

PLUGIN = re.compile(r"The [a-z_]+ [\w-]+.* of \w+ \(\w+\.py, line \d+\)")
KGQA = str(Path(sys.executable).with_name("kgqa"))
"""The installed command, for processes."""


@dataclass(frozen=True)
class Finished:
    """A finished command: its exit code and what it wrote."""

    returncode: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        return self.stdout.decode()

    @property
    def err(self) -> str:
        return self.stderr.decode()


class _Program:
    """The program as click's runner calls it: `main`, with its messages and exit codes."""

    name = "kgqa"

    def main(self, args: tuple[str, ...], prog_name: str) -> None:
        del prog_name
        main(list(args))


def run_cli(
    *arguments: object, input: str | bytes | None = None, cwd: Path | None = None, **environment: str
) -> Finished:
    """Run `kgqa ARGUMENTS` in this process.

    Not for several threads at a time: the standard streams and the working folder belong to the process.

    Args:
        input: standard input; empty if None.
        cwd: the working folder; unchanged if None.
        environment: variables set for this command.

    Raises:
        AssertionError: the command failed with a traceback or an internal error.
        Exception: with -v, the error behind an internal error.
    """
    with contextlib.chdir(cwd or os.getcwd()), patch.dict(os.environ, environment):
        result = CliRunner().invoke(
            _Program(), [str(argument) for argument in arguments], input=input, catch_exceptions=False
        )
    return _checked(Finished(result.exit_code, result.stdout_bytes, result.stderr_bytes))


def run_cli_process(
    *arguments: object,
    input: str | bytes | None = None,
    cwd: Path | None = None,
    timeout: float = 120,
    **environment: str,
) -> Finished:
    """Run `kgqa ARGUMENTS` as a separate process; the arguments are those of `run_cli`, `timeout` is in seconds."""
    done = subprocess.run(
        [KGQA, *map(str, arguments)],
        input=input.encode() if isinstance(input, str) else input or b"",
        capture_output=True,
        cwd=cwd,
        timeout=timeout,
        env={**os.environ, **environment},
    )
    return _checked(Finished(done.returncode, done.stdout, done.stderr))


def _checked(done: Finished) -> Finished:
    # a defect of a plugin is shown with its traceback, and the last line names the plugin
    assert "Traceback" not in done.err or PLUGIN.search(done.err), done.err
    assert "internal error" not in done.err, done.err
    return done


@pytest.fixture
def kgqa(tmp_path):
    """`kgqa(*arguments, input=None, cwd=tmp_path, **environment) -> Finished`: the command line in this process."""

    def run(*arguments: object, cwd: Path = tmp_path, timeout: float = 0, **options) -> Finished:
        del timeout  # pytest's limit holds; tests that pass one run in either fixture
        return run_cli(*arguments, cwd=cwd, **options)

    return run


@pytest.fixture
def kgqa_process(tmp_path):
    """`kgqa_process(*arguments, ...) -> Finished`: the command line as a separate process; marks the test `cli`."""

    def run(*arguments: object, cwd: Path = tmp_path, **options) -> Finished:
        return run_cli_process(*arguments, cwd=cwd, **options)

    return run


@pytest.fixture
def started(tmp_path):
    """`started(*arguments, **options) -> Popen`: a running command, killed after the test; marks the test `cli`."""
    running = []

    def start(*arguments: object, **options) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        command = [KGQA, *map(str, arguments)]
        running.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=tmp_path, **options))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
