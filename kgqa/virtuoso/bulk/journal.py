"""The journal of a bulk load of RDF files, graph-load.json in the server's folder, used to resume the load.

A group of chunks is recorded as loaded only after a checkpoint of the server, so a recorded group survives a crash of
kgqa or the server. Chunks end at the same lines every time, so that a group can be written and loaded again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypeVar

from kgqa.errors import LoadError, ServerError
from kgqa.graph.rdf.files import FileJob
from kgqa.graph.store import OnError
from kgqa.lock_files import only_one
from kgqa.model_json import from_json
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.server import load_list_journal

NAME = "graph-load"
T = TypeVar("T")


@dataclass
class BulkJournal:
    """The state of a bulk load.

    Attributes:
        token: identifies the load in the database.
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
    token: str = ""
    before: int = 0
    checked: bool = False
    doubtful: list[int] = field(default_factory=list)
    lines: int = 0
    malformed: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)
    chunks: int = 0

    @property
    def lines_done(self) -> int:
        """The number of lines, summed over all files, that are loaded and on disk."""
        return sum(job.lines_done for job in self.files)

    def save(self, folder: ServerFolder) -> None:
        save_journal(folder, NAME, asdict(self))

    @classmethod
    def read(cls, folder: ServerFolder) -> BulkJournal | None:
        """Read the journal of an interrupted load; see `read_journal`."""
        return read_journal(folder, NAME, partial(from_json, cls))


def save_journal(folder: ServerFolder, name: str, data: dict[str, Any]) -> None:
    """Write the journal NAME.json atomically."""
    folder.write_private(f"{name}.json", json.dumps(data, indent=1))


def read_journal(folder: ServerFolder, name: str, build: Callable[[dict[str, Any]], T]) -> T | None:
    """Read the journal of an interrupted load; return None if there is no such load.

    Raises:
        LoadError: the journal is damaged.
    """
    path = folder.path / f"{name}.json"
    try:
        return build(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LoadError(
            f"{path} is damaged ({error}).",
            "Load everything again with --restart; triples already loaded do no harm.",
        ) from error


def forget_journal(folder: ServerFolder, name: str) -> None:
    """Delete a journal, so that its load cannot be resumed."""
    (folder.path / f"{name}.json").unlink(missing_ok=True)
    load_list_journal.forget_chunks_of(folder, name)


@contextmanager
def load_lock(folder: ServerFolder) -> Iterator[None]:
    """Hold the lock for loading files into this server; the lock is released when this process ends.

    Raises:
        ServerError: another process holds the lock.
    """
    with only_one(folder.path / load_list_journal.LOAD_LOCK) as only:
        if not only:
            raise ServerError(
                "Another kgqa process is loading files into this server.", "Wait until that load ends and try again."
            )
        yield
