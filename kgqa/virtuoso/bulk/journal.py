"""The journal of a bulk load of RDF files, graph-load.json in the server's folder, used to resume the load.

A group of chunks is recorded as loaded only after a checkpoint of the server, so a recorded group survives a crash of
kgqa or the server. Chunks end at the same lines every time, so that a group can be written and loaded again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kgqa.errors import LoadError, ServerError
from kgqa.graph.rdf.files import FileJob
from kgqa.graph.store import OnError
from kgqa.storage.lock_files import only_one
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.server.load_list import LOAD_LOCK, forget_chunks_of

NAME = "graph-load"
T = TypeVar("T")


@dataclass
class Journal:
    """The state of a load; `token` identifies the load in the database."""

    token: str = field(default_factory=secrets.token_hex, kw_only=True)


@dataclass
class BulkJournal(Journal):
    """The state of loading RDF files.

    Attributes:
        chunk_lines: number of lines in a chunk.
        chunks: number of chunks that are loaded.
        before: number of triples in the graph before the load.
        checked: whether all files have been checked; the check sets `doubtful`, `lines`, `malformed` and `examples`.
        doubtful: numbers of the files whose lines need the parser of the embedded engine.
        lines: number of lines in all files.
        malformed: number of malformed lines, which are not loaded.
        examples: the first malformed lines.
    """

    graph: str
    url: str
    on_error: OnError
    chunk_lines: int
    files: list[FileJob]
    before: int = 0
    checked: bool = False
    doubtful: list[int] = field(default_factory=list)
    lines: int = 0
    malformed: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)
    chunks: int = 0


def open_journal(
    folder: ServerFolder,
    name: str,
    kind: type[T],
    *,
    resume: bool,
    restart: bool,
    described: Callable[[T], str],
    start: str,
) -> T | None:
    """Return the journal of the load to resume; None for a new load.

    Args:
        resume: there must be an interrupted load. Without `resume` and `restart`, there must be none.
        described: what was interrupted, for the message.
        start: the hint on how to start a load.

    Raises:
        LoadError: there is no load to resume, an interrupted load is in the way, or its journal is damaged.
    """
    journal = None if restart else read_journal(folder, name, kind)
    if resume and journal is None:
        raise LoadError("There is no interrupted load to resume.", start)
    if journal is not None and not resume:
        raise LoadError(
            f"An earlier load {described(journal)}.",
            "Continue it with --resume, or discard it and load everything again with --restart.",
        )
    return journal


def read_journal(folder: ServerFolder, name: str, kind: type[T]) -> T | None:
    """Read the journal NAME.json of an interrupted load; return None if there is no such load.

    Raises:
        LoadError: the journal is damaged.
    """
    remedy = "Load everything again with --restart; triples already loaded do no harm."
    return folder.read_json(f"{name}.json", kind, remedy, LoadError)


def forget_journal(folder: ServerFolder, name: str) -> None:
    """Delete a journal, so that its load cannot be resumed."""
    (folder.path / f"{name}.json").unlink(missing_ok=True)
    forget_chunks_of(folder, name)


@contextmanager
def load_lock(folder: ServerFolder) -> Iterator[None]:
    """Hold the lock for loading files into this server; the lock is released when this process ends.

    Raises:
        ServerError: another process holds the lock.
    """
    with only_one(folder.path / LOAD_LOCK) as only:
        if not only:
            raise ServerError(
                "Another kgqa process is loading files into this server.", "Wait until that load ends and try again."
            )
        yield
