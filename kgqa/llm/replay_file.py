"""The replay file: an SQLite file with recorded replies of language models."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.llm.client import Completion
from kgqa.storage.foreign import refuse_companions
from kgqa.storage.loading import convert, parse_json
from kgqa.text.hints import Hint, Option

FORMAT = 1
"""The `user_version` of the file."""
_APPLICATION = 0x6B677172
"""The `application_id` "kgqr", which distinguishes a replay file from other SQLite files."""
_BUSY_SECONDS = 30.0
_AT_ONCE = 500
_QUERY_SECONDS = 60.0
"""Time limit of a query. Queries normally take milliseconds, but a hostile file could make a query slow."""
_STEPS = 1_000
"""Steps of SQLite's virtual machine between two checks of the time limit."""
_LARGEST_REPLY = 32 << 20
_LARGEST_BATCH = 256 << 20
"""Most bytes of all replies read in one call; `_LARGEST_REPLY` limits a single reply."""
_MOST_MODELS = 1000
_LONGEST_NAME = 500
_TABLE = (
    "CREATE TABLE replies (key TEXT PRIMARY KEY, model TEXT NOT NULL, created REAL NOT NULL, completion TEXT NOT NULL)"
)
_INDEX = "CREATE INDEX replies_by_model ON replies (model)"
_SCHEMA = {
    ("table", "replies", "replies", _TABLE),
    ("index", "sqlite_autoindex_replies_1", "replies", None),
    ("index", "replies_by_model", "replies", _INDEX),
}


