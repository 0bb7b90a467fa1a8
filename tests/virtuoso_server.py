"""A real Virtuoso server for tests: one for the whole session, in a temporary folder, on free ports.

In the conftest of another folder:

    from tests.virtuoso_server import prepared_folder, virtuoso_server  # noqa: F401
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgqa.virtuoso.instance.processes import free_port
from kgqa.virtuoso.instance.programs import installed
from kgqa.virtuoso.server.server import Server

# small, so that it stands beside everything else that tests start
MEMORY_SHARE = 0.02


def needs_virtuoso() -> None:
    """Skip the test, saying so, where Virtuoso is not installed."""
    if not installed():
        pytest.skip("Virtuoso is not installed: make virtuoso-install")


@contextmanager
def running_server(folder: Path, **options) -> Iterator[Server]:
    """A started server in this folder, on free ports; ended at the end. `options` are those of `Server.start`."""
    needs_virtuoso()
    server = Server.at(folder)
    defaults = {"http_port": free_port(), "sql_port": free_port(), "memory_share": MEMORY_SHARE}
    try:
        server.start(**{**defaults, **options})
        yield server
    finally:
        end(server)


def end(server: Server) -> None:
    """End the server of a test, whatever the test did to it."""
    from kgqa.virtuoso.instance.launching import end_process
    from kgqa.virtuoso.instance.processes import lock_owner

    owner = lock_owner(server.folder.lock)
    if owner:
        end_process(owner.pid)


def copied(prepared: Path, folder: Path) -> Path:
    """A stopped server of one's own, quicker than making its database anew."""
    shutil.copytree(prepared, folder)
    return folder


# pytest keeps a fixture a conftest that imports it; what they give is kept here, so that all share one server
_prepared: list[Path] = []
_running: list[Server] = []


@pytest.fixture(scope="session")
def prepared_folder(tmp_path_factory) -> Path:
    """The folder of a server that was made and stopped; copy it, never start it."""
    needs_virtuoso()
    if not _prepared:
        folder = tmp_path_factory.mktemp("virtuoso") / "prepared"
        with running_server(folder) as server:
            server.stop()
        _prepared.append(folder)
    return _prepared[0]


@pytest.fixture(scope="session")
def virtuoso_server(prepared_folder, tmp_path_factory) -> Iterator[Server]:
    """The server of the whole session. Use graph IRIs of your own, and leave it running."""
    if _running:
        yield _running[0]
        return
    with running_server(copied(prepared_folder, tmp_path_factory.mktemp("virtuoso") / "server")) as server:
        _running.append(server)
        yield server
        _running.clear()
