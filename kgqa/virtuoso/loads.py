"""Loads files from the import folder with the loaders of the server: one list of files, or many groups of files.

The loaders take files from the server's table DB.DBA.LOAD_LIST and write no transaction log: after a crash, the
database returns to its last checkpoint. A loader runs as long as the SQL client that started it, even if kgqa is
killed; the clients hold the lock of loads until then.

A load of groups can be resumed: while the server loads one group of chunk files, the next one is written. A group is
recorded in the journal of its load after a checkpoint, so a recorded group survives a crash of kgqa or the server.
Groups have the same lines every time, so a resumed load begins after the last recorded group.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from kgqa.errors import KgqaError, LoadError, ServerError
from kgqa.text.hints import Hint, Option
from kgqa.text.words import clean, sentence
from kgqa.virtuoso.folder import ServerFolder
from kgqa.virtuoso.isql import Session

POLL_SECONDS = 0.1
LOADERS = 2
# a server that cannot enlarge its database file crashes and loses everything since its last checkpoint
MIN_FREE_BYTES = 256_000_000
_LINE = re.compile(r"\bline (\d+)")


@contextmanager
def load_lock(folder: ServerFolder) -> Iterator[int]:
    """Hold the lock of loads into a server; yield its descriptor, which SQL clients keep open.

    Raises:
        ServerError: another load is running, perhaps that of a kgqa process that was killed.
    """
    with open(folder.load_lock, "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ServerError(
                "Another load into this server is running.",
                f"Wait until it ends: kgqa virtuoso status{folder.folder_option}",
            ) from None
        yield lock.fileno()


class RunningLoad:
    """Files that the server is loading into a graph, several at the same time.

    Args:
        files: files in the import folder, in N-Triples, Turtle or any format that Virtuoso reads; .gz is allowed.
        lock: the descriptor of the lock of loads.
        loaders: number of files that are read at the same time.

    Raises:
        ServerError: a file is missing or outside the import folder, the disk is nearly full, or the server does not
            answer.
    """

    def __init__(self, session: Session, files: Sequence[Path], graph_iri: str, *, lock: int, loaders: int) -> None:
        self._session = session
        self._files = list(files)
        folder = session.folder.import_folder
        for file in files:
            if not file.is_file() or folder not in Path(os.path.abspath(file)).parents:
                raise ServerError(
                    f"There is no file {clean(str(file))} in the only folder that the server may read.",
                    f"Move or link the file to {folder}",
                )
        # the files are larger than their triples in the database
        disk = session.folder.database.parent
        free = shutil.disk_usage(disk).free
        if free < MIN_FREE_BYTES + sum(file.stat().st_size for file in files):
            raise ServerError(
                f"Loading stopped because the disk is nearly full: {free / 1e6:,.0f} MB are free at {disk}.",
                "Free some space and load the other files. Triples already loaded are kept.",
            )
        # a loader loads every file on the list
        session.sql("delete from DB.DBA.LOAD_LIST where strstr(ll_file, ?) = 0", (f"{folder}/",))
        for file in files:
            session.sql("ld_add(?, ?)", (os.path.abspath(file), graph_iri))
        loaders = min(loaders, len(files))
        self._clients = [session.send("rdf_loader_run()", keep_open=[lock]) for _ in range(loaders)]

    def wait(self, progress: Callable[[int], None] = lambda done: None) -> None:
        """Wait until all files are loaded, and write the database to disk.

        Args:
            progress: called several times per second with the number of files that are done.

        Raises:
            ServerError: the server rejects a line of a file, which it has not loaded to its end, or it crashed or was
                stopped.
        """
        session, done = self._session, "select ll_file, ll_error from DB.DBA.LOAD_LIST where ll_state = 2"
        try:
            while any(client.poll() is None for client in self._clients):
                time.sleep(POLL_SECONDS)
                progress(len(session.sql(done, timeout=60)))
            for client in self._clients:
                session.rows(client)
        finally:
            for client in self._clients:  # killing a client ends its loader in the server
                client.kill()
                client.communicate()
        session.sql("checkpoint")
        errors = {file: error for file, error in session.sql(done)}  # noqa: C416
        for file in self._files:
            error = errors.get(os.path.abspath(file), "it did not finish the file")
            if error:
                raise ServerError(
                    f"The server has not loaded {clean(file.name)}: {clean(error)}.{_named_line(file, error)}",
                    "Remove the line that it rejects, and load everything again.",
                )


@dataclass(kw_only=True)
class Journal:
    """The state of a load into a graph, of which `groups` are on disk."""

    graph: str
    groups: int = 0


J = TypeVar("J", bound=Journal)


def open_journal(session: Session, name: str, kind: type[J], *, resume: bool, restart: bool) -> J | None:
    """Return the journal NAME.json of the load to resume; None for a new load.

    Args:
        resume: there must be an interrupted load. Without `resume` and `restart`, there must be none.

    Raises:
        LoadError: there is no load to resume, or an interrupted load is in the way.
        ServerError: the journal is damaged.
    """
    if restart:
        forget_journal(session, name)
    remedy = Hint("Load everything again with ", Option("restart", True), "; triples already loaded do no harm.")
    journal = session.folder.read_json(f"{name}.json", kind, remedy)
    if resume and journal is None:
        raise LoadError(
            "There is no interrupted load to resume.", "Start the load without ", Option("resume", True), "."
        )
    if journal is not None and not resume:
        raise LoadError(
            f"An earlier load into <{journal.graph}> was interrupted.",
            "Continue it with ",
            Option("resume", True),
            ", or discard it and load everything again with ",
            Option("restart", True),
            ".",
        )
    return journal


def forget_journal(session: Session, name: str) -> bool:
    """Delete a journal, so that its load cannot be resumed; return False if there is none."""
    journal = session.folder.path / f"{name}.json"
    exists = journal.exists()
    journal.unlink(missing_ok=True)
    return exists


def load_groups(
    session: Session,
    name: str,
    journal: Journal,
    groups: Generator[tuple[list[Path], Any]],
    *,
    lock: int,
    record: Callable[[Any], None],
    describe: Callable[[], str],
    loaders: int = LOADERS,
    waiting: Callable[[int], None] = lambda done: None,
) -> None:
    """Load groups of chunk files into the journal's graph, record each of them, and forget the journal at the end.

    Args:
        groups: for each step, writes the chunk files of a group, and yields them with what `record` needs.
        lock: the descriptor of the lock of loads.
        record: brings the journal up to date after a group is on disk.
        describe: tells what is loaded and how to resume; added to errors if a group is recorded.
        waiting: called several times per second while the server loads, with the number of finished files of the group.

    Raises:
        KgqaError: the load failed; groups that are recorded stay loaded.
        KeyboardInterrupt: Ctrl-C was pressed; the current group has been completed.
    """
    running: list[tuple[RunningLoad, list[Path], Any]] = []

    def finish() -> None:
        """Wait until the current group is on disk, record it, and remove its files."""
        while running:
            load, files, content = running.pop()
            load.wait(waiting)
            journal.groups += 1
            record(content)
            session.folder.write_json(f"{name}.json", journal)
            for file in files:
                file.unlink()

    try:
        with closing(groups):
            try:
                for files, content in groups:
                    finish()
                    filled = [file for file in files if file.stat().st_size]  # the server needs no empty files
                    running.append(
                        (RunningLoad(session, filled, journal.graph, lock=lock, loaders=loaders), files, content)
                    )
            finally:
                finish()  # a second Ctrl-C ends this wait
        forget_journal(session, name)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(describe() if journal.groups else "Nothing is loaded.") from None
    except KgqaError as error:
        if not journal.groups:
            raise
        raise type(error)(f"{sentence(error)} {describe()}") from error


@contextmanager
def chunk_folder(session: Session, name: str) -> Iterator[Path]:
    """Create an empty folder in the import folder, and remove it at the end."""
    folder = session.folder.import_folder / name
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
        yield folder
    except OSError as error:
        raise ServerError(
            f"{folder} cannot be written ({error.strerror}).", "Free some space, or make the folder writable."
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _named_line(file: Path, error: str) -> str:
    """Return the line of a file that an error of the server names; "" if it names none."""
    number = _LINE.search(error)
    with open(file, "rb") as lines:
        line = next(islice(lines, int(number[1]) - 1, None), b"") if number else b""
    return f" The line is: {clean(line.decode('utf-8', 'replace'))[:200]}" if line else ""
