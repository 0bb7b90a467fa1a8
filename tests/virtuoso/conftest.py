"""Servers for single tests, small disks, files to load, and what a load has left."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
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


def wait_for_group(process: subprocess.Popen, journal: Path) -> None:
    """Wait until a process that loads groups has recorded one."""
    while not groups_done(journal):
        assert process.poll() is None, "the load ended before it was interrupted"
        time.sleep(0.02)


def groups_done(journal: Path) -> int:
    """Return the number of groups in a journal."""
    try:
        return json.loads(journal.read_text())["groups"]
    except FileNotFoundError:
        return 0


def remaining_files(server: Server) -> set[str]:
    """Return the journals and chunk files of loads that are in the server's folder."""
    chunks = (file for name in ("graph-load", "freebase-load") for file in (server.import_folder / name).rglob("*"))
    return {file.name for file in (*server.folder.path.glob("*-load.json"), *chunks)}
