"""Computes the memory limits of a server from the machine's memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_SHARE = 0.5
# a page of 8 KiB, and about 700 bytes of overhead per buffer (OpenLink's figure)
BYTES_PER_BUFFER = 8700
MIN_BUFFERS = 10_000
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Memory limits of a server.

    Attributes:
        bytes: memory of the page buffers.
        buffers: number of page buffers.
        dirty: maximum number of buffers with changes that are not yet written to disk.
        query_bytes: memory for hash tables and sorts of all queries together.
    """

    bytes: int
    buffers: int
    dirty: int
    query_bytes: int


def machine_memory(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process may use: the machine's memory, or the limit of its control group."""
    found = [_meminfo(root / "proc/meminfo")]
    for name in CGROUP_LIMITS:
        try:
            found.append(int((root / name.lstrip("/")).read_text()))
        except (OSError, ValueError):  # the file does not exist, or contains "max"
            continue
    return min(found)


def _meminfo(path: Path) -> int:
    try:
        for line in path.read_text().splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 4 << 30


def memory_plan(share: float = DEFAULT_SHARE, *, total: int | None = None) -> MemoryPlan:
    """Plan four fifths of the server's memory for buffers and one fifth for queries.

    At most three quarters of the buffers may be dirty.

    Args:
        share: part of the machine's memory that the server may use, above 0 and at most 1.
        total: the machine's memory in bytes; None to ask the operating system.
    """
    memory = machine_memory() if total is None else total
    buffers = max(MIN_BUFFERS, int(memory * share * 0.8 / BYTES_PER_BUFFER))
    return MemoryPlan(
        bytes=buffers * BYTES_PER_BUFFER,
        buffers=buffers,
        dirty=buffers * 3 // 4,
        query_bytes=max(100 << 20, int(memory * share * 0.2)),
    )
