"""Renders virtuoso.ini, the settings file of the server, with memory limits computed from the machine's memory."""

from __future__ import annotations

import ipaddress
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from kgqa.errors import ServerError

# a page of 8 KiB, and about 700 bytes of overhead per buffer (OpenLink's figure)
BYTES_PER_BUFFER = 8700
MIN_BUFFERS = 10_000
# virtuoso.ini cannot quote values: these characters would end or split a value
UNUSABLE_CHARACTERS = frozenset(",;\n\r$\"'#")
CGROUP_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class ServerOptions:
    """The options of a server, kept in server.json for the next start.

    Attributes:
        http_port: port of the SPARQL endpoint.
        sql_port: port for SQL, on 127.0.0.1 only.
        bind: the IPv4 address of the SPARQL endpoint.
        memory_share: part of the machine's memory that the server may use, above 0 and at most 1.
        row_cap: maximum number of rows of a SPARQL result.
        query_seconds: time limit of a SPARQL query in seconds.
        database: path of the adopted database file; empty if the server uses the database in its own folder.

    Raises:
        ServerError: the address or the share of memory is invalid.
    """

    http_port: int = 8890
    sql_port: int = 1111
    bind: str = "127.0.0.1"
    memory_share: float = 0.5
    row_cap: int = 1_000_000
    query_seconds: int = 60
    database: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.memory_share <= 1:
            raise ServerError(
                f"The share of memory {self.memory_share:g} is out of range.",
                "Give a number above 0 and at most 1, such as --memory-share 0.5",
            )
        try:
            ipaddress.IPv4Address(self.bind)
        except ValueError:
            raise ServerError(
                f"{self.bind!r} is not an IPv4 address.", "Give an address of this machine, or 0.0.0.0 for all of them."
            ) from None

    @property
    def host(self) -> str:
        """The address at which a client on this machine reaches the SPARQL endpoint."""
        address = ipaddress.IPv4Address(self.bind)
        return "127.0.0.1" if address.is_unspecified or address.is_loopback else self.bind


def machine_memory(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process may use: the machine's memory, or the limit of its control group."""
    limits = [4 << 30]
    with suppress(OSError):
        total = re.search(r"^MemTotal: *(\d+)", (root / "proc/meminfo").read_text(), re.MULTILINE)
        limits = [int(total[1]) * 1024] if total else limits
    for name in CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # the file does not exist, or contains "max"
            limits.append(int((root / name).read_text()))
    return min(limits)


def render(folder: Path, options: ServerOptions) -> str:
    """Return the text of virtuoso.ini.

    Four fifths of the server's memory are for page buffers, of which three quarters may have unsaved changes, and one
    fifth is for hash tables and sorts of queries.

    Raises:
        ServerError: virtuoso.ini cannot hold one of the paths.
    """
    database = Path(options.database or folder / "virtuoso.db")
    for path in (folder, database):
        if UNUSABLE_CHARACTERS & set(str(path)):
            raise ServerError(
                f"{path} contains one of the characters , ; # $ ' \" , which virtuoso.ini cannot hold.",
                "Rename it, or choose another folder: --folder /path",
            )
    text = files("kgqa.virtuoso_files").joinpath("virtuoso.ini.tmpl").read_text(encoding="utf-8")
    memory = machine_memory() * options.memory_share
    buffers = max(MIN_BUFFERS, int(memory * 0.8 / BYTES_PER_BUFFER))
    return Template(text).substitute(
        folder=folder,
        import_folder=folder / "import",
        database=database,
        lock=database.with_suffix(".lck"),
        transactions=database.with_suffix(".trx"),
        xa=database.with_suffix(".pxa"),
        remap=max(2000, buffers // 4),
        sql_port=options.sql_port,
        http_address=f"{options.bind}:{options.http_port}",
        buffers=buffers,
        dirty=buffers * 3 // 4,
        query_memory=max(100 << 20, int(memory * 0.2)),
        threads=max(2, min(16, os.cpu_count() or 2)),
        row_cap=options.row_cap,
        query_seconds=options.query_seconds,
    )
