"""What a corpus was read from: files, the documents in them, and what could not be read or extracted.

The ledger is a part of the corpus's database. It says what a build may skip; the corpus itself follows from the edits.
A build writes an edit first and the ledger afterwards, so after a crash the ledger never claims what is not there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar

from kgqa.corpus.storage.database import Database
from kgqa.errors import CorpusError

ProblemKind = Literal["skipped", "failed", "waiting", "malformed", "rejected"]
REMOVED = "removed"
"""The edit of a document that the user removed from its file; it is left out until it is added again."""
_FOLLOWED = "ledger"
"""The key under which the database keeps up to which edit the ledger agrees with the log."""
_TABLES = (
    """CREATE TABLE IF NOT EXISTS ledger_files (
        name TEXT PRIMARY KEY, root TEXT NOT NULL, digest TEXT NOT NULL, key TEXT NOT NULL, removed INTEGER NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS ledger_documents (
        iri TEXT PRIMARY KEY, source TEXT NOT NULL, file TEXT NOT NULL, digest TEXT NOT NULL, key TEXT NOT NULL,
        edit TEXT NOT NULL, chunks INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS ledger_documents_file ON ledger_documents (file)",
    """CREATE TABLE IF NOT EXISTS ledger_problems (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, file TEXT NOT NULL, place TEXT NOT NULL, reason TEXT NOT NULL,
        document TEXT NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS ledger_problems_file ON ledger_problems (file)",
)
_DOCUMENT = "iri, source, file, digest, key, edit, chunks"


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
    malformed, or a statement of a model that was rejected. `place`: where it is. `document`: the IRI of the document,
    or "".
    """

    kind: ProblemKind
    file: str
    place: str
    reason: str
    document: str = ""


Entry = TypeVar("Entry", FileEntry, DocumentEntry, Problem)


def _entry(kind: type[Entry], row: Iterable[Any]) -> Entry:
    """Return an entry from its values. Raises CorpusError if one has a wrong type; the file may be another person's."""
    for field, value in zip(fields(kind), values := tuple(row)):
        if not isinstance(value, int if field.type in ("int", "bool") else str):
            raise CorpusError(
                f"The corpus is damaged: {field.name!r} of a file or document has a wrong type.",
                "Restore corpus.sqlite from a copy, or build the corpus again.",
            )
    return kind(*values)


class Ledger:
    """Reads and writes the ledger. Changes are stored at once, or with the transaction that is open.

    Args:
        database: The database of the corpus.
        writable: Whether to create the tables of the ledger, if they are missing.
    """

    def __init__(self, database: Database, *, writable: bool = False) -> None:
        self._database = database
        if writable:
            with database.transaction() as run:
                for table in _TABLES:
                    run.execute(table)

    # ---- files ----

    def files(self) -> dict[str, FileEntry]:
        """Return all files by name."""
        with self._database.reading() as run:
            rows = run.execute("SELECT name, root, digest, key, removed FROM ledger_files ORDER BY name")
            return {row[0]: _entry(FileEntry, row) for row in rows}

    def put_file(self, entry: FileEntry) -> None:
        """Write a file in place of the file of the same name."""
        with self._database.transaction() as run:
            run.execute("INSERT OR REPLACE INTO ledger_files VALUES (?, ?, ?, ?, ?)", _row(entry))

    def forget_file(self, name: str) -> None:
        """Delete a file, and what was left out of it."""
        with self._database.transaction() as run:
            run.execute("DELETE FROM ledger_files WHERE name = ?", (name,))
            run.execute("DELETE FROM ledger_problems WHERE file = ?", (name,))

    # ---- documents ----

    def documents(self, file: str | None = None) -> dict[str, DocumentEntry]:
        """Return the documents of a file, or all, by IRI, in the order of their sources."""
        where, values = ("", ()) if file is None else (" WHERE file = ?", (file,))
        query = f"SELECT {_DOCUMENT} FROM ledger_documents{where} ORDER BY source"
        with self._database.reading() as run:
            return {row[0]: _entry(DocumentEntry, row) for row in run.execute(query, values)}

    def document(self, iri: str) -> DocumentEntry | None:
        """Return a document by its IRI."""
        with self._database.reading() as run:
            row = run.execute(f"SELECT {_DOCUMENT} FROM ledger_documents WHERE iri = ?", (iri,)).fetchone()
            return None if row is None else _entry(DocumentEntry, row)

    def files_with_removed(self) -> set[str]:
        """Return the files with documents that the user removed."""
        with self._database.reading() as run:
            rows = run.execute("SELECT DISTINCT file FROM ledger_documents WHERE edit = ?", (REMOVED,))
            return {str(row[0]) for row in rows}

    def put_documents(self, entries: Iterable[DocumentEntry]) -> None:
        """Write documents; an entry replaces that of the same IRI."""
        with self._database.transaction() as run:
            run.executemany("INSERT OR REPLACE INTO ledger_documents VALUES (?, ?, ?, ?, ?, ?, ?)", map(_row, entries))

    def set_edit(self, before: str, edit: str) -> None:
        """Replace the edit of all documents that have the edit `before`."""
        with self._database.transaction() as run:
            run.execute("UPDATE ledger_documents SET edit = ? WHERE edit = ?", (edit, before))

    def forget_documents(self, iris: Iterable[str]) -> None:
        """Delete documents."""
        with self._database.transaction() as run:
            run.executemany("DELETE FROM ledger_documents WHERE iri = ?", [(iri,) for iri in iris])

    # ---- edits of others ----

    def follow(self) -> None:
        """Note what edits have done that no build made, such as an undo.

        A document that they took out of the corpus counts as removed by the user, one that they brought back does not.
        """
        database = self._database
        done, last = int(database.build.state(_FOLLOWED) or 0), database.seq
        touched = {each.addition.document for each in database.live.touched(done, last)} if done < last else set()
        with database.transaction():
            files = set()
            for entry in filter(None, map(self.document, sorted(touched))):
                edits = database.edits_of_document(entry.iri)
                if bool(edits) == (entry.edit == REMOVED):
                    self.put_documents([replace(entry, edit=edits[-1] if edits else REMOVED)])
                    files.add(entry.file)
            known = self.files() if files else {}
            for name in sorted(files & known.keys()):
                removed = all(each.edit == REMOVED for each in self.documents(name).values())
                self.put_file(replace(known[name], removed=removed))
            self.mark_followed()

    def mark_followed(self) -> None:
        """Note that the ledger agrees with all edits."""
        self._database.build.put_state(_FOLLOWED, str(self._database.seq))

    # ---- problems ----

    def problems(self, *kinds: ProblemKind, limit: int = -1) -> list[Problem]:
        """Return the first problems of some kinds, or of all, by file."""
        where = f" WHERE kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        query = f"SELECT kind, file, place, reason, document FROM ledger_problems{where} ORDER BY file, id LIMIT ?"
        with self._database.reading() as run:
            return [_entry(Problem, row) for row in run.execute(query, (*kinds, limit))]

    def count_problems(self) -> dict[str, int]:
        """Return the number of problems of each kind."""
        with self._database.reading() as run:
            return dict(run.execute("SELECT kind, count(*) FROM ledger_problems GROUP BY kind"))

    def files_to_retry(self) -> set[str]:
        """Return the files with chunks that failed or wait."""
        with self._database.reading() as run:
            rows = run.execute("SELECT DISTINCT file FROM ledger_problems WHERE kind IN ('failed', 'waiting')")
            return {str(row[0]) for row in rows}

    def put_problems(self, file: str, problems: Iterable[Problem], *, kept: Collection[str] = ()) -> None:
        """Replace the problems of a file, except those of the documents `kept` (IRIs)."""
        with self._database.transaction() as run:
            rows = run.execute("SELECT id, document FROM ledger_problems WHERE file = ?", (file,)).fetchall()
            old = [(number,) for number, document in rows if document not in kept]
            run.executemany("DELETE FROM ledger_problems WHERE id = ?", old)
            run.executemany(
                "INSERT INTO ledger_problems (kind, file, place, reason, document) VALUES (?, ?, ?, ?, ?)",
                map(_row, problems),
            )


def _row(entry: FileEntry | DocumentEntry | Problem) -> tuple[object, ...]:
    """Return the fields of an entry; `dataclasses.astuple` would copy each of them."""
    return tuple(getattr(entry, field.name) for field in fields(entry))
