"""One place on disk for everything that can be derived again: tables of a graph, models, embeddings, the demo.

Entries are files or folders two levels deep (`graphs/<fingerprint>`, `models/<key>`). When the whole grows
over its limit the entries unused for longest go first.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kgqa.errors import SettingsError

DEFAULT_LIMIT_BYTES = 10 << 30
KINDS = ("graphs", "models", "embeddings", "results", "runs", "demo")
KEPT = ("runs",)
"""Which runs this user has begun: a few bytes each, and the one thing here that does not come back by itself."""
CLEARED = tuple(kind for kind in KINDS if kind not in KEPT)


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One entry: `used` is the time of its last use, in seconds since the epoch."""

    kind: str
    name: str
    bytes: int
    used: float


class Cache:
    """A folder of derived things. Where it cannot be written, everything still works, only slower."""

    _used_now: set[Path] = set()  # by anything in this process, whichever Cache it came through

    def __init__(self, folder: Path, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.folder = Path(folder)
        self.limit_bytes = limit_bytes

    @classmethod
    def default(cls) -> Cache:
        """The user's cache: KGQA_CACHE_FOLDER, or the platform's folder for caches."""
        given = os.environ.get("KGQA_CACHE_FOLDER")
        if given:
            return cls(Path(given))
        from platformdirs import user_cache_dir

        return cls(Path(user_cache_dir("kgqa", appauthor=False)))

    def entry(self, kind: str, name: str) -> Path:
        """The path of an entry, which may not exist; marks it as used now."""
        if kind not in KINDS or name in ("", ".", "..") or "/" in name:
            raise ValueError(f"no entry can be called {kind}/{name}")
        path = self.folder / kind / name
        if path not in self._used_now:
            self._used_now.add(path)
            try:
                os.utime(path)
            except OSError:
                pass
        return path

    def write_text(self, path: Path, text: str) -> bool:
        """Write a file of an entry, atomically. False where the cache cannot be written."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, path)
            return True
        except OSError:
            try:
                temporary.unlink()  # on a full disk half a file is in the way of others
            except OSError:
                pass
            return False

    def entries(self) -> list[CacheEntry]:
        """All entries, least recently used first."""
        found = []
        for kind in KINDS:
            folder = self.folder / kind
            for path in folder.iterdir() if folder.is_dir() else ():
                try:
                    found.append(CacheEntry(kind, path.name, _size(path), path.stat().st_mtime))
                except OSError:
                    continue
        return sorted(found, key=lambda entry: entry.used)

    def clear(self, kinds: Sequence[str] = CLEARED) -> int:
        """Remove all entries of these kinds; gives the bytes freed.

        Raises:
            SettingsError: an entry cannot be removed.
        """
        freed = 0
        for entry in self.entries():
            if entry.kind in kinds:
                try:
                    _remove(self.folder / entry.kind / entry.name)
                except FileNotFoundError:
                    pass  # another process was faster
                except OSError as error:
                    where = self.folder / entry.kind / entry.name
                    raise SettingsError(f"{where} cannot be removed: {error.strerror}.") from error
                freed += entry.bytes
        return freed

    def prune(self) -> int:
        """Remove what was unused for longest until the cache is within its limit; gives the bytes freed.
        What this process uses stays, and what cannot be removed; other processes may prune as well.
        """
        entries = self.entries()
        total, freed = sum(entry.bytes for entry in entries), 0
        for entry in entries:
            if total - freed <= self.limit_bytes:
                break
            if entry.kind not in KEPT and self.folder / entry.kind / entry.name not in self._used_now:
                try:
                    _remove(self.folder / entry.kind / entry.name)
                    freed += entry.bytes
                except OSError:
                    continue
        return freed

    def vectors(self, model: str, size: int) -> VectorCache:
        """The cache of embeddings of one model; `size` is the length of a vector."""
        return VectorCache(self.entry("embeddings", f"{model}.sqlite"), size)


class VectorCache:
    """Embeddings by text, as 16-bit floats in SQLite (an error below 1e-4 in a cosine). Thread-safe.

    Where the file cannot be written nothing is kept.
    """

    def __init__(self, file: Path, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(file, timeout=5, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=OFF")
            self._connection.execute("CREATE TABLE IF NOT EXISTS vectors (text TEXT PRIMARY KEY, vector BLOB)")
        except (OSError, sqlite3.Error):
            self._connection = None

    def get(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """The vectors that are known, float32 of shape (size,)."""
        found: dict[str, np.ndarray] = {}
        if self._connection is None:
            return found
        with self._lock:
            try:
                for start in range(0, len(texts), 500):
                    batch = list(texts[start : start + 500])
                    marks = ",".join("?" * len(batch))
                    rows = self._connection.execute(f"SELECT text, vector FROM vectors WHERE text IN ({marks})", batch)
                    for text, blob in rows:
                        vector = np.frombuffer(blob, dtype="<f2")
                        if vector.size == self._size:
                            found[text] = vector.astype(np.float32)
            except sqlite3.Error:
                pass
        return found

    def put(self, vectors: dict[str, np.ndarray]) -> None:
        if self._connection is None or not vectors:
            return
        rows = [(text, vector.astype("<f2").tobytes()) for text, vector in vectors.items()]
        with self._lock:
            try:
                with self._connection:
                    self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
            except sqlite3.Error:
                pass

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    total = 0
    for item in path.rglob("*"):
        try:
            total += item.stat().st_size if item.is_file() else 0
        except OSError:
            continue  # gone meanwhile
    return total


def age_words(seconds_since_epoch: float) -> str:
    """How long ago, for people."""
    seconds = max(0.0, time.time() - seconds_since_epoch)
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
