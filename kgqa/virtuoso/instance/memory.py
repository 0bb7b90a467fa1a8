"""How much memory a server may use, and what that makes in buffers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_SHARE = 0.5
# a buffer holds one page of 8 KiB and about 700 bytes of its own (OpenLink's figure for sizing)
BYTES_PER_BUFFER = 8700
LEAST_BUFFERS = 10_000
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """`bytes` for the page buffers, as many `buffers`, of which `dirty` may wait to be written; `query_bytes` for
    hash tables and sorts of all queries together.
    """

    bytes: int
    buffers: int
    dirty: int
    query_bytes: int


def machine_memory(root: Path = Path("/")) -> int:
    """Bytes of memory this process may use: the machine's, or less where its control group has a limit."""
    found = [_meminfo(root / "proc/meminfo")]
    for name in CGROUP_LIMITS:
        try:
            found.append(int((root / name.lstrip("/")).read_text()))
        except (OSError, ValueError):  # not there, or "max"
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
    """Four fifths of the share for buffers, three quarters of those may be dirty; one fifth for queries.

    Args:
        share: the part of the machine's memory the server may use, more than 0 and at most 1.
        total: bytes of memory there are; None looks.
    """
    memory = machine_memory() if total is None else total
    buffers = max(LEAST_BUFFERS, int(memory * share * 0.8 / BYTES_PER_BUFFER))
    return MemoryPlan(
        bytes=buffers * BYTES_PER_BUFFER,
        buffers=buffers,
        dirty=buffers * 3 // 4,
        query_bytes=max(100 << 20, int(memory * share * 0.2)),
    )
