"""The database of a corpus: the log of edits, the texts of documents, and what the build remembers."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kgqa.corpus.edit_log import Edit, EditSource, Removal, heads, ordered
from kgqa.corpus.items import Addition, DocumentItem, Item
from kgqa.corpus.storage.build_tables import BuildTables
from kgqa.corpus.storage.communities import CommunityTable
from kgqa.corpus.storage.connection import Connections
from kgqa.corpus.storage.dependents import dependent_edits
from kgqa.corpus.storage.live_additions import LiveAdditions
from kgqa.corpus.storage.log_writer import append_edit
from kgqa.corpus.storage.rows import (
    ADDITION_COLUMNS,
    ADDITION_TABLES,
    EDIT_COLUMNS,
    LIVE,
    AdditionReader,
    edit_of,
    item_of,
    look_up,
)
from kgqa.corpus.storage.snapshots import Snapshots

MOST_TEXTS = 10
"""Edits that add more are made from documents, and dispute nothing."""


class Database:
    """The SQLite file of a corpus. Any number of readers, one writer; thread-safe.

    Args:
        path: The file `corpus.sqlite`. A writer creates it if it is missing.
        writable: Whether to write. The caller has made sure that nobody else does.

    Attributes:
        live: The live additions.
        snapshots: The records that follow from them.
        build: Replies of models, summaries of communities, single values.
        communities: The communities.

    Raises:
        CorpusError: The file is missing, damaged, or not a corpus.
    """

    def __init__(self, path: Path, writable: bool = False) -> None:
        self._connections = Connections(Path(path), writable=writable)
        self.path = Path(path)
        self.live = LiveAdditions(self._connections)
        self.snapshots = Snapshots(self.live)
        self.build = BuildTables(self._connections)
        self.communities = CommunityTable(self._connections)

    @property
    def seq(self) -> int:
        """The number of the last edit; 0 without any."""
        return int(self._value("SELECT COALESCE(MAX(seq), 0) FROM edits"))

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """Open a transaction: what is written inside of it is stored together, or after an exception not at all."""
        return self._connections.transaction()

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend the connection of this thread for reading."""
        return self._connections.reading()

    def edits(self, after: int = 0, until: int | None = None) -> Iterator[Edit]:
        """Yield the edits with numbers above `after` up to `until`, without their content."""
        query = f"SELECT {EDIT_COLUMNS} FROM edits WHERE seq > ? AND (?2 IS NULL OR seq <= ?2) ORDER BY seq"
        with self._connections.reading() as run:
            for row in run.execute(query, (after, until)):
                yield edit_of(row)

    def edit(self, id: str) -> Edit | None:
        """Return the edit with an id, without its content; None if there is none."""
        with self._connections.reading() as run:
            row = run.execute(f"SELECT {EDIT_COLUMNS} FROM edits WHERE id = ?", (id,)).fetchone()
            return edit_of(row) if row else None

    def edits_in_conflict(self, seq: int, reason: str) -> list[Edit]:
        """Return the edits up to a number that may be in conflict, and all undos, without their content.

        They remove an item that others remove, too, or are updates that add an item whose reason begins with `reason`.
        """
        query = f"""SELECT {EDIT_COLUMNS} FROM edits e WHERE seq <= :seq AND (kind = 'undo'
            OR seq IN (SELECT r.edit FROM (
                SELECT target, document, item FROM removals WHERE item != '' AND edit <= :seq
                GROUP BY target, document, item HAVING COUNT(DISTINCT edit) > 1) twice
                JOIN removals r ON (r.target, r.item, r.document) = (twice.target, twice.item, twice.document))
            OR kind = 'update' AND e.additions BETWEEN 1 AND {MOST_TEXTS} AND EXISTS (SELECT 1 FROM additions a
                WHERE a.id BETWEEN e.first AND e.first + e.additions - 1
                AND substr(a.reason, 1, length(:reason)) = :reason))
            ORDER BY seq"""
        with self._connections.reading() as run:
            return [edit_of(row) for row in run.execute(query, {"seq": seq, "reason": reason})]

    def sources_of(self, ids: Collection[str]) -> dict[str, tuple[EditSource, ...]]:
        """Return what edits rest on, by their ids."""
        query = f"SELECT {EDIT_COLUMNS} FROM edits WHERE id IN (??)"
        with self._connections.reading() as run:
            return {edit.id: edit.sources for edit in map(edit_of, look_up(run, query, list(ids)))}

    def heads(self, seq: int) -> tuple[str, ...]:
        """Return the ids of the last edits of the log up to a number; several after logs were merged."""
        return heads(self.edits(0, seq))

    def counts(self, edit: Edit) -> tuple[int, int]:
        """Return how many additions and removals an edit has."""
        return (
            self._value("SELECT additions FROM edits WHERE seq = ?", edit.seq),
            self._value("SELECT COUNT(*) FROM removals WHERE edit = ?", edit.seq),
        )

    def is_active(self, edit: Edit) -> bool:
        """Return whether an edit is not undone."""
        return bool(self._value("SELECT active FROM edits WHERE seq = ?", edit.seq))

    def dependents(self, edit: Edit) -> list[Edit]:
        """Return the active edits that build on an edit, directly or not, in the order of the log."""
        with self._connections.reading() as run:
            return dependent_edits(run, edit)

    def additions_of(self, edit: Edit) -> Iterator[Addition]:
        """Yield what an edit adds, in its order."""
        query = f"""SELECT {ADDITION_COLUMNS} FROM {ADDITION_TABLES} JOIN edits e ON e.seq = a.edit
            WHERE e.seq = ? AND a.id BETWEEN e.first AND e.first + e.additions - 1 ORDER BY a.id"""
        with self._connections.reading() as run:
            yield from AdditionReader().read(run.execute(query, (edit.seq,)))

    def additions_of_document(self, edit: str, document: str) -> Iterator[Addition]:
        """Yield what an edit (its id) read from a document (its IRI), live or not."""
        query = f"""SELECT {ADDITION_COLUMNS} FROM {ADDITION_TABLES} JOIN edits e ON e.seq = a.edit
            WHERE d.text = ? AND e.id = ? ORDER BY a.id"""
        with self._connections.reading() as run:
            yield from AdditionReader().read(run.execute(query, (document, edit)))

    def removals_of(self, edit: Edit) -> tuple[Removal, ...]:
        """Return what an edit removes."""
        with self._connections.reading() as run:
            rows = run.execute("SELECT target, document, item FROM removals WHERE edit = ? ORDER BY id", (edit.seq,))
            return tuple(Removal(*map(str, row)) for row in rows)

    def whole(self, edit: Edit) -> Edit:
        """Return an edit with its content."""
        return replace(edit, adds=tuple(self.additions_of(edit)), removes=self.removals_of(edit))

    def append(
        self,
        edit: Edit,
        additions: Iterable[Addition] = (),
        removals: Sequence[Removal] = (),
        *,
        texts: Mapping[str, str] | None = None,
    ) -> Edit:
        """Append an edit to the log and return it with its id and number, without its content.

        Args:
            edit: the edit; its id, number, hashes and content are filled in.
            additions: what it adds; an iterator of any length is written in parts, in one transaction.
            removals: what it removes.
            texts: the texts of the documents that it adds, by the IRIs of the documents.

        Raises:
            CorpusError: the target of an undo is missing, or the disk is full.
        """
        texts = texts or {}
        with self._connections.transaction() as run:
            documents: dict[str, str] = {}
            done = append_edit(run, edit, _noting(additions, documents), removals)
            for document, text in texts.items():
                if document in documents:
                    self.put_text(document, documents[document], text)
            return done

    def append_foreign(self, edits: Iterable[Edit]) -> int:
        """Append the edits of another log that are missing here, with their content; return how many.

        Raises:
            CorpusError: an edit is not what its id says.
        """
        with self._connections.transaction() as run:
            missing = [edit for edit in ordered(edits) if self.edit(edit.id) is None]
            for edit in missing:
                append_edit(run, edit, edit.adds, edit.removes)
            return len(missing)

    def put_text(self, document: str, version: str, text: str) -> None:
        """Store the text of a version of a document (`DocumentItem.digest`)."""
        key = hashlib.sha256(text.encode()).hexdigest()
        with self._connections.transaction() as run:
            run.execute("INSERT OR IGNORE INTO texts VALUES (?, ?)", (key, text))
            run.execute("INSERT OR REPLACE INTO versions VALUES (?, ?, ?)", (document, version, key))

    def text(self, document: str, version: str) -> str | None:
        """Return the text of a version of a document; None if it is not stored."""
        query = "SELECT t.text FROM versions v JOIN texts t ON t.digest = v.text WHERE v.document = ? AND v.digest = ?"
        found = self._value(query, document, version)
        return None if found is None else str(found)

    def edits_of_document(self, document: str) -> list[str]:
        """Return the ids of the edits that have live tags of a document, in the order of the log."""
        query = f"""SELECT e.id FROM edits e WHERE e.seq IN (
            SELECT a.edit FROM additions a JOIN words d ON d.id = a.document WHERE d.text = :document AND {LIVE})
            ORDER BY e.seq"""
        with self._connections.reading() as run:
            return [str(id) for (id,) in run.execute(query, {"document": document, "seq": self.seq})]

    def tags(self) -> Iterator[tuple[str, str, str, bool]]:
        """Yield edit, document and key of the item of each addition, and whether it is live."""
        query = f"""SELECT e.id, d.text, i.key, {LIVE} FROM additions a JOIN edits e ON e.seq = a.edit
            JOIN items i ON i.id = a.item JOIN words d ON d.id = a.document ORDER BY a.id"""
        with self._connections.reading() as run:
            for edit, document, item, live in run.execute(query, {"seq": self.seq}):
                yield edit, document, item, bool(live)

    def item(self, key: str) -> Item | None:
        """Return the item with a key; None if it was never added."""
        with self._connections.reading() as run:
            row = run.execute("SELECT kind, body FROM items WHERE key = ?", (key,)).fetchone()
            return item_of(*row) if row else None

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield the stored texts, each after its hash."""
        with self._connections.reading() as run:
            for digest, text in run.execute("SELECT digest, text FROM texts"):
                yield str(digest), str(text)

    def hash_of_table(self, name: str) -> str:
        """Return a hash of the rows of a table. Two databases with the same edits have the same rows in most tables."""
        found = hashlib.sha256()
        with self._connections.reading() as run:
            for row in run.execute(f"SELECT * FROM {name} ORDER BY 1, 2"):
                found.update(repr(row).encode("utf-8", "surrogatepass"))
        return found.hexdigest()

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield the key of each item that was ever added, and the item."""
        with self._connections.reading() as run:
            for key, kind, body in run.execute("SELECT key, kind, body FROM items ORDER BY id"):
                yield str(key), item_of(kind, body)

    def close(self) -> None:
        """Close the file."""
        self._connections.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _value(self, query: str, *parameters: Any) -> Any:
        with self._connections.reading() as run:
            row = run.execute(query, parameters).fetchone()
            return row[0] if row else None


def _noting(additions: Iterable[Addition], documents: dict[str, str]) -> Iterator[Addition]:
    """Yield additions, and note the versions of the documents among them."""
    for each in additions:
        if isinstance(each.item, DocumentItem):
            documents[each.item.document] = each.item.digest
        yield each
