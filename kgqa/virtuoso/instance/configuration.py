"""Renders virtuoso.ini, the settings file of the server, with memory limits computed from the machine's memory."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from kgqa.virtuoso.instance.folder import ServerFolder, ServerRecord

# a page of 8 KiB, and about 700 bytes of overhead per buffer (OpenLink's figure)
BYTES_PER_BUFFER = 8700
MIN_BUFFERS = 10_000
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Memory limits of a server.

    Attributes:
        buffers: number of page buffers.
        dirty: maximum number of buffers with changes that are not yet written to disk.
        query_bytes: memory for hash tables and sorts of all queries together.
    """

    buffers: int
    dirty: int
    query_bytes: int


def machine_memory(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process may use: the machine's memory, or the limit of its control group."""
    found = [4 << 30]
    with suppress(OSError):
        total = re.search(r"^MemTotal: *(\d+)", (root / "proc/meminfo").read_text(), re.MULTILINE)
        found = [int(total[1]) * 1024] if total else found
    for name in CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # the file does not exist, or contains "max"
            found.append(int((root / name.lstrip("/")).read_text()))
    return min(found)


def memory_plan(share: float, *, total: int | None = None) -> MemoryPlan:
    """Plan four fifths of the server's memory for buffers and one fifth for queries.

    At most three quarters of the buffers may be dirty.

    Args:
        share: part of the machine's memory that the server may use, above 0 and at most 1.
        total: the machine's memory in bytes; None to ask the operating system.
    """
    memory = machine_memory() if total is None else total
    buffers = max(MIN_BUFFERS, int(memory * share * 0.8 / BYTES_PER_BUFFER))
    return MemoryPlan(
        buffers=buffers,
        dirty=buffers * 3 // 4,
        query_bytes=max(100 << 20, int(memory * share * 0.2)),
    )


def render(folder: ServerFolder, record: ServerRecord) -> str:
    """Return the text of virtuoso.ini."""
    text = files("kgqa.virtuoso_files").joinpath("virtuoso.ini.tmpl").read_text(encoding="utf-8")
    plan = memory_plan(record.memory_share)
    database = folder.database_of(record)
    return Template(text).substitute(
        folder=folder.path,
        import_folder=folder.import_folder,
        database=database,
        lock=database.with_suffix(".lck"),
        transactions=database.with_suffix(".trx"),
        xa=database.with_suffix(".pxa"),
        remap=max(2000, plan.buffers // 4),
        sql_port=record.sql_port,
        http_address=f"{record.bind}:{record.http_port}",
        buffers=plan.buffers,
        dirty=plan.dirty,
        query_memory=plan.query_bytes,
        threads=max(2, min(16, os.cpu_count() or 2)),
        row_cap=record.row_cap,
        query_seconds=record.query_seconds,
    )
