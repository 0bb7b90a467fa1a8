"""How far a load of RDF files into the server is: kept beside its import folder, so that an interrupted load can go on.

A group of chunks counts as loaded when a checkpoint of the server came after it: what is noted here survives a crash of
either side. Chunks are cut at the same lines every time, so that a group can be made and loaded again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from kgqa.errors import LoadError, ServerError
from kgqa.graph.rdf.files import FileJob
from kgqa.graph.store import OnError
from kgqa.lock_files import only_one
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.server import load_list_journal

NAME = "graph-load"


@dataclass
class LoadJournal:
    """The state of a load.

    `token` is what the database knows the load by. `chunk_lines` is where chunks are cut, `chunks` how many are loaded,
    `before` the triples that were in the graph.
    `doubtful` numbers the files whose lines need the engine's parser; it, `lines`, `malformed` and `examples` are known
    once all files are `checked`.
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
        """Lines of all files that are loaded for good."""
        return sum(job.lines_done for job in self.files)

    def save(self, folder: ServerFolder) -> None:
        folder.write_private(f"{NAME}.json", json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, folder: ServerFolder) -> LoadJournal | None:
        """The journal of an interrupted load, None where there is none.

        Raises:
            LoadError: it is damaged.
        """
        path = folder.path / f"{NAME}.json"
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return cls(**{**data, "files": [FileJob(**item) for item in data["files"]]})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise LoadError(
                f"{path} is damaged ({error}). Remove that file and load anew; what is in does no harm."
            ) from error


def forget(folder: ServerFolder) -> None:
    """There is no load to go on with any more."""
    (folder.path / f"{NAME}.json").unlink(missing_ok=True)
    load_list_journal.forget_made(folder, NAME)


@contextmanager
def only_load(folder: ServerFolder) -> Iterator[None]:
    """Hold the lock for loading files into this server; it vanishes with this process.

    Raises:
        ServerError: another process holds it.
    """
    with only_one(folder.path / load_list_journal.LOAD_LOCK) as only:
        if not only:
            raise ServerError("Another kgqa is loading files into this server. Wait until it is done and try again.")
        yield
