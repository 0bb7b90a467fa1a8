"""Finds the files to read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa.corpus.documents.limits import DEFAULT_LIMITS, Limits
from kgqa.corpus.items import digest
from kgqa.errors import DocumentError

READER_VERSION = "1"
"""Changes when the same file gives another text or other elements, so that files are read again."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read. `name`: its path in the corpus. `size`: in bytes."""

    name: str
    path: Path
    size: int

    def digest(self) -> str:
        """Return the hash of the file's content; equal to that of the document that is read from it.

        Raises:
            DocumentError: The file cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                return content_digest(hashlib.file_digest(file, "sha256").hexdigest())
        except OSError as error:
            raise DocumentError(f"it cannot be read: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that were found, by name, and the files that were left out, with the reason."""

    sources: tuple[Source, ...]
    skipped: tuple[tuple[str, str], ...]


def content_digest(sha256: str) -> str:
    """Return the digest of a document whose file has a SHA-256 hash."""
    return digest(READER_VERSION, sha256, length=32)


def find_sources(
    paths: Sequence[str | Path],
    *,
    ignore: Iterable[str] = (),
    hidden: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Sources:
    """Find the files to read in folders and files."""
    sources = []
    for path in map(Path, paths):
        root = path.resolve()
        files = [root] if root.is_file() else sorted(each for each in root.rglob("*") if each.is_file())
        sources += [Source(os.fspath(each.relative_to(root.parent)), each, each.stat().st_size) for each in files]
    return Sources(tuple(sorted(sources, key=lambda each: each.name)), ())
