"""Whole results of queries on disk, by endpoint, graph fingerprint and text: asking the same again costs no request.

A changed graph has another fingerprint, so its old results are never found; they go by age and size.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

MAX_BODY_BYTES = 64 << 20
TAIL_BYTES = 16 << 10
DAY = 86_400.0
FLUSH_RESULTS, FLUSH_BYTES, FLUSH_SECONDS = 64, 4 << 20, 2.0
MOST_WAITING_BYTES = 64 << 20
BUSY_SECONDS = 0.25
"""How long another process may keep us from writing; results then wait for the next time."""
_SCHEMA = """
PRAGMA auto_vacuum=INCREMENTAL;
PRAGMA journal_mode=WAL;
PRAGMA synchronous=OFF;
CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, at REAL, size INTEGER, body BLOB);
CREATE INDEX IF NOT EXISTS results_by_age ON results (at, size);
CREATE TABLE IF NOT EXISTS facts (key BLOB PRIMARY KEY, at REAL, body TEXT);
"""


class ResultCache:
    """A SQLite file of results. Thread-safe; several processes may use one. Where it cannot be written nothing is kept,
    and what is damaged is thrown away: everything in it can be asked for again.

    Args:
        days: age at which a result is no longer used.
        limit_bytes: size of all results together; the oldest go first.
    """

    def __init__(self, file: Path, *, days: float = 7.0, limit_bytes: int = 2 << 30) -> None:
        self._file = file
        self._days = days
        self._limit = limit_bytes
        self._lock = threading.Lock()
        self._waiting: dict[bytes, tuple[float, bytes]] = {}
        self._waiting_bytes = 0
        self._written_bytes = 0
        self._next_flush = time.monotonic()
        self._connection: sqlite3.Connection | None = None
        for _ in range(2):  # a damaged file is removed, and made anew
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch(mode=0o600)  # results may be of a server that needs a password
                self._connection = sqlite3.connect(file, timeout=5, check_same_thread=False, isolation_level=None)
                self._connection.executescript(_SCHEMA)
                self._trim()
                self._connection.execute(f"PRAGMA busy_timeout={round(BUSY_SECONDS * 1000)}")
                return
            except (OSError, sqlite3.Error) as error:
                self._give_up(error)

    def get(self, key: bytes) -> bytes | None:
        """A body that was put less than `days` ago."""
        with self._lock:
            waiting = self._waiting.get(key)
            oldest = time.time() - self._days * DAY
            row = (waiting[1],) if waiting else None
            row = row or self._one("SELECT body FROM results WHERE key = ? AND at > ?", (key, oldest))
        try:
            return zlib.decompress(row[0]) if row else None
        except (zlib.error, TypeError):
            return None  # damaged: asked for anew

    def put(self, key: bytes, body: bytes) -> None:
        """Keep a body, unless it is longer than MAX_BODY_BYTES or a tenth of the whole cache."""
        if len(body) > min(MAX_BODY_BYTES, self._limit // 10):
            return
        packed = zlib.compress(body, 1)
        with self._lock:
            if self._connection is None or self._waiting_bytes + len(packed) > MOST_WAITING_BYTES:
                return
            self._waiting[key] = (time.time(), packed)
            self._waiting_bytes += len(packed)
            full = len(self._waiting) >= FLUSH_RESULTS or self._waiting_bytes >= FLUSH_BYTES
            late = time.monotonic() - self._next_flush
            if late >= FLUSH_SECONDS or (full and late >= 0):
                self._flush()

    def fact(self, key: bytes, *, younger: float) -> str | None:
        """A short text about an endpoint, kept for less than `younger` seconds."""
        with self._lock:
            row = self._one("SELECT body FROM facts WHERE key = ? AND at > ?", (key, time.time() - younger))
        return row[0] if row else None

    def put_fact(self, key: bytes, text: str | None) -> None:
        """Keep a short text, or forget it (None)."""
        with self._lock:
            if self._connection is None:
                return
            try:
                if text is None:
                    self._connection.execute("DELETE FROM facts WHERE key = ?", (key,))
                else:
                    self._connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (key, time.time(), text))
            except sqlite3.Error as error:
                self._trouble(error)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._flush()
            if self._connection is not None:
                try:
                    self._connection.close()
                except sqlite3.Error:
                    pass
                self._connection = None

    # --- inside, with the lock held

    def _one(self, sql: str, values: tuple) -> tuple | None:
        if self._connection is None:
            return None
        try:
            return self._connection.execute(sql, values).fetchone()
        except sqlite3.Error as error:
            self._trouble(error)
            return None

    def _flush(self) -> None:
        """One short transaction for many results: each by itself would cost more than the query it saves, and a long
        one would keep other processes waiting.
        """
        assert self._connection is not None
        rows = [(key, at, len(packed), packed) for key, (at, packed) in self._waiting.items()]
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)", rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._next_flush = time.monotonic() + FLUSH_SECONDS
            self._trouble(error)
            return
        self._next_flush = time.monotonic()
        self._written_bytes += self._waiting_bytes
        self._waiting, self._waiting_bytes = {}, 0
        if self._written_bytes > self._limit // 10:
            try:
                self._trim()
            except sqlite3.Error as error:
                self._trouble(error)

    def _trim(self) -> None:
        assert self._connection is not None
        self._written_bytes = 0
        execute = self._connection.execute
        execute("DELETE FROM results WHERE at <= ?", (time.time() - self._days * DAY,))
        total = execute("SELECT COALESCE(SUM(size), 0) FROM results").fetchone()[0]
        if total > self._limit:
            # nine tenths are kept, so that not every further result throws out another
            oldest = execute(
                "SELECT MIN(at) FROM (SELECT at, SUM(size) OVER (ORDER BY at DESC, rowid) AS upto FROM results)"
                " WHERE upto <= ?",
                (self._limit * 9 // 10,),
            ).fetchone()[0]
            execute("DELETE FROM results WHERE at < ?", (time.time() if oldest is None else oldest,))
        self._connection.executescript("PRAGMA incremental_vacuum;")  # `execute` frees one page only

    def _trouble(self, error: sqlite3.Error) -> None:
        """A file that another process writes to is fine again later; anything else ends its use."""
        assert self._connection is not None
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            pass
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Close the file, and remove one that is damaged. Another process that has it open goes on with its own."""
        if self._connection is not None:
            try:
                self._connection.close()
            except sqlite3.Error:
                pass
            self._connection = None
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            for suffix in ("", "-wal", "-shm"):
                try:
                    self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
                except OSError:
                    pass


