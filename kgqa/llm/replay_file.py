"""The SQLite file in which replies of language models are kept."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.llm.client import Completion

FORMAT = 1
"""`user_version` of the file."""
_APPLICATION = 0x6B677172
"""`application_id`, "kgqr": tells a replay file from other files of SQLite."""
_BUSY_SECONDS = 30.0
_AT_ONCE = 500
_FIELDS = tuple(each.name for each in fields(Completion) if each.name != "recorded")


class ReplayFile:
    """Completions by key; what is there never changes. Thread-safe, and safe among processes.

    What `put` returned is on disk: it outlives a process that is killed.
    """

    def __init__(self, path: Path, *, write: bool) -> None:
        """Opens the file; one that does not exist is created for writing.

        Raises:
            SettingsError: the file is no replay file, is of a newer format, or cannot be written or read.
            ModelUnavailable: there is no file to read.
        """
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        try:
            if path.is_dir():
                raise SettingsError(f"{path} is a folder: a replay file is wanted here.")
            self._connection = self._open_to_write() if write else self._open_to_read()
        except (OSError, sqlite3.Error) as error:
            raise _unusable(path, error, write) from error

    def get(self, keys: Sequence[str]) -> dict[str, Completion]:
        """Those that are known. Raises ModelUnavailable."""
        found: dict[str, Completion] = {}
        with self._used() as connection:
            for start in range(0, len(keys), _AT_ONCE):
                batch = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(batch))
                rows = connection.execute(f"SELECT key, completion FROM replies WHERE key IN ({marks})", batch)
                found.update((key, _completion(text)) for key, text in rows)
        return found

    def put(self, model: str, completions: Mapping[str, Completion]) -> dict[str, Completion]:
        """Keep them, all or none; gives what is kept now: where somebody else was first, theirs. Raises
        ModelUnavailable."""
        if not completions:
            return {}
        now = time.time()
        rows = [(key, model, now, _text(each)) for key, each in completions.items()]
        theirs: list[str] = []
        with self._used() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                for row in rows:
                    if connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", row).rowcount == 0:
                        theirs.append(row[0])
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
        return {**completions, **self.get(theirs)}

    def models(self) -> list[str]:
        """Names of the models that have replies here, in alphabetical order. Raises ModelUnavailable."""
        with self._used() as connection:
            return [name for (name,) in connection.execute("SELECT DISTINCT model FROM replies ORDER BY model")]

    def close(self) -> None:
        """May be called again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _used(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._connection is None:
                raise ModelUnavailable(f"{self._path} was closed while a reply was wanted from it.")
            try:
                yield self._connection
            except (sqlite3.Error, ValueError, TypeError) as error:
                if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                    raise ModelUnavailable(
                        f"There is no space left on the disk of {self._path}, so replies cannot be kept. Make room and "
                        "ask again; what it holds is whole."
                    ) from error
                raise ModelUnavailable(
                    f"{self._path} cannot be used any more: {error}. The file is damaged: move it away and record it "
                    "again."
                ) from error

    def _open_to_write(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = _connect(self._path.absolute().as_uri() + "?mode=rwc")
        try:
            # nothing is written before it is sure that the file is ours
            connection.execute("BEGIN IMMEDIATE")
            is_new = not self._is_ours(connection)
            # to a file that is ours too: better to find out now whether it can be written than after the first call
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            if is_new:
                connection.execute(
                    "CREATE TABLE replies (key TEXT PRIMARY KEY, model TEXT NOT NULL, created REAL NOT NULL, "
                    "completion TEXT NOT NULL)"
                )
                connection.execute("CREATE INDEX replies_by_model ON replies (model)")
            connection.execute("COMMIT")
            connection.execute("PRAGMA synchronous = NORMAL")
            _switch_to_wal(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_to_read(self) -> sqlite3.Connection:
        if not self._path.exists():
            raise ModelUnavailable(
                f"There is no replay file {self._path}: record it by running with --llm MODEL --replay {self._path} "
                "and without --replay-only."
            )
        uri = self._path.absolute().as_uri()
        try:
            # SQLite makes it "ro" where the file cannot be written; asked for, "ro" leaves files behind at the end
            return self._checked(_connect(uri + "?mode=rw"))
        except sqlite3.OperationalError:
            # where its folder cannot be written SQLite has no place for what readers in WAL mode share; without a
            # log beside it the file is whole, and nobody can be writing to it
            log = self._path.with_name(self._path.name + "-wal")
            if log.exists() and log.stat().st_size:
                raise
            return self._checked(_connect(uri + "?mode=ro&immutable=1"))

    def _checked(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        try:
            connection.execute("PRAGMA query_only = ON")
            if not self._is_ours(connection):
                raise SettingsError(f"{self._path} is empty: it is no replay file.")
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        """False for a file with nothing in it. Raises SettingsError for one that is something else."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        if application == 0 and version == 0 and tables == 0:
            return False
        if application != _APPLICATION:
            raise SettingsError(f"{self._path} is a database of something else, no replay file: name another file.")
        if version > FORMAT:
            raise SettingsError(
                f"{self._path} was written by a newer version of kgqa (format {version}, this one knows {FORMAT}): "
                "update kgqa, or name another file."
            )
        return True


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None)


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Changing the mode needs the file for itself, and does not always wait for it."""
    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _unusable(path: Path, error: Exception, write: bool) -> SettingsError:
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    if isinstance(error, sqlite3.OperationalError) or isinstance(error, OSError):
        way = "written" if write else "read"
        hint = "Read it with --replay-only, or name a file" if write else "Copy it, and what lies beside it, to a place"
        return SettingsError(f"{path} cannot be {way}: {reason}. {hint} that you may write to.")
    return SettingsError(f"{path} is no replay file, or is damaged: {reason}. Name another file, or move it away.")


def _text(completion: Completion) -> str:
    values = asdict(completion)
    # ASCII: a reply may hold half a surrogate pair, which is no text for SQLite
    return json.dumps({name: values[name] for name in _FIELDS})


def _completion(text: str) -> Completion:
    values = json.loads(text)
    if not isinstance(values, dict) or not isinstance(values.get("text"), str):
        raise ValueError("one of its replies is no reply")
    return Completion(**{name: values[name] for name in _FIELDS if name in values}, recorded=True)
