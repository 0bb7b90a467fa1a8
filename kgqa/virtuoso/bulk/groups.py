"""Loads groups of chunk files into a server: while the server loads one group, the caller writes the next one.

The database itself records which groups of a load it contains, because the journal of a load is a file outside the
database: it does not change when the database is replaced by a new, adopted or restored one.
"""

from __future__ import annotations

import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from kgqa.errors import LoadError, ServerError
from kgqa.virtuoso.bulk.rejected_lines import load_accepted_lines
from kgqa.virtuoso.server.load_list import FileResult
from kgqa.virtuoso.server.server import Server

TABLE = "DB.DBA.KGQA_LOADS"
LOADERS = 2
POLL_SECONDS = 0.2
ORPHAN_SECONDS = 3600.0
T = TypeVar("T")


@dataclass
class Group(Generic[T]):
    """Chunk files that the server loads at the same time.

    Attributes:
        files: the files, in the import folder.
        content: what the caller needs to record the group.
        done: the number of groups or chunks of the load that are complete after this group.
        rejected: for each file, the lines that the server rejected, with its messages; set when the group is loaded.
        files_done: number of files that the server has finished.
        seconds: duration of the load of this group.
    """

    files: list[Path]
    content: T
    done: int
    rejected: list[dict[bytes, str]] = field(default_factory=list)
    files_done: int = 0
    seconds: float = 0.0


class GroupLoader(Generic[T]):
    """Loads groups one after the other.

    Args:
        token: identifies the load in the database.
        loaders: number of files that the server reads at the same time.
        on_wait: called several times per second while the server loads a group.
        on_loaded: called with a group that is loaded, before it is recorded in the database; may raise an error.
        on_recorded: called after the group is recorded in the database and on disk, to save the journal.
    """

    def __init__(
        self,
        server: Server,
        graph: str,
        token: str,
        *,
        loaders: int,
        on_wait: Callable[[Group[T]], None],
        on_loaded: Callable[[Group[T]], None],
        on_recorded: Callable[[Group[T]], None],
    ) -> None:
        self._server = server
        self._graph = graph
        self._token = token
        self._loaders = loaders
        self._on_wait = on_wait
        self._on_loaded = on_loaded
        self._on_recorded = on_recorded
        self._current: tuple[Group[T], Future[list[FileResult]]] | None = None

    def run(self, groups: Iterable[Group[T]]) -> None:
        """Load all groups.

        Raises:
            ServerError: the server failed; groups that are recorded stay loaded.
        """
        try:
            for group in groups:
                self._finish()  # removes the files of this group before the next files are written
                self._current = group, self._start(group)
            self._finish()
        except BaseException:
            self._finish()  # a second Ctrl-C ends this wait
            raise

    def _finish(self) -> None:
        """Wait until the current group is loaded and on disk, record this, and remove its files."""
        if self._current is None:
            return
        group, load = self._current
        self._on_wait(group)
        while wait([load], timeout=POLL_SECONDS).not_done:
            self._on_wait(group)
        self._current = None
        results = load.result()
        for result in results:
            if result.error is None:
                result.file.unlink(missing_ok=True)  # the search for rejected lines needs this disk space
        group.rejected = [
            load_accepted_lines(self._server, result.file, self._graph) if result.error else {} for result in results
        ]
        self._on_loaded(group)
        # after a checkpoint, so that each copy of the database that has this record has the group too; before the
        # journal is saved, so that the database never records fewer groups than the journal
        if not _has_table(self._server):
            self._server.sql(f"create table {TABLE} (token varchar primary key, done integer)")
        self._server.sql(f"insert replacing {TABLE} (token, done) values (?, ?)", (self._token, group.done))
        self._server.checkpoint()
        self._on_recorded(group)
        for file in group.files:
            file.unlink(missing_ok=True)

    def _start(self, group: Group[T]) -> Future[list[FileResult]]:
        """Load a group in a thread of its own, which does not keep this process alive after Ctrl-C."""
        load: Future[list[FileResult]] = Future()
        started = time.monotonic()

        def run() -> None:
            try:
                results = self._server.load(
                    group.files,
                    self._graph,
                    loaders=self._loaders,
                    progress=lambda files_done: setattr(group, "files_done", files_done),
                )
                group.seconds = time.monotonic() - started
                load.set_result(results)
            except BaseException as error:  # noqa: BLE001  (raised again by the main thread)
                load.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return load


def new_token() -> str:
    """Return a unique identifier for a load."""
    return secrets.token_hex(8)


def check_token(server: Server, token: str, done: int) -> None:
    """Check that the database contains the groups that the journal of a load records as loaded.

    Raises:
        LoadError: groups are missing, because this is a different database or an older copy of the database.
    """
    # a load without finished groups loads everything, so it can be resumed in any database
    if done == 0:
        return
    rows = server.sql(f"select done from {TABLE} where token = ?", (token,)) if _has_table(server) else []
    if not rows or int(rows[0][0]) < done:
        raise LoadError(
            "The server's database lacks triples that the interrupted load had finished: it is another database or an "
            "older copy.",
            "Load all files again: --restart",
        )


def forget_token(server: Server, token: str) -> None:
    """Delete the record of a finished load; errors of the server are ignored, because an old record does no harm."""
    with suppress(ServerError):
        if _has_table(server):
            server.sql(f"delete from {TABLE} where token = ?", (token,))


def _has_table(server: Server) -> bool:
    return bool(server.sql("select 1 from DB.DBA.SYS_KEYS where KEY_TABLE = ? and KEY_IS_MAIN = 1", (TABLE,)))


def wait_for_orphans(server: Server, folder: Path, on_wait: Callable[[], None]) -> None:
    """Wait until the loaders of a killed kgqa process have ended, because they read its chunk files; remove the files.

    Raises:
        ServerError: the loaders do not end.
    """
    deadline = time.monotonic() + ORPHAN_SECONDS
    while server.status().state == "loading":
        if time.monotonic() > deadline:
            raise ServerError(
                "The server is still loading files of an earlier kgqa process.",
                "Wait until the status is running: kgqa virtuoso status",
            )
        on_wait()
        time.sleep(POLL_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)


def count_triples(server: Server, graph: str) -> int:
    """Count the triples of a graph with SQL, because SPARQL queries have a time limit."""
    return int(server.sql("select count(*) from DB.DBA.RDF_QUAD where G = iri_to_id(?, 0)", (graph,))[0][0])