class ReplayFile:
    """A file of completions by key. An entry never changes. Threads and processes may share the file.

    Once `put` has returned a completion, it is on disk and survives if the process is killed. Files may come from other
    people and are not trusted: a file is opened only if its tables are exactly those of a replay file, and every value
    read from it is checked for type and range.
    """

    def __init__(self, path: Path, *, write: bool) -> None:
        """Open the file; with `write`, create a missing file.

        Raises:
            SettingsError: The file is not a replay file, has a newer format, or cannot be written or read.
            ModelUnavailable: Without `write`, the file does not exist.
        """
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._end = time.monotonic() + _QUERY_SECONDS
        try:
            if path.is_dir():
                raise SettingsError(f"{path} is a folder.", "Give the path of a replay file.")
            refuse_companions(path, SettingsError)
            if write:
                self._open_to_write()
            else:
                self._open_to_read()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError | sqlite3.Error):
                raise _unusable(path, error, write) from error
            raise

    def get(self, keys: Sequence[str], *, deadline: float | None = None) -> dict[str, Completion]:
        """Return a map from keys to recorded completions; keys without a completion are left out.

        Raises:
            TimeoutError: The deadline, on the clock of `time.monotonic()`, has passed.
            ModelUnavailable: The file is damaged or closed, or the replies are too large.
        """
        found: dict[str, Completion] = {}
        size = 0
        with self._used(deadline) as connection:
            for start in range(0, len(keys), _AT_ONCE):
                batch = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(batch))
                rows = connection.execute(f"SELECT key, completion FROM replies WHERE key IN ({marks})", batch)
                for key, text in rows:
                    size += len(text)
                    if size > _LARGEST_BATCH:
                        raise ValueError("the replies are too large")
                    found[key] = _completion(text)
        return found

    def put(self, model: str, completions: Mapping[str, Completion]) -> dict[str, Completion]:
        """Record completions, either all or none, and return the completion now in the file for each key.

        If another process has already recorded a completion for a key, that completion is returned.

        Raises:
            ModelUnavailable: The file is damaged or closed, or the disk is full.
        """
        if not completions:
            return {}
        now = time.time()
        rows = [(key, model, now, _text(each)) for key, each in completions.items()]
        insert = "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)"
        with self._used() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                theirs = [row[0] for row in rows if connection.execute(insert, row).rowcount == 0]
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
        return {**completions, **self.get(theirs)}

    def models(self) -> list[str]:
        """Return the names of the models with replies in the file, in alphabetical order.

        Raises:
            ModelUnavailable: The file is damaged or closed.
        """
        with self._used() as connection:
            query = "SELECT DISTINCT model FROM replies ORDER BY model LIMIT ?"
            names = [name for (name,) in connection.execute(query, (_MOST_MODELS,))]
            if not all(isinstance(name, str) and len(name) <= _LONGEST_NAME for name in names):
                raise ValueError("the name of a model is invalid")
            return names

    def close(self) -> None:
        """Close the file; may be called more than once."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _used(self, deadline: float | None = None) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._connection is None:
                raise ModelUnavailable(f"The replay file {self._path} was closed while a reply was being read.")
            self._end = min(time.monotonic() + _QUERY_SECONDS, deadline or math.inf)
            try:
                yield self._connection
            except (sqlite3.Error, ValueError, TypeError) as error:
                if deadline is not None and time.monotonic() >= deadline:
                    raise TimeoutError from None
                if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                    raise ModelUnavailable(
                        f"The disk of {self._path} is full.",
                        "Free some space and run the command again; the replies recorded so far are intact.",
                    ) from error
                raise ModelUnavailable(
                    f"The replay file {self._path} is damaged: {error}.", "Move it away and record the replies again."
                ) from error

    def _open_to_write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = self._connect("?mode=rwc")
        # nothing is written before the file is known to be a replay file or empty
        connection.execute("BEGIN IMMEDIATE")
        is_new = not self._is_ours(connection)
        # also written to an existing file, so that a read-only file fails now and not after the first request
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        if is_new:
            connection.execute(_TABLE)
            connection.execute(_INDEX)
        connection.execute("COMMIT")
        connection.execute("PRAGMA synchronous = NORMAL")
        _switch_to_wal(connection)

    def _open_to_read(self) -> None:
        if not self._path.exists():
            raise ModelUnavailable(
                f"There is no replay file {self._path}.",
                "Record it by running with ",
                Option("llm", "MODEL"),
                " ",
                Option("replay", self._path),
                " and without ",
                Option("replay-only", True),
                ".",
            )
        try:
            # mode "rw" also opens a read-only file, for reading; with mode "ro", SQLite leaves extra files behind
            self._check("?mode=rw")
        except sqlite3.OperationalError:
            # in a read-only folder SQLite cannot create the shared-memory file of WAL mode; if there is no log file,
            # the replay file is complete and no process is writing to it, so it can be opened as immutable
            log = self._path.with_name(self._path.name + "-wal")
            if log.exists() and log.stat().st_size:
                raise
            self.close()
            self._check("?mode=ro&immutable=1")

    def _check(self, mode: str) -> None:
        connection = self._connect(mode)
        connection.execute("PRAGMA query_only = ON")
        if not self._is_ours(connection):
            raise SettingsError(f"{self._path} is empty.", "Give the path of a replay file with replies.")

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        """Return True for a replay file and False for an empty file.

        Raises:
            SettingsError: The file is neither.
        """
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        entries = f"SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT {len(_SCHEMA) + 1}"
        schema = connection.execute(entries).fetchall()
        if application == 0 and version == 0 and not schema:
            return False
        if application != _APPLICATION:
            raise SettingsError(f"{self._path} is an SQLite database, but not a replay file.", "Choose another file.")
        if version > FORMAT:
            raise SettingsError(
                f"{self._path} was written by a newer version of kgqa (format {version}; this version reads {FORMAT}).",
                "Update kgqa, or choose another file.",
            )
        if version < 1 or len(schema) != len(_SCHEMA) or set(schema) != _SCHEMA:
            raise SettingsError(
                f"{self._path} does not have the tables of a replay file: it was changed or is damaged.",
                "Name another file, or move this file away and record the replies again.",
            )
        return True

    def _connect(self, mode: str) -> sqlite3.Connection:
        """Open the connection that is safe for untrusted files.

        Functions in the schema are turned off, and the size of values and the time of queries are limited.
        """
        uri = self._path.absolute().as_uri() + mode
        self._connection = connection = sqlite3.connect(
            uri, uri=True, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None
        )
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_REPLY)
        connection.set_progress_handler(lambda: time.monotonic() > self._end, _STEPS)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        return connection


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL mode; repeat while the file is locked, because SQLite does not always wait for exclusive access."""
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
    reason = getattr(error, "strerror", None) or str(error)
    if not isinstance(error, sqlite3.OperationalError | OSError):
        return SettingsError(f"{path} cannot be read: {reason}.", "Name a replay file, or move this file away.")
    if write:
        only = Option("replay-only", True)
        hint = Hint("Add ", only, " to read it without writing, or name a file that you may write to.")
        return SettingsError(f"{path} cannot be written: {reason}.", hint)
    return SettingsError(
        f"{path} cannot be read: {reason}.",
        f"Check its permissions, or copy {path.name} and the files {path.name}-* to a folder that you may write to.",
    )


def _text(completion: Completion) -> str:
    values = asdict(completion)
    del values["recorded"]
    # ASCII, because a reply may contain an unpaired surrogate, which SQLite does not accept in text
    return json.dumps(values)


def _completion(text: object) -> Completion:
    """Read a completion from its JSON text in the file.

    Raises:
        ValueError: The text is not a completion.
    """
    if not isinstance(text, str):
        raise ValueError("an entry is not a reply")
    values: dict[str, Any] = parse_json(text, dict[str, Any])
    found: Completion = convert({"text": None, **values, "recorded": True}, Completion)
    return found
