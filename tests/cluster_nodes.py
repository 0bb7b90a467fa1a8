"""A Ray cluster of two nodes for tests, as a user starts it; here both nodes are on the loopback interface."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from kgqa.cluster import PASSED_ON

ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def nodes(patch: pytest.MonkeyPatch, **variables: str) -> Iterator[tuple[str, Path]]:
    """Run two nodes with one processor each; yield the cluster's address, and the folder of the second node.

    Args:
        patch: sets the variables that this process needs to use the cluster.
        variables: environment variables of the nodes.
    """
    patch.setenv("RAY_AUTH_MODE", "token")
    patch.setenv("RAY_AUTH_TOKEN", "f" * 64)
    with socket.socket() as free:
        free.bind(("127.0.0.2", 0))
        port = free.getsockname()[1]
    names = (*PASSED_ON, "RAY_AUTH_MODE", "RAY_AUTH_TOKEN")
    environment = {name: os.environ[name] for name in names if name in os.environ} | variables
    environment |= {"PYTHONPATH": str(ROOT), "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0"}
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="kt-", dir="/tmp"))  # paths of sockets have to be short
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        head = ("--head", "--include-dashboard", "false", "--node-ip-address", "127.0.0.2", "--port", str(port))
        stack.enter_context(_node(folder / "a", *head, environment=environment))
        other = ("--address", f"127.0.0.2:{port}", "--node-ip-address", "127.0.0.3")
        stack.enter_context(_node(folder / "b", *other, environment=environment))
        yield f"127.0.0.2:{port}", folder / "b"


@contextmanager
def _node(folder: Path, *arguments: str, environment: dict[str, str]) -> Iterator[None]:
    """Run a node of a cluster with one processor."""
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", *arguments, "--block", "--disable-usage-stats"]
    command += ["--num-cpus", "1", "--object-store-memory", "80000000", "--temp-dir", str(folder)]
    environment = {**environment, "TMPDIR": str(folder)}
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
        )
    try:
        while b"runtime started" not in (folder / "log").read_bytes():
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(30)


def kill_node(folder: Path) -> None:
    """Kill all processes of a node at once, like a power cut."""
    killed = processes_of(folder)
    for number in killed:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    assert len(killed) > 2


def processes_of(folder: Path) -> list[int]:
    """The processes that were started with this folder for temporary files."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"TMPDIR={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found
