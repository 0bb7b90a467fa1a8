"""Which processes run, who listens on a port, who has a file open: read from /proc, where there is one."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A running process; `name` is its program's, empty where that cannot be seen."""

    pid: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid})" if self.name else f"process {self.pid}"


def alive(pid: int) -> bool:
    """Whether this process runs. One that has ended and only waits for its parent does not."""
    if PROC.joinpath("self").exists():
        try:
            return PROC.joinpath(str(pid), "stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
        except (OSError, IndexError):
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def name_of(pid: int) -> str:
    """The name of a process's program, cut at 15 characters by the kernel; empty if it cannot be seen."""
    try:
        return PROC.joinpath(str(pid), "comm").read_text().strip()
    except OSError:
        return ""


def is_virtuoso(pid: int) -> bool:
    """Whether this process runs and is a Virtuoso server, or might be one where names cannot be seen."""
    return alive(pid) and (not PROC.joinpath("self").exists() or name_of(pid).startswith("virtuoso"))


def listen_error(port: int, host: str = "127.0.0.1") -> OSError | None:
    """Why a server could not listen on this port now; None if it could."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # as servers do: what a closed connection left behind does not hold the port
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            return error
    return None


def free_port(host: str = "127.0.0.1") -> int:
    """A TCP port nobody listens on; nothing keeps it free until it is used."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def listener(port: int) -> Process | None:
    """Who listens on this TCP port; None where nobody does or it is not ours to see."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    if not sockets:
        return None
    for pid, descriptor in _descriptors():
        try:
            if os.readlink(descriptor) in sockets:
                return Process(pid, name_of(pid))
        except OSError:
            continue
    return None


def holders(path: Path) -> list[Process]:
    """The processes that have this file open, as far as they are ours to see."""
    try:
        wanted = path.stat()
    except OSError:
        return []
    found: dict[int, Process] = {}
    for pid, descriptor in _descriptors():
        try:
            seen = descriptor.stat()
        except OSError:
            continue
        if (seen.st_dev, seen.st_ino) == (wanted.st_dev, wanted.st_ino):
            found.setdefault(pid, Process(pid, name_of(pid)))
    return list(found.values())


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


def listens(port: int, host: str = "127.0.0.1") -> bool:
    """Whether anybody accepts connections on this port."""
    try:
        with socket.create_connection((host, port), timeout=2):
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
        try:
            for descriptor in folder.iterdir():
                yield int(folder.parent.name), descriptor
        except OSError:  # gone, or somebody else's
            continue


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
