"""A disk cache of complete query results. The key consists of the endpoint, the graph's fingerprint and the query.

A graph that changes gets a new fingerprint, so its old results are no longer found. Old results are removed when they
expire or when the cache is full.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
import zlib
from pathlib import Path
from typing import Any

from kgqa.storage.cache import warn_unreadable

DAY_SECONDS = 86_400.0
MAX_BODY_BYTES = 64 << 20
"""The longest body that is stored."""
BUSY_SECONDS, PAUSE_SECONDS = 0.25, 2.0
"""Seconds to wait while another process writes to the file, and how long nothing is stored if it writes for longer."""
_SCHEMA = """
PRAGMA auto_vacuum=INCREMENTAL;
PRAGMA journal_mode=WAL;
PRAGMA synchronous=OFF;
CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, at REAL, size INTEGER, body BLOB);
CREATE INDEX IF NOT EXISTS results_by_age ON results (at, size);
CREATE TABLE IF NOT EXISTS facts (key BLOB PRIMARY KEY, at REAL, body TEXT);
"""


class ResultCache:
    """A SQLite file of results. Thread-safe; several processes can share the file.

    If the file is not writable, nothing is cached. A damaged file is removed, because the server can be queried again.

    Args:
        days: days after which a result expires.
        limit_bytes: the largest total size of the results; the oldest results are removed first.
    """

    def __init__(self, file: Path, *, days: float = 7.0, limit_bytes: int = 2 << 30) -> None:
        self._file = file
        self._days = days
        self._limit = limit_bytes
        self._lock = threading.Lock()
        self._written_bytes = 0
        self._next_write = 0.0
        self._connection: sqlite3.Connection | None = None
        for _ in range(2):  # a second attempt after a damaged file was removed
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch(mode=0o600)  # readable only for this user: the server may require a password
                self._connection = sqlite3.connect(file, timeout=5, check_same_thread=False, isolation_level=None)
                self._connection.executescript(_SCHEMA)
                self._connection.execute(f"PRAGMA busy_timeout={round(BUSY_SECONDS * 1000)}")
                self._trim()
            except (OSError, sqlite3.Error) as error:
                self._disable(error)
            if self._connection is not None:
                return

    def get(self, key: bytes) -> bytes | None:
        """Return the body stored under `key` less than `days` days ago; None if there is none."""
        with self._lock:
            oldest = time.time() - self._days * DAY_SECONDS
            row = self._first_row("SELECT body FROM results WHERE key = ? AND at > ?", (key, oldest))
        try:
            return zlib.decompress(row[0]) if row else None
        except (zlib.error, TypeError):
            return None  # damaged

    def put(self, key: bytes, body: bytes) -> None:
        """Store a body, unless it is longer than MAX_BODY_BYTES or a tenth of `limit_bytes`."""
        if len(body) > min(MAX_BODY_BYTES, self._limit // 10):
            return
        packed = zlib.compress(body, 1)
        with self._lock:
            if time.monotonic() >= self._next_write:
                row = (key, time.time(), len(packed), packed)
                self._first_row("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)", row)
                self._written_bytes += len(packed)
            if self._written_bytes > self._limit // 10:
                self._trim()

    def fact(self, key: bytes, *, max_age: float) -> str | None:
        """Return the text stored about an endpoint less than `max_age` seconds ago; None if there is none."""
        with self._lock:
            row = self._first_row("SELECT body FROM facts WHERE key = ? AND at > ?", (key, time.time() - max_age))
        return str(row[0]) if row and row[0] is not None else None

    def put_fact(self, key: bytes, text: str | None) -> None:
        """Store a short text about an endpoint; None removes the stored text."""
        with self._lock:
            self._first_row("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (key, time.time(), text))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._disconnect()

    # --- called with the lock held

    def _first_row(self, sql: str, values: tuple[object, ...] = ()) -> Any:
        """Run a statement and return the first row of its result; None without a row, or after an error."""
        try:
            return self._connection.execute(sql, values).fetchone() if self._connection else None
        except sqlite3.Error as error:
            self._handle_error(error)
            return None

    def _trim(self) -> None:
        """Remove expired results, and the oldest of those that are too many."""
        self._written_bytes = 0
        self._first_row("DELETE FROM results WHERE at <= ?", (time.time() - self._days * DAY_SECONDS,))
        total = self._first_row("SELECT COALESCE(SUM(size), 0) FROM results")
        if total and total[0] > self._limit:
            # down to nine tenths, so that not every new result causes a removal
            self._first_row(
                "DELETE FROM results WHERE at < COALESCE((SELECT MIN(at) FROM (SELECT at, SUM(size) OVER "
                "(ORDER BY at DESC, rowid) AS upto FROM results) WHERE upto <= ?), ?)",
                (self._limit * 9 // 10, time.time()),
            )
        if self._connection is not None:
            self._connection.executescript("PRAGMA incremental_vacuum;")  # `execute` would free only one page

    def _handle_error(self, error: sqlite3.Error) -> None:
        """Store nothing for a while if another process writes to the file; disable the cache after any other error."""
        self._next_write = time.monotonic() + PAUSE_SECONDS
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            self._disable(error)

    def _disable(self, error: Exception) -> None:
        """Close the file; if it is damaged, remove it. Processes that have the file open can still read it.

        The user is told of a file that cannot be read and is still there.
        """
        self._disconnect()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
        warn_unreadable(self._file, error)

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
