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

MAX_BODY_BYTES = 1 << 20
DAY = 86_400.0
FLUSH_EVERY = 64


class ResultCache:
    """A SQLite file of results. Thread-safe; several processes may use one. Where it cannot be written nothing is kept.

    Args:
        days: age at which a result is no longer used.
        limit_bytes: size of all results together; the oldest go first.
    """

    def __init__(self, file: Path, *, days: float = 7.0, limit_bytes: int = 2 << 30) -> None:
        self._days = days
        self._lock = threading.Lock()
        self._waiting = 0
        self._connection: sqlite3.Connection | None = None
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(file, timeout=5, check_same_thread=False, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=OFF")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, at REAL, body BLOB) WITHOUT ROWID"
            )
            self._connection.execute("CREATE TABLE IF NOT EXISTS facts (key BLOB PRIMARY KEY, at REAL, body TEXT)")
            self._trim(limit_bytes)
        except (OSError, sqlite3.Error):
            self._connection = None

    def get(self, key: bytes) -> bytes | None:
        """A body that was put less than `days` ago."""
        row = self._one("SELECT body FROM results WHERE key = ? AND at > ?", (key, time.time() - self._days * DAY))
        try:
            return zlib.decompress(row[0]) if row else None
        except zlib.error:
            return None  # damaged: asked for anew

    def put(self, key: bytes, body: bytes) -> None:
        """Keep a body, unless it is longer than MAX_BODY_BYTES."""
        if len(body) > MAX_BODY_BYTES:
            return
        packed = zlib.compress(body, 1)
        with self._lock:
            if self._connection is None:
                return
            try:
                if not self._connection.in_transaction:
                    self._connection.execute("BEGIN")
                self._connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", (key, time.time(), packed))
                self._waiting += 1
                if self._waiting >= FLUSH_EVERY:
                    self._flush()
            except sqlite3.Error:
                self._give_up_transaction()

    def fact(self, key: bytes, *, younger: float) -> str | None:
        """A short text about an endpoint, kept for less than `younger` seconds."""
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
                self._flush()
            except sqlite3.Error:
                self._give_up_transaction()

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                try:
                    self._flush()
                    self._connection.close()
                except sqlite3.Error:
                    pass
                self._connection = None

    def _one(self, sql: str, values: tuple) -> tuple | None:
        with self._lock:
            if self._connection is None:
                return None
            try:
                return self._connection.execute(sql, values).fetchone()
            except sqlite3.Error:
                return None

    def _flush(self) -> None:
        """One commit for many results: each by itself would cost more than the query it saves."""
        self._waiting = 0
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("COMMIT")

    def _give_up_transaction(self) -> None:
        self._waiting = 0
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            pass

    def _trim(self, limit_bytes: int) -> None:
        assert self._connection is not None
        self._connection.execute("DELETE FROM results WHERE at <= ?", (time.time() - self._days * DAY,))
        total = self._connection.execute("SELECT COALESCE(SUM(LENGTH(body)), 0) FROM results").fetchone()[0]
        if total > limit_bytes:
            self._connection.execute(
                "DELETE FROM results WHERE key IN (SELECT key FROM (SELECT key, SUM(LENGTH(body)) OVER "
                "(ORDER BY at DESC, key) AS upto FROM results) WHERE upto > ?)",
                (limit_bytes * 9 // 10,),
            )
            self._connection.execute("VACUUM")


class GraphResults:
    """The part of a cache that belongs to one state of one graph on one endpoint."""

    def __init__(self, cache: ResultCache, url: str, fingerprint: str) -> None:
        self._cache = cache
        self._of = hashlib.blake2b(f"{url}\n{fingerprint}\n".encode(), digest_size=16)

    def _key(self, query: str) -> bytes:
        digest = self._of.copy()
        digest.update(query.encode("utf-8"))
        return digest.digest()

    def get(self, query: str) -> bytes | None:
        return self._cache.get(self._key(query))

    def put(self, query: str, parts: Iterable[bytes]) -> None:
        self._cache.put(self._key(query), b"".join(parts))


def overheard(parts: Iterable[bytes], heard: list[bytes]) -> Iterator[bytes]:
    """Pass parts on and keep them in `heard`, as long as they may be worth keeping."""
    total = 0
    for part in parts:
        total += len(part)
        if total <= MAX_BODY_BYTES + 1:
            heard.append(part)
        yield part