class GraphResults:
    """The part of a cache that belongs to one state of one graph on one endpoint, as one user sees it."""

    def __init__(self, cache: ResultCache, url: str, fingerprint: str, *, user: str = "") -> None:
        self._cache = cache
        self._of = hashlib.blake2b(f"{url}\n{user}\n{fingerprint}\n".encode(), digest_size=16)

    def _key(self, query: str) -> bytes:
        digest = self._of.copy()
        digest.update(query.encode("utf-8"))
        return digest.digest()

    def get(self, query: str) -> bytes | None:
        return self._cache.get(self._key(query))

    def put(self, query: str, body: bytes) -> None:
        self._cache.put(self._key(query), body)


class Overheard:
    """Passes the parts of a body on, once, and keeps them as long as they may be worth keeping."""

    def __init__(self, parts: Iterable[bytes], *, keeps: bool) -> None:
        self._parts = parts
        self._kept: list[bytes] | None = [] if keeps else None
        self._size = 0
        self._ended = False
        self.tail = b""

    def __iter__(self) -> Iterator[bytes]:
        for part in self._parts:
            self._size += len(part)
            self.tail = part[-TAIL_BYTES:] if len(part) >= TAIL_BYTES else (self.tail + part)[-TAIL_BYTES:]
            if self._size > MAX_BODY_BYTES:
                self._kept = None
            if self._kept is not None:
                self._kept.append(part)
            yield part
        self._ended = True

    @property
    def body(self) -> bytes | None:
        """The body, None where it was not read to its end or is too long to keep."""
        return b"".join(self._kept) if self._kept is not None and self._ended else None
