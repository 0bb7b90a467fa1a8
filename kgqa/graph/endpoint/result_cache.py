"""A disk cache of complete query results. The key consists of the endpoint, the graph's fingerprint and the query.

A graph that changes gets a new fingerprint, so its old results are no longer found. Old results are removed when they
expire or when the cache is full.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kgqa.storage.cache import warn_unreadable

MAX_AGE = 7 * 86_400.0
"""Seconds after which a result expires."""
MAX_BODY_BYTES = 64 << 20
"""The longest body that is stored."""
PAUSE_SECONDS = 2.0
"""How long nothing is stored after another process wrote to the file for longer than `busy_timeout`."""
_SCHEMA = """
PRAGMA auto_vacuum=INCREMENTAL;
PRAGMA journal_mode=WAL;
PRAGMA synchronous=OFF;
PRAGMA busy_timeout=250;
CREATE TABLE IF NOT EXISTS bodies (key BLOB PRIMARY KEY, at REAL, body BLOB);
CREATE INDEX IF NOT EXISTS bodies_by_age ON bodies (at);
"""
_USED_BYTES = """
SELECT (page_count - freelist_count) * page_size FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()
"""
_DELETE_HALF = """
DELETE FROM bodies WHERE at <= (SELECT at FROM bodies ORDER BY at LIMIT 1 OFFSET (SELECT COUNT(*) / 2 FROM bodies))
"""


class ResultCache:
    """A SQLite file of results. Thread-safe; several processes can share the file.

    If the file is not writable, nothing is cached. A damaged file is removed, because the server can be queried again.

    Args:
        limit_bytes: the largest total size of the results; the oldest results are removed first.
    """

    def __init__(self, file: Path, *, limit_bytes: int = 2 << 30) -> None:
        self._file = file
        self._limit = limit_bytes
        self._lock = threading.Lock()
        self._written_bytes = 0
        self._next_write = 0.0
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.close()  # until the file is open, and after an error, nothing is found
        for _ in range(2):  # a second attempt after a damaged file was removed
            with self._errors():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch(mode=0o600)  # readable only for this user: the server may require a password
                self._connection = sqlite3.connect(file, timeout=1, check_same_thread=False, isolation_level=None)
                self._connection.executescript(_SCHEMA)
                self._trim()
                return

    def get(self, key: bytes, *, max_age: float = MAX_AGE) -> bytes | None:
        """Return the body stored under `key` less than `max_age` seconds ago; None if there is none."""
        with self._errors():
            query, oldest = "SELECT body FROM bodies WHERE key = ? AND at > ?", time.time() - max_age
            for (body,) in self._connection.execute(query, (key, oldest)):
                return zlib.decompress(body)
        return None

    def put(self, key: bytes, body: bytes | bytearray, *, waits: bool = False) -> None:
        """Store a body, unless it is longer than MAX_BODY_BYTES or a tenth of `limit_bytes`.

        Args:
            waits: whether to try even if another process has just kept the file busy.
        """
        is_paused = time.monotonic() < self._next_write and not waits
        if is_paused or len(body) > min(MAX_BODY_BYTES, self._limit // 10):
            return
        packed = zlib.compress(body, 1)
        with self._errors():
            self._connection.execute("INSERT OR REPLACE INTO bodies VALUES (?, ?, ?)", (key, time.time(), packed))
            self._written_bytes += len(packed)
            if self._written_bytes > self._limit // 10:
                self._trim()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Hold the lock, and leave the block at an error; most errors close the file, and a damaged file is removed.

        Processes that have the file open can still read it. The user is told of a file that cannot be read and is still
        there.
        """
        with self._lock:
            try:
                yield
            except (zlib.error, TypeError):
                return  # one damaged body
            except (OSError, sqlite3.Error) as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    self._next_write = time.monotonic() + PAUSE_SECONDS
                    return
                self._connection.close()
                if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                    for suffix in ("", "-wal", "-shm"):
                        with suppress(OSError):
                            self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
                warn_unreadable(self._file, error)

    def _trim(self) -> None:
        """Remove expired results and, if they are too many, the older half of the others."""
        self._written_bytes = 0
        self._connection.execute("DELETE FROM bodies WHERE at <= ?", (time.time() - MAX_AGE,))
        if self._connection.execute(_USED_BYTES).fetchone()[0] > self._limit:
            self._connection.execute(_DELETE_HALF)
        self._connection.executescript("PRAGMA incremental_vacuum;")  # `execute` would free only one page
