"""Determines the status of a server from its lock file, port, log and load journal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import Literal as OneOf

from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.instance.processes import Process, is_listening, lock_owner
from kgqa.virtuoso.instance.server_log import last_error, log_tail
from kgqa.virtuoso.server.load_list_journal import has_running_loader, unfinished_loads

State = OneOf["stopped", "starting", "running", "loading", "crashed"]
_VERSION = re.compile(r"^\S+ Version (\S+)", re.MULTILINE)
LOG_TAIL_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The status of a server.

    Attributes:
        triples: number of triples in all graphs; None if they were not counted.
        disk_bytes: size in bytes of the database and of all files in the server's folder.
        message: what is wrong and what to do; empty if nothing is wrong.
    """

    state: State
    url: str
    folder: str
    pid: int | None = None
    version: str = ""
    triples: int | None = None
    disk_bytes: int = 0
    message: str = ""


def server_status(folder: ServerFolder, url: str) -> ServerStatus:
    """Return the status without a request to the server; if its folder is incomplete, the server counts as stopped."""
    owner = lock_owner(folder.lock)
    journal = folder.journal()
    state, message = _state(folder, owner, journal)
    return ServerStatus(
        state=state,
        url=url,
        folder=str(folder.path),
        pid=owner.pid if owner else None,
        version=_version(folder.log) if owner else "",
        disk_bytes=disk_bytes(folder),
        message=message,
    )


def _state(folder: ServerFolder, owner: Process | None, journal: Mapping[str, Any] | None) -> tuple[State, str]:
    lost = unfinished_loads(folder)
    if owner is None:
        if not folder.lock.exists():
            return "stopped", lost
        parts = [
            "The server process ended without a shutdown: it was killed or crashed.",
            last_error(log_tail(folder.log)),
            "Files that were being loaded may have to be loaded again; the next start lists them." if journal else lost,
            f"Start it again with: kgqa virtuoso start{folder.folder_option} (it recovers by itself)",
        ]
        return "crashed", " ".join(part for part in parts if part)
    if not is_listening(folder.record().sql_port):
        return "starting", "The server is reading its database or transaction log, or is shutting down."
    if journal and has_running_loader(journal):
        return "loading", ""
    return "running", lost


def _version(log: Path) -> str:
    found = _VERSION.findall(log_tail(log))
    return found[-1].removesuffix("-pthreads") if found else ""


def disk_bytes(folder: ServerFolder) -> int:
    """Return the size on disk, in bytes, of the server's folder and of an adopted database outside this folder."""
    database = folder.database
    files = set(folder.path.rglob("*")) if folder.path.is_dir() else set()
    files |= {database, database.with_suffix(".trx")}
    total = 0
    for path in files:
        try:
            if path.is_file():
                total += path.stat().st_blocks * 512
        except OSError:
            continue
    return total
