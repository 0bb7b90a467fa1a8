"""Loads groups of chunk files into a server: while the server loads one group, the next one is written.

The database itself records which groups of a load it contains, because the journal of a load is a file outside the
database: it does not change when the database is replaced by a new, adopted or restored one.
"""

from __future__ import annotations

import shutil
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from concurrent.futures import Future, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from kgqa.errors import KgqaError, LoadError, ServerError
from kgqa.text.words import sentence
from kgqa.virtuoso.bulk.journal import Journal, forget_journal
from kgqa.virtuoso.bulk.rejected_lines import load_accepted_lines
from kgqa.virtuoso.server.load_list import FileResult
from kgqa.virtuoso.server.server import Server

TABLE = "DB.DBA.KGQA_LOADS"
LOADERS = 2
POLL_SECONDS = 0.2
ORPHAN_SECONDS = 3600.0
T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Group(Generic[T]):
    """Chunk files that the server loads at the same time.

    Attributes:
        files: the files, in the import folder; empty files are not sent to the server.
        content: what the journal needs to record the group.
        done: the number of groups or chunks of the load that are complete after this group.
        rejected: for each file, the lines that the server rejected, with its messages; set when the group is loaded.
        files_done: number of files that the server has finished.
        seconds: duration of the load of this group.
    """

    files: list[Path]
    content: T
    done: int
    rejected: dict[Path, dict[bytes, str]] = field(default_factory=dict)
    files_done: int = 0
    seconds: float = 0.0


class BulkLoad(ABC, Generic[T, R]):
    """A load of groups of chunk files into a graph; a subclass writes the files and keeps the journal.

    Args:
        name: the name of the journal, and of the folder of the chunk files in the server's import folder.
        journal: records which groups are loaded; `token` identifies the load in the database.
        loaders: number of files that the server reads at the same time.
    """

    def __init__(self, server: Server, name: str, graph: str, journal: Journal, loaders: int = LOADERS) -> None:
        self.server = server
        self.folder = server.import_folder / name
        self._graph = graph
        self._recorded = journal
        self._loaders = loaders
        self._current: tuple[Group[T], Future[list[FileResult]]] | None = None

    @abstractmethod
    def groups(self) -> Generator[Group[T]]:
        """Write the chunk files of the groups that are not in the journal, one group for each step."""

    @abstractmethod
    def waiting(self, group: Group[T] | None) -> None:
        """Report progress: called several times per second while the server loads a group, or an earlier load ends."""

    @abstractmethod
    def loaded(self, group: Group[T]) -> None:
        """Count the rejected lines of a group, before the database records the group; may raise an error."""

    @abstractmethod
    def recorded(self, group: Group[T]) -> None:
        """Record in the journal a group that is on disk, and save the journal."""

    @abstractmethod
    def finish(self) -> R:
        """Return the result, after all groups are recorded."""

    @abstractmethod
    def is_resumable(self) -> bool:
        """Tell whether the load has to be resumed after an error; if not, its journal is deleted."""

    @abstractmethod
    def progress_text(self) -> str:
        """Tell the user what is loaded and how to resume."""

    def save(self) -> None:
        """Write the journal."""
        self.server.folder.write_json(f"{self.folder.name}.json", self._recorded)

    def run(self) -> R:
        """Load the groups that the journal does not record as loaded.

        Raises:
            KgqaError: the load failed; groups that are recorded stay loaded, and the message tells how to resume.
            KeyboardInterrupt: Ctrl-C was pressed; the current group has been completed.
        """
        try:
            self._wait_for_orphans()
            self.save()
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                with closing(self.groups()) as groups:
                    self._load(groups)
            finally:
                shutil.rmtree(self.folder, ignore_errors=True)
            result = self.finish()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self.progress_text()) from None
        except KgqaError as error:
            if not self.is_resumable():
                forget_journal(self.server.folder, self.folder.name)
                raise
            raise type(error)(f"{sentence(error)} {self.progress_text()}") from error
        forget_journal(self.server.folder, self.folder.name)
        with suppress(ServerError):  # an old record in the database does no harm
            if _has_table(self.server):
                self.server.sql(f"delete from {TABLE} where token = ?", (self._recorded.token,))
        return result

    def _load(self, groups: Generator[Group[T]]) -> None:
        try:
            for group in groups:
                self._finish_group()  # removes the files of this group before the next files are written
                self._current = group, self._start(group)
            self._finish_group()
        except BaseException:
            self._finish_group()  # a second Ctrl-C ends this wait
            raise

    def _finish_group(self) -> None:
        """Wait until the current group is loaded and on disk, record this, and remove its files."""
        if self._current is None:
            return
        group, load = self._current
        self.waiting(group)
        while wait([load], timeout=POLL_SECONDS).not_done:
            self.waiting(group)
        self._current = None
        results = load.result()
        for result in results:
            if result.error is None:
                result.file.unlink(missing_ok=True)  # the search for rejected lines needs this disk space
        group.rejected = {
            result.file: load_accepted_lines(self.server, result.file, self._graph)
            for result in results
            if result.error
        }
        self.loaded(group)
        # after a checkpoint, so that each copy of the database that has this record has the group too; before the
        # journal is saved, so that the database never records fewer groups than the journal
        if not _has_table(self.server):
            self.server.sql(f"create table {TABLE} (token varchar primary key, done integer)")
        self.server.sql(f"insert replacing {TABLE} (token, done) values (?, ?)", (self._recorded.token, group.done))
        self.server.checkpoint()
        self.recorded(group)
        for file in group.files:
            file.unlink(missing_ok=True)

    def _start(self, group: Group[T]) -> Future[list[FileResult]]:
        """Load a group in a thread of its own, which does not keep this process alive after Ctrl-C."""
        load: Future[list[FileResult]] = Future()
        started = time.monotonic()

        def run() -> None:
            try:
                results = self.server.load(
                    [file for file in group.files if file.stat().st_size],
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

    def _wait_for_orphans(self) -> None:
        """Wait until the loaders of a killed kgqa process have ended, because they read its files; remove the files."""
        deadline = time.monotonic() + ORPHAN_SECONDS
        while self.server.status().state == "loading":
            if time.monotonic() > deadline:
                raise ServerError(
                    "The server is still loading files of an earlier kgqa process.",
                    "Wait until the status is running: kgqa virtuoso status",
                )
            self.waiting(None)
            time.sleep(POLL_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)


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


def _has_table(server: Server) -> bool:
    return bool(server.sql("select 1 from DB.DBA.SYS_KEYS where KEY_TABLE = ? and KEY_IS_MAIN = 1", (TABLE,)))


def count_triples(server: Server, graph: str) -> int:
    """Count the triples of a graph with SQL, because SPARQL queries have a time limit."""
    return int(server.sql("select count(*) from DB.DBA.RDF_QUAD where G = iri_to_id(?, 0)", (graph,))[0][0])
