"""How a server is, told from its lock file, its port, its log and our journal."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal as OneOf

from kgqa.virtuoso.server.folder import ServerFolder
from kgqa.virtuoso.server.processes import Process, alive, is_virtuoso, name_of

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
    from kgqa.virtuoso.bulk.journal import left_to_do, loader_runs, still_lost
    from kgqa.virtuoso.server.troubles import last_error

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


def lock_owner(lock: Path) -> Process | None:
    """The server that holds this lock file, None where nobody does, whatever process number stands in it."""
    try:
        text = lock.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    held = _kernel_lock(lock)
    if held == 0:
        return None
    found = re.search(r"VIRT_PID=(\d+)", text)
    pid = held or (int(found[1]) if found else 0)
    if held and alive(held):
        return Process(held, name_of(held))
    return Process(pid, name_of(pid)) if pid and is_virtuoso(pid) else None


def _kernel_lock(lock: Path) -> int | None:
    """The process that holds a POSIX lock on the file; 0 for none, None where it cannot be told."""
    if sys.platform != "linux":
        return None
    query = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        with open(lock, "rb") as file:
            kind, _, _, _, pid = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, query))
    except (OSError, struct.error, ValueError):
        return None
    if kind == fcntl.F_UNLCK:
        return 0
    return pid if pid > 0 else None


def listens(port: int, host: str = "127.0.0.1") -> bool:
    """Whether anybody accepts connections on this port."""
    try:
        with socket.create_connection((host, port), timeout=2):
            return True
    except OSError:
        return False


def log_tail(log: Path, *, start: int = 0) -> str:
    """The end of a log file, from the byte `start` on; at most 200 kB; empty where there is none."""
    try:
        with open(log, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(start, size - LOG_TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


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
