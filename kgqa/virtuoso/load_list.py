"""Loads files from the import folder with the loaders of the server, which take them from its table DB.DBA.LOAD_LIST.

The loaders write no transaction log: after a crash, the database returns to its last checkpoint. A loader runs as long
as the SQL client that started it, even if kgqa is killed; the clients hold the lock of loads until then.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kgqa.errors import ServerError
from kgqa.virtuoso.folder import ServerFolder
from kgqa.virtuoso.isql import read_output
from kgqa.virtuoso.sessions import Session
from kgqa.text.words import clean

POLL_SECONDS = 0.1
# a server that cannot enlarge its database file crashes and loses everything since its last checkpoint
MIN_FREE_BYTES = 256_000_000


@dataclass(frozen=True, slots=True)
class FileResult:
    """A loaded file; `error` is the server's error message, or None if the whole file was loaded."""

    file: Path
    error: str | None = None


@contextmanager
def load_lock(folder: ServerFolder) -> Iterator[int]:
    """Hold the lock of loads into a server; yield its descriptor, which SQL clients keep open.

    Raises:
        ServerError: there is no server, or another load is running, perhaps that of a kgqa process that was killed.
    """
    if not folder.path.is_dir():
        raise ServerError("The server is not running.", f"Start it: kgqa virtuoso start{folder.folder_option}")
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
        self._paths = [_checked(session.folder, file) for file in files]
        self._clients: list[subprocess.Popen[bytes]] = []
        self._check_space()
        # a loader loads every file on the list
        session.sql("delete from DB.DBA.LOAD_LIST where strstr(ll_file, ?) = 0", (f"{session.folder.import_folder}/",))
        for path in self._paths:
            session.sql("ld_add(?, ?)", (str(path), graph_iri))
        for _ in range(min(loaders, len(files))):
            self._clients.append(session.start_statement("rdf_loader_run()", keep_open=[lock]))

    def _check_space(self) -> None:
        """Check that the disk has room for the files, which are larger than their triples in the database."""
        disk = self._session.folder.database.parent
        free = shutil.disk_usage(disk).free
        if free < MIN_FREE_BYTES + sum(path.stat().st_size for path in self._paths):
            raise ServerError(
                f"Loading stopped because the disk is nearly full: {free / 1e6:,.0f} MB are free at {disk}.",
                "Free some space and load the other files. Triples already loaded are kept.",
            )

    def files_done(self) -> int:
        """Return the number of files that the server has finished."""
        rows = self._session.sql("select ll_file from DB.DBA.LOAD_LIST where ll_state = 2", timeout=60)
        return len({file for (file,) in rows} & set(map(str, self._paths)))

    def wait(self, progress: Callable[[int], None] | None = None) -> list[FileResult]:
        """Wait until all files are loaded, write the database to disk, and return one result per file.

        Args:
            progress: called several times per second with the number of files that are done.

        Raises:
            ServerError: the server crashed or was stopped.
        """
        try:
            while any(client.poll() is None for client in self._clients):
                time.sleep(POLL_SECONDS)
                if progress:
                    progress(self.files_done())
            for client in self._clients:
                self._session.check(*client.communicate())
        finally:
            for client in self._clients:  # killing a client ends its loader in the server
                client.kill()
                client.communicate()
        self._session.sql("checkpoint")
        rows = self._session.sql("select ll_file, ll_error from DB.DBA.LOAD_LIST where ll_state = 2")
        errors = {file: clean(error) or None for file, error in rows}
        unfinished = "the server did not finish this file; load it again"
        return [FileResult(path, errors.get(str(path), unfinished)) for path in self._paths]


def _checked(folder: ServerFolder, file: Path) -> Path:
    path = Path(os.path.abspath(file))
    if not path.is_file():
        raise ServerError(f"There is no file {clean(str(file))}.", "Give the path of an RDF file.")
    if folder.import_folder not in path.parents:
        raise ServerError(
            f"{clean(str(file))} is outside the only folder that the server may read.",
            f"Move or link the file to {folder.import_folder}",
        )
    return path
