"""Fingerprints of graphs on servers, and the cache of complete results that is kept under them.

A fingerprint is computed from the number of triples, in total and for some predicates.

The same data has the same fingerprint on all servers of the same kind. A change is missed if all counts stay equal. A
change to a large graph may be missed for up to a day, because counts that took long are saved and used for a day. If it
takes too long to count all triples (billions), the fingerprint is computed only from the counts of triples with some
predicates.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kgqa.errors import PartialResult, QueryRejected, StoreTimeout
from kgqa.graph.query.text import render
from kgqa.graph.store import Rows, single_count
from kgqa.model import Entity
from kgqa.net.threads import question_end
from kgqa.schema import BUNDLED, bundled_schema
from kgqa.storage.cache import warn_unreadable

MAX_AGE = 7 * 86_400.0
"""Seconds after which a result expires."""
MAX_BODY_BYTES = 64 << 20
"""The longest body that is stored."""
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

    def put(self, key: bytes, body: bytes | bytearray) -> None:
        """Store a body, unless it is longer than MAX_BODY_BYTES or a tenth of `limit_bytes`, or the file is busy."""
        if len(body) > min(MAX_BODY_BYTES, self._limit // 10):
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


SLOW_SECONDS = 2.0
COUNT_SECONDS = 40.0
ALL_COUNTS_SECONDS = 90.0
COUNTS_MAX_AGE = 86_400.0
"""Seconds for which saved counts are used."""
QUESTION_SHARE = 0.25
"""Counting takes at most this share of the time that a question has left."""
RETRY_FACTOR = 1.5
"""A query or count that did not end in time is repeated only with at least this many times as much time."""
MAX_SCANNED_TRIPLES = 20_000_000
"""Size, in triples, of the largest graph on a server for which kgqa runs queries that read every triple.

On 5 million triples, Virtuoso takes 10 s for the slowest of these queries, and it stops queries after 60 s. Every
server counts up to this number in much less than COUNT_SECONDS."""
AT_LEAST = "at least"
"""The key of a count that ends at MAX_SCANNED_TRIPLES; made only if all triples could not be counted."""
Counts = dict[str, int | None]


class EndpointFingerprint:
    """The fingerprint of some graphs of an endpoint, computed when first needed. Thread-safe.

    Args:
        select: runs a query, without the cache of results.
        cache, key: where counts that took long are stored; None for nowhere.
    """

    def __init__(
        self,
        graphs: Sequence[str],
        *,
        select: Callable[..., Rows],
        cache: ResultCache | None,
        key: bytes,
    ) -> None:
        self._graphs = graphs
        self._select, self._cache, self._key = select, cache, key
        self._lock = threading.Lock()
        self._counts: Counts | None = None
        self._incomplete: Counts = {}
        """Counts in the time of a question that was too short for all of them."""
        self._tried = 0.0
        """The seconds in which the counts could not be completed."""

    @property
    def is_large(self) -> bool:
        """Whether there are more than MAX_SCANNED_TRIPLES; True if the server was too busy to tell."""
        counts = self.counts() or self._incomplete
        triples = counts.get("triples")
        if triples is None:
            return counts.get(AT_LEAST) in (None, MAX_SCANNED_TRIPLES)
        return triples > MAX_SCANNED_TRIPLES

    def text(self, *, wait: float = ALL_COUNTS_SECONDS) -> str:
        """Return the fingerprint: `remote-` and 25 hex digits. Empty if it could not be computed in time.

        Args:
            wait: seconds to wait for another thread that is counting.

        Raises:
            StoreUnavailable: the server cannot be reached.
        """
        counts = {name: count for name, count in self.counts(wait=wait).items() if name != AT_LEAST}
        if not any(counts.values()):
            return ""
        facts = json.dumps([sorted(self._graphs), counts], sort_keys=True)
        return "remote-" + hashlib.sha256(facts.encode()).hexdigest()[:25]

    def counts(self, *, wait: float = ALL_COUNTS_SECONDS) -> Counts:
        """Return the number of triples, in total and by predicate; nothing if they could not be counted in time."""
        end, seconds = question_end.get(), ALL_COUNTS_SECONDS
        if end is not None:
            seconds = min(seconds, max(0.001, QUESTION_SHARE * (end - time.monotonic())))
        if self._counts is None and self._lock.acquire(timeout=min(wait, seconds)):
            try:
                if self._counts is None and seconds >= RETRY_FACTOR * self._tried:
                    saved = self._cache.get(self._key, max_age=COUNTS_MAX_AGE) if self._cache else None
                    self._counts = json.loads(saved) if saved else self._count_all(seconds)
                    self._tried = seconds
            finally:
                self._lock.release()
        return self._counts or {}

    def _count_all(self, seconds: float) -> Counts | None:
        """Count everything; return None if there is less time than a count may take, and it is not enough."""
        started = time.monotonic()
        at = started + seconds
        # half of the time is left to count up to a number
        counts: Counts = {"triples": self._count(at - seconds / 2, "count_triples")}
        if counts["triples"] is None:
            counts[AT_LEAST] = self._count(at, "count_up_to", most=MAX_SCANNED_TRIPLES)
        # the predicates by which the bundled schemas are detected
        for predicate in dict.fromkeys(p for name in BUNDLED for p in bundled_schema(name).detect):
            counts[predicate] = self._count(at, "count_predicate", predicate=Entity(predicate))
        if None in counts.values() and seconds < COUNT_SECONDS:
            self._incomplete = counts
            return None
        # if not even some triples could be counted, the server was busy: do not save such counts for a day
        is_slow = time.monotonic() - started > SLOW_SECONDS
        if self._cache and is_slow and (counts["triples"] or counts.get(AT_LEAST)):
            self._cache.put(self._key, json.dumps(counts).encode())
        return counts

    def _count(self, at: float, template: str, **values: Any) -> int | None:
        seconds = min(COUNT_SECONDS, at - time.monotonic())
        try:
            query = render(template, view=tuple(map(Entity, self._graphs)), **values)
            return single_count(self._select(query, timeout=seconds, fresh=True)) if seconds > 0 else None
        except (StoreTimeout, PartialResult, QueryRejected):
            return None
