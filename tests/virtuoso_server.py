"""Virtuoso servers for tests: one for the session, and copies for tests that stop or kill theirs.

`pytest_plugins` in `tests/conftest.py` loads the fixtures. All servers run in temporary folders on free ports, and end
with the test process, even if it is killed (see `end_servers.py`).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kgqa.errors import ServerError
from kgqa.virtuoso.process import client_program, end_process, free_port, lock_owner, server_program
from kgqa.virtuoso.server import Server

# small, because other processes of the tests run at the same time
MEMORY_SHARE = 0.02


def installed() -> bool:
    """Tell whether both programs of Virtuoso are installed."""
    try:
        return bool(server_program() and client_program())
    except ServerError:
        return False


def needs_virtuoso() -> None:
    """Skip the test if Virtuoso is not installed."""
    if not installed():
        pytest.skip("Virtuoso is not installed: make virtuoso-install")


@contextmanager
def running_server(folder: Path, **options: Any) -> Iterator[Server]:
    """Run a server in this folder on free ports until the block ends; `options` are those of `Server.start`."""
    needs_virtuoso()
    server = Server.at(folder)
    try:
        _start(server, options)
        yield server
    finally:
        end(server)


def _start(server: Server, options: Mapping[str, Any]) -> None:
    """Start a server on free ports, again if another process took one of them in the meantime."""
    for attempt in range(3):
        defaults = {"http_port": free_port(), "sql_port": free_port(), "memory_share": MEMORY_SHARE}
        try:
            server.start(**{**defaults, **options})
            return
        except ServerError as error:
            if "port is in use" not in str(error) or attempt == 2:
                raise


def end(server: Server) -> None:
    """End the server of a test, whatever the test did to it."""
    owner = lock_owner(server.folder.lock)
    if owner:
        end_process(owner)


def copied(prepared: Path, folder: Path) -> Path:
    """Copy a stopped server, which is faster than creating a database."""
    shutil.copytree(prepared, folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _end_servers(tmp_path_factory) -> Iterator[None]:
    """End all servers of this process when it ends, even if it is killed."""
    if not installed():
        yield
        return
    command = [sys.executable, "-I", str(Path(__file__).with_name("end_servers.py")), tmp_path_factory.getbasetemp()]
    watcher = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    yield
    watcher.stdin.close()


@pytest.fixture(scope="session")
def prepared_folder(tmp_path_factory) -> Path:
    """The folder of a server that was created and stopped; copy it, never start it."""
    needs_virtuoso()
    folder = tmp_path_factory.mktemp("virtuoso") / "prepared"
    with running_server(folder) as server:
        server.stop()
    return folder


@pytest.fixture(scope="session")
def virtuoso_server(prepared_folder, tmp_path_factory) -> Iterator[Server]:
    """The server of the session; use new graph IRIs, and leave it running."""
    with running_server(copied(prepared_folder, tmp_path_factory.mktemp("virtuoso") / "server")) as server:
        yield server
