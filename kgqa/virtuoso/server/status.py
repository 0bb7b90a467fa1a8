"""How a server is, told from its lock file, its port, its log and our journal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal as OneOf

from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.instance.processes import Process, listens, lock_owner
from kgqa.virtuoso.instance.server_log import last_error, log_tail
from kgqa.virtuoso.server.load_list_journal import left_to_do, loader_runs, still_lost

State = OneOf["stopped", "starting", "running", "loading", "crashed"]
_VERSION = re.compile(r"^\S+ Version (\S+)", re.MULTILINE)
LOG_TAIL_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class Status:
    """`disk_bytes` counts the database and everything in the server's folder; `triples` only where it was asked for;
    `message` is what to know and to do, empty when there is nothing.
    """

    state: State
    url: str
    folder: str
    pid: int | None = None
    version: str = ""
    triples: int | None = None
    disk_bytes: int = 0
    message: str = ""


def state_of(folder: ServerFolder, url: str) -> Status:
    """The status, without asking the server anything. A half-made or missing folder is a stopped server."""
    owner = lock_owner(folder.lock)
    journal = folder.journal()
    state, message = _state(folder, owner, journal)
    return Status(
        state=state,
        url=url,
        folder=str(folder.path),
        pid=owner.pid if owner else None,
        version=_version(folder.log) if owner else "",
        disk_bytes=disk_bytes(folder),
        message=message,
    )


def _state(folder: ServerFolder, owner: Process | None, journal) -> tuple[State, str]:
    lost = left_to_do(folder, still_lost(journal, ()) if journal else {})
    if owner is None:
        if not folder.lock.exists():
            return "stopped", lost
        parts = [
            "Its process is gone without having shut down: it was killed, or died.",
            last_error(log_tail(folder.log)),
            "Files that were being loaded may have to be loaded again: the start says which." if journal else lost,
            f"Start it again, it recovers by itself: kgqa virtuoso start{folder.option}",
        ]
        return "crashed", " ".join(part for part in parts if part)
    if not listens(folder.record().sql_port):
        return "starting", "It is still reading its database or the log of changes, or is about to end."
    if journal and loader_runs(journal):
        return "loading", ""
    return "running", lost


def _version(log: Path) -> str:
    found = _VERSION.findall(log_tail(log))
    return found[-1].removesuffix("-pthreads") if found else ""


def disk_bytes(folder: ServerFolder) -> int:
    """Bytes on disk of the server's folder and of an adopted database elsewhere."""
    database = folder.database
    files = {path for path in folder.path.rglob("*")} if folder.path.is_dir() else set()
    files |= {database, database.with_suffix(".trx")}
    total = 0
    for path in files:
        try:
            if path.is_file():
                total += path.stat().st_blocks * 512
        except OSError:
            continue
    return total
