"""Servers for single tests, small disks and files to load."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kgqa.virtuoso.server import Server
from tests.virtuoso_server import copied, running_server


@pytest.fixture
def stopped_server(prepared_folder, tmp_path) -> Server:
    """A stopped server for one test."""
    return Server.at(copied(prepared_folder, tmp_path / "own"))


@pytest.fixture
def own_server(prepared_folder, tmp_path) -> Iterator[Server]:
    """A running server for one test, which may be stopped or killed."""
    with running_server(copied(prepared_folder, tmp_path / "own")) as server:
        yield server


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Callable[[int], Path]]:
    """`small_disk(megabytes)`: mount an empty disk and return its folder; skips the test without root."""
    with ExitStack() as stack:

        def mount(megabytes: int, name: str = "disk") -> Path:
            folder = tmp_path / name
            folder.mkdir()
            command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(folder)]
            if sys.platform != "linux" or os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
                pytest.skip("mounting a small disk needs root, and a container that allows it")
            stack.callback(subprocess.run, ["umount", "-l", str(folder)], check=True)
            return folder

        yield mount


def write_triples(file: Path, start: int, count: int) -> Path:
    """Write an N-Triples file of this many distinct triples with random literals."""
    chance = random.Random(start)
    with open(file, "w", encoding="utf-8") as lines:
        lines.writelines(
            f'<http://e/n{number}> <http://e/p{number % 40}> "{chance.random()} {chance.random()}" .\n'
            for number in range(start, start + count)
        )
    return file
