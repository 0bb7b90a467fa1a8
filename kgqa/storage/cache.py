"""The cache on disk for data that can be computed again: tables of a graph, models, embeddings, the demo graph.

An entry is a file or folder KIND/NAME, such as `graphs/<fingerprint>` or `models/<key>`. When the cache exceeds its
size limit, the least recently used entries are removed first.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from kgqa.errors import SettingsError
from kgqa.storage.atomic_files import replace_file
from kgqa.text.words import clean

DEFAULT_LIMIT_BYTES = 10 << 30
KINDS = ("graphs", "models", "embeddings", "results", "runs", "demo")
KEPT = ("runs",)
"""Kinds that are never removed, because records of the user's runs cannot be computed again."""
CLEARED = tuple(kind for kind in KINDS if kind not in KEPT)
_UNREADABLE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN)
_warned: set[Path] = set()


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One entry of the cache. `used`: time of its last use, in seconds since 1970."""

    kind: str
    path: Path
    bytes: int
    used: float

    @property
    def name(self) -> str:
        """The entry's name among those of its kind."""
        return self.path.name


class Cache:
    """A cache folder. kgqa also works without a writable cache folder, but more slowly."""

    _used_now: ClassVar[set[Path]] = set()  # entries used by this process; shared by all `Cache` objects

    def __init__(self, folder: Path, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.folder = Path(folder)
        self.limit_bytes = limit_bytes

    @classmethod
    def default(cls) -> Cache:
        """Return the user's cache, in the folder given by KGQA_CACHE_FOLDER or in the platform's cache folder."""
        given = os.environ.get("KGQA_CACHE_FOLDER")
        if given:
            return cls(Path(given))
        from platformdirs import user_cache_dir

        return cls(Path(user_cache_dir("kgqa", appauthor=False)))

    def entry(self, kind: str, name: str) -> Path:
        """Return the path of an entry, which need not exist, and mark the entry as used now."""
        if kind not in KINDS or name in ("", ".", "..") or "/" in name:
            raise ValueError(f"invalid cache entry: {kind}/{name}")
        path = self.folder / kind / name
        if path not in self._used_now:
            self._used_now.add(path)
            with suppress(OSError):
                os.utime(path)
        return path

    def write_text(self, path: Path, text: str) -> bool:
        """Write a file of an entry atomically. Returns False if the cache is not writable."""
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, [text.encode("utf-8")], sync=False)
            return True
        return False

    def entries(self) -> list[CacheEntry]:
        """List all entries, least recently used first."""
        found = []
        for kind in KINDS:
            folder = self.folder / kind
            for path in folder.iterdir() if folder.is_dir() else ():
                with suppress(OSError):
                    found.append(CacheEntry(kind, path, _size(path), path.stat().st_mtime))
        return sorted(found, key=lambda entry: entry.used)

    def clear(self, kinds: Sequence[str] = CLEARED) -> int:
        """Remove all entries of these kinds and return the bytes freed.

        Raises:
            SettingsError: an entry cannot be removed.
        """
        entries = [entry for entry in self.entries() if entry.kind in kinds]
        for entry in entries:
            try:
                _remove(entry.path)
            except OSError as error:
                raise SettingsError(f"The cache entry {entry.path} cannot be removed: {error.strerror}.") from error
        return sum(entry.bytes for entry in entries)

    def prune(self) -> int:
        """Remove the least recently used entries until the cache is within its limit; return the bytes freed.

        Entries used by this process, and entries that cannot be removed, are kept.
        """
        entries, freed = self.entries(), 0
        excess = sum(entry.bytes for entry in entries) - self.limit_bytes
        for entry in entries:
            if freed < excess and entry.kind not in KEPT and entry.path not in self._used_now:
                with suppress(OSError):
                    _remove(entry.path)
                    freed += entry.bytes
        return freed


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):  # another process has removed the entry
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _size(path: Path) -> int:
    total = 0
    for item in (path, *path.rglob("*")):
        with suppress(OSError):  # another process has removed the file
            total += item.stat().st_size if item.is_file() else 0
    return total


def warn_unreadable(file: Path, error: Exception) -> None:
    """Tell the user, once, that a file of the cache is not used because it cannot be read.

    Says nothing about a file that is missing, nor if another process is writing to it, the disk is full or the like.
    """
    if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF not in _UNREADABLE:
        return
    if file not in _warned and file.exists():
        _warned.add(file)
        wrong_form = isinstance(error, (LookupError, TypeError, AttributeError))
        reason = "it is damaged" if wrong_form else clean(getattr(error, "strerror", None) or str(error))
        logging.getLogger("kgqa").warning(
            "%s cannot be read: %s. Its data are computed again; remove it if this message returns.", file, reason
        )
