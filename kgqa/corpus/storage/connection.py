"""Opens the SQLite file of a corpus. The file may come from somebody else, so nothing in it is trusted."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path

from kgqa.errors import CorpusError
from kgqa.storage.foreign import refuse_companions
from kgqa.text.hints import Command

FORMAT = 1
APPLICATION = 0x6B67_7161
"""Marks the file as a corpus of kgqa ("kgqa")."""
MAX_VALUE_BYTES = 256 << 20
"""The longest text or blob that is read."""
BUSY_SECONDS = 30.0
LEDGER = "ledger_"
"""Prefix of the tables in which the build keeps what it has read; it creates them itself."""

_SCHEMA = """
CREATE TABLE words (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE items (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE edits (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, agent TEXT NOT NULL, reason TEXT NOT NULL,
    session TEXT NOT NULL, question TEXT NOT NULL, sources TEXT NOT NULL, target TEXT NOT NULL, at TEXT NOT NULL,
    previous TEXT NOT NULL, content TEXT NOT NULL, active INTEGER NOT NULL, head INTEGER NOT NULL,
    first INTEGER NOT NULL, additions INTEGER NOT NULL);
CREATE TABLE additions (
    id INTEGER PRIMARY KEY, edit INTEGER NOT NULL, item INTEGER NOT NULL, document INTEGER NOT NULL,
    chunk INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, confidence REAL, model INTEGER NOT NULL,
    prompt INTEGER NOT NULL, reason TEXT NOT NULL);
CREATE INDEX additions_item ON additions (item);
CREATE INDEX additions_document ON additions (document);
CREATE TABLE removals (
    id INTEGER PRIMARY KEY, edit INTEGER NOT NULL, target TEXT NOT NULL, document TEXT NOT NULL, item TEXT NOT NULL);
CREATE INDEX removals_edit ON removals (edit);
CREATE INDEX removals_tag ON removals (target, item, document);
CREATE TABLE flips (
    addition INTEGER NOT NULL, seq INTEGER NOT NULL, live INTEGER NOT NULL, PRIMARY KEY (addition, seq)) WITHOUT ROWID;
CREATE INDEX flips_seq ON flips (seq);
CREATE TABLE concerns (
    key INTEGER NOT NULL, item INTEGER NOT NULL, PRIMARY KEY (key, item)) WITHOUT ROWID;
CREATE TABLE texts (digest TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE versions (
    document TEXT NOT NULL, digest TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (document, digest)) WITHOUT ROWID;
CREATE TABLE replies (
    digest TEXT NOT NULL, extractor TEXT NOT NULL, reply TEXT NOT NULL, PRIMARY KEY (digest, extractor)) WITHOUT ROWID;
CREATE TABLE communities (
    iri TEXT NOT NULL, content TEXT NOT NULL, level INTEGER NOT NULL, parent TEXT NOT NULL, members TEXT NOT NULL,
    members_hash TEXT NOT NULL, title TEXT NOT NULL, summary TEXT NOT NULL, wanted INTEGER NOT NULL,
    written INTEGER NOT NULL, PRIMARY KEY (iri, content)) WITHOUT ROWID;
CREATE TABLE summaries (
    members_hash TEXT PRIMARY KEY, title TEXT NOT NULL, summary TEXT NOT NULL, model TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


class Connections:
    """The connections of this process to a file: one that writes, or one per thread that reads.

    Args:
        path: The file. A writer creates it if it is missing.
        writable: Whether to write. The caller has made sure that nobody else does.

    Raises:
        CorpusError: the file is missing, damaged, or not a corpus.
    """

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        self.path = path
        self.writable = writable
        self._lock = threading.RLock()
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._closed = False
        self._writer = self._connect() if writable else None
        self.get()

    def get(self) -> sqlite3.Connection:
        """Return the connection of this thread."""
        if self._writer:
            return self._writer
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = self._connect()
        return found

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection of this thread, and convert the errors of SQLite."""
        with _errors(self.path):
            yield self.get()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Lend the writing connection for one transaction: all of it is stored, or after an exception nothing.

        A transaction inside of a transaction is a part of the outer one.
        """
        assert self._writer is not None, "open for reading only"
        with self._lock, _errors(self.path):
            if self._writer.in_transaction:
                yield self._writer
                return
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._closed = True
            while self._opened:
                self._opened.pop().close()

    def _connect(self) -> sqlite3.Connection:
        if self._closed:
            raise CorpusError("The corpus has been closed.", "Open it again.")
        if not self.writable and not self.path.is_file():
            raise CorpusError(f"There is no corpus at {self.path.parent}.", "Build it: ", Command("corpus build"))
        if self.writable:
            refuse_companions(self.path, CorpusError)
        with _errors(self.path):
            try:
                connection = self._open("mode=rwc" if self.writable else "mode=ro")
            except sqlite3.OperationalError:
                # on a disk that cannot be written, a file without a log, or with an empty one, is read as it is
                log = self.path.with_name(f"{self.path.name}-wal")
                if self.writable or (log.exists() and log.stat().st_size):
                    raise
                connection = self._open("immutable=1")
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        with self._lock:
            self._opened.append(connection)
        return connection

    def _open(self, mode: str) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?{mode}"
        connection = sqlite3.connect(
            address, uri=True, check_same_thread=False, isolation_level=None, timeout=BUSY_SECONDS
        )
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "foreign_keys=OFF", "cache_size=-65536"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        if self.writable and not tables:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(
                f"BEGIN IMMEDIATE; PRAGMA application_id={APPLICATION}; PRAGMA user_version={FORMAT}; {_SCHEMA} COMMIT;"
            )
        self._check(connection)
        if self.writable:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
        else:
            connection.execute("PRAGMA query_only=ON")

    def _check(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise CorpusError(f"{self.path} is not the database of a corpus.", "Choose another folder.")
        if version != FORMAT:
            raise CorpusError(f"{self.path} has format {version}; this version of kgqa reads format {FORMAT}.")
        if _schema_of(connection) != _expected_schema():
            raise CorpusError(f"{self.path} has other tables than a corpus of kgqa.", "Build the corpus again.")


def _schema_of(connection: sqlite3.Connection) -> frozenset[tuple[str, ...]]:
    """Return the tables, indexes, triggers and views of a database, except the tables of the ledger."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return frozenset(row for row in rows if not (row[0] in ("table", "index") and row[2].startswith(LEDGER)))


@cache
def _expected_schema() -> frozenset[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.executescript(_SCHEMA)
        return _schema_of(memory)


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Convert the errors of SQLite."""
    try:
        yield
    except sqlite3.Error as error:
        message = str(error)
        if "locked" in message or "busy" in message:
            raise CorpusError(f"{path} is used by another process.", "Try again later.") from error
        if "full" in message:
            raise CorpusError(f"No space left on the disk of {path}.", "Free some space and try again.") from error
        if "disk I/O" in message:  # such as a limit on the space of a user
            raise CorpusError(
                f"{path} cannot be read or written: {message}.", "Check the disk and try again."
            ) from error
        if "readonly" in message or "unable to open" in message:
            raise CorpusError(f"{path} cannot be opened: {message}.", "Check its permissions.") from error
        raise CorpusError(
            f"{path} is damaged: {message}.", "Restore it from a copy, or build the corpus again."
        ) from error
