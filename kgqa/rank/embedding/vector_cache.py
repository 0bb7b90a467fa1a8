"""The cache on disk of the embeddings of one model."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from kgqa.storage.cache import warn_unreadable

Vector = np.ndarray[Any, np.dtype[np.float32]]
_AT_ONCE = 500


class VectorCache:
    """A cache of embeddings by text, in an SQLite file. Thread-safe.

    Embeddings are stored as 16-bit floats; this changes a cosine by less than 1e-4. If the file is not writable,
    nothing is cached; if it is damaged, the user is told so.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        # until the file is open, every query fails, so nothing is cached
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
        with self._file_errors():
            connection = sqlite3.connect(file, timeout=5, check_same_thread=False)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute("CREATE TABLE IF NOT EXISTS vectors (text TEXT PRIMARY KEY, vector BLOB)")
            self._connection = connection

    @property
    def size(self) -> int | None:
        """The length of the vectors; None if there is none."""
        row = None
        with self._lock, self._file_errors():
            row = self._connection.execute("SELECT length(vector) / 2 FROM vectors LIMIT 1").fetchone()
        return int(row[0]) if row else None

    def get(self, texts: Sequence[str], size: int) -> dict[str, Vector]:
        """Return the cached embeddings by text, each a float32 array of length `size`; others are left out."""
        found: dict[str, Vector] = {}
        with self._lock, self._file_errors():
            for start in range(0, len(texts), _AT_ONCE):
                batch = texts[start : start + _AT_ONCE]
                marks = ",".join("?" * len(batch))
                query = f"SELECT text, vector FROM vectors WHERE text IN ({marks}) AND length(vector) = ?"
                rows = self._connection.execute(query, [*batch, 2 * size])
                found |= {text: np.frombuffer(blob, dtype="<f2").astype(np.float32) for text, blob in rows}
        return found

    def put(self, vectors: dict[str, Vector]) -> None:
        """Store embeddings by text."""
        rows = [(text, vector.astype("<f2").tobytes()) for text, vector in vectors.items()]
        with self._lock, self._file_errors(), self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    @contextmanager
    def _file_errors(self) -> Iterator[None]:
        """Leave the block at an error of SQLite, and tell the user if the file is damaged."""
        try:
            yield
        except sqlite3.Error as error:
            warn_unreadable(self._file, error)
