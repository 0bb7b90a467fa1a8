"""Finds processes by port, open file or lock; uses /proc if the system has it."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A running process; `name` is the name of its program, empty if it cannot be read."""

    pid: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid})" if self.name else f"process {self.pid}"


def is_alive(pid: int) -> bool:
    """Tell whether this process runs; a zombie counts as ended."""
    try:
        if PROC.joinpath("self").exists():
            return PROC.joinpath(str(pid), "stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def process_name(pid: int) -> str:
    """Return the first 15 characters of the name of a process's program; empty if the name cannot be read."""
    try:
        return PROC.joinpath(str(pid), "comm").read_text().strip()
    except OSError:
        return ""


def is_virtuoso(pid: int) -> bool:
    """Tell whether this process is a running Virtuoso server; without /proc, tell only whether it runs."""
    return is_alive(pid) and (not PROC.joinpath("self").exists() or process_name(pid).startswith("virtuoso"))


def listen_error(port: int, host: str = "127.0.0.1") -> OSError | None:
    """Return the error that listening on this port raises; None if the port is free."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # servers also set this option; with it, closed connections in TIME_WAIT do not hold the port
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            return error
    return None


def free_port() -> int:
    """Return a TCP port that is free now; another process may still take it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listener(port: int) -> Process | None:
    """Return the process that listens on this TCP port; None if no process of this user does."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for pid, descriptor in _descriptors() if sockets else ():
        with suppress(OSError):
            if os.readlink(descriptor) in sockets:
                return Process(pid, process_name(pid))
    return None


def processes_with_open(path: Path) -> list[Process]:
    """Return the processes that have this file open; processes of other users may be missing."""
    found = set()
    for pid, descriptor in _descriptors():
        with suppress(OSError):
            if descriptor.samefile(path):
                found.add(pid)
    return [Process(pid, process_name(pid)) for pid in sorted(found)]


def lock_owner(lock: Path) -> Process | None:
    """Return the server that holds this lock file; None if no process holds it, even if the file has a process id."""
    pid = _kernel_lock(lock)
    if pid is None:
        with suppress(OSError):
            found = re.search(r"VIRT_PID=(\d+)", lock.read_text(encoding="utf-8", errors="replace"))
            pid = int(found[1]) if found and is_virtuoso(int(found[1])) else None
    return Process(pid, process_name(pid)) if pid else None


def is_listening(port: int) -> bool:
    """Tell whether a process accepts connections on this port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2):
            return True
    except OSError:
        return False


def _listening_inodes(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            lines = PROC.joinpath("net", table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if columns[3] == "0A" and int(columns[1].rsplit(":", 1)[1], 16) == port:
                yield columns[9]


def _descriptors() -> Iterator[tuple[int, Path]]:
    for folder in PROC.glob("[0-9]*/fd"):
        with suppress(OSError):  # the process has ended or belongs to another user
            for descriptor in folder.iterdir():
                yield int(folder.parent.name), descriptor


def _kernel_lock(lock: Path) -> int | None:
    """Return the id of the process with a POSIX lock on the file; 0 if the file is not locked, None if unknown."""
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
