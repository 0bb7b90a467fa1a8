"""What a corpus was read from: files, the documents in them, and what could not be read or extracted.

The ledger is a part of the corpus's database. It says what a build may skip; the corpus itself follows from the edits.
A build writes an edit first and the ledger afterwards, so after a crash the ledger never claims what is not there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import Literal

ProblemKind = Literal["skipped", "failed", "waiting", "malformed", "rejected"]
_TABLES = """
CREATE TABLE IF NOT EXISTS ledger_files (
    name TEXT PRIMARY KEY, root TEXT NOT NULL, digest TEXT NOT NULL, key TEXT NOT NULL, removed INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ledger_documents (
    iri TEXT PRIMARY KEY, source TEXT NOT NULL, file TEXT NOT NULL, digest TEXT NOT NULL, key TEXT NOT NULL,
    edit TEXT NOT NULL, chunks INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ledger_documents_file ON ledger_documents (file);
CREATE TABLE IF NOT EXISTS ledger_problems (
    kind TEXT NOT NULL, file TEXT NOT NULL, place TEXT NOT NULL, reason TEXT NOT NULL, chunk TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS ledger_problems_file ON ledger_problems (file);
"""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file that was read.

    Attributes:
        name: Its name in the corpus.
        root: The folder or file that was given to the build, as an absolute path; or another origin.
        digest: Hash of its content.
        key: Hash of what its results depend on beside the content: the size of chunks and the extractor.
        removed: Whether the user removed it from the corpus; it is then left out until it is added again.
    """

    name: str
    root: str
    digest: str
    key: str
    removed: bool = False


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document that the corpus contains, the edit that added it, and the number of its chunks."""

    iri: str
    source: str
    file: str
    digest: str
    key: str
    edit: str
    chunks: int


@dataclass(frozen=True, slots=True)
class Problem:
    """What was left out, and why.

    `kind`: a file that was skipped, a chunk whose extraction failed or was not reached (waiting), a triple that is
    malformed, or a statement of a model that was rejected. `place`: where it is. `chunk`: the IRI of the chunk, or "".
    """

    kind: ProblemKind
    file: str
    place: str
    reason: str
    chunk: str = ""


class Ledger:
    """The ledger in an open database. Not thread-safe.

    Args:
        connection: The database.
        writable: Whether missing tables are created.
    """

    def __init__(self, connection: sqlite3.Connection, *, writable: bool = False) -> None:
        self._connection = connection
        if writable:
            connection.executescript(_TABLES)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all changes in the block, or none."""
        with self._connection:
            yield

    # ---- files ----

    def files(self) -> dict[str, FileEntry]:
        """Return all files by name."""
        rows = self._connection.execute("SELECT name, root, digest, key, removed FROM ledger_files ORDER BY name")
        return {row[0]: FileEntry(*row[:4], bool(row[4])) for row in rows}

    def put_files(self, entries: Iterable[FileEntry]) -> None:
        """Write files; an entry replaces that of the same name."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO ledger_files VALUES (?, ?, ?, ?, ?)", map(astuple, entries)
        )

    def forget_files(self, names: Iterable[str]) -> None:
        """Delete files, and what was left out of them."""
        rows = [(name,) for name in names]
        self._connection.executemany("DELETE FROM ledger_files WHERE name = ?", rows)
        self._connection.executemany("DELETE FROM ledger_problems WHERE file = ?", rows)

    # ---- documents ----

    def documents(self, file: str | None = None) -> list[DocumentEntry]:
        """Return the documents of a file, or all, in the order of their sources."""
        where, values = ("", ()) if file is None else (" WHERE file = ?", (file,))
        query = f"SELECT iri, source, file, digest, key, edit, chunks FROM ledger_documents{where} ORDER BY source"
        return [DocumentEntry(*row) for row in self._connection.execute(query, values)]

    def document(self, iri: str) -> DocumentEntry | None:
        """Return a document by its IRI."""
        query = "SELECT iri, source, file, digest, key, edit, chunks FROM ledger_documents WHERE iri = ?"
        row = self._connection.execute(query, (iri,)).fetchone()
        return None if row is None else DocumentEntry(*row)

    def count_documents(self) -> int:
        """Return the number of documents."""
        return int(self._connection.execute("SELECT count(*) FROM ledger_documents").fetchone()[0])

    def put_documents(self, entries: Iterable[DocumentEntry]) -> None:
        """Write documents; an entry replaces that of the same IRI."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO ledger_documents VALUES (?, ?, ?, ?, ?, ?, ?)", map(astuple, entries)
        )

    def forget_documents(self, iris: Iterable[str]) -> None:
        """Delete documents."""
        self._connection.executemany("DELETE FROM ledger_documents WHERE iri = ?", [(iri,) for iri in iris])

    # ---- problems ----

    def problems(self, *kinds: ProblemKind, limit: int = -1) -> list[Problem]:
        """Return the first problems of some kinds, or of all, by file and place."""
        where = f" WHERE kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        query = f"SELECT kind, file, place, reason, chunk FROM ledger_problems{where} ORDER BY file, rowid LIMIT ?"
        return [Problem(*row) for row in self._connection.execute(query, (*kinds, limit))]

    def count_problems(self) -> dict[str, int]:
        """Return the number of problems of each kind."""
        return dict(self._connection.execute("SELECT kind, count(*) FROM ledger_problems GROUP BY kind"))

    def files_to_retry(self) -> set[str]:
        """Return the files with chunks that failed or wait."""
        query = "SELECT DISTINCT file FROM ledger_problems WHERE kind IN ('failed', 'waiting')"
        return {row[0] for row in self._connection.execute(query)}

    def put_problems(self, file: str, problems: Iterable[Problem]) -> None:
        """Replace all problems of a file."""
        self._connection.execute("DELETE FROM ledger_problems WHERE file = ?", (file,))
        self._connection.executemany("INSERT INTO ledger_problems VALUES (?, ?, ?, ?, ?)", map(astuple, problems))
