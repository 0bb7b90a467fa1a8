"""Reads the records of a corpus from its database."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator

from kgqa.corpus.items import digest
from kgqa.corpus.records import (
    ChunkRecord,
    CommunityRecord,
    DocumentRecord,
    EntityRecord,
    HyperedgeRecord,
    StatementRecord,
)
from kgqa.corpus.snapshot import Snapshot, snapshot_of
from kgqa.corpus.storage.database import Database


class DatabaseReader:
    """The records of a corpus after one of its edits; a `CorpusReader`. Thread-safe.

    Records of entities, statements and hyperedges are derived when they are first asked for, and kept in memory.

    Args:
        database: The database.
        seq: The number of the edit; None for the last one.
    """

    def __init__(self, database: Database, seq: int | None = None) -> None:
        self._database = database
        self.seq = database.seq if seq is None else seq
        self._lock = threading.Lock()
        self._texts: Snapshot | None = None
        self._others: Snapshot | None = None

    def documents(self) -> Iterator[DocumentRecord]:
        return iter(self._with_texts().documents)

    def chunks(self) -> Iterator[ChunkRecord]:
        return iter(self._with_texts().chunks)

    def entities(self) -> Iterator[EntityRecord]:
        return iter(self._with_others().entities)

    def statements(self) -> Iterator[StatementRecord]:
        return iter(self._with_others().statements)

    def hyperedges(self) -> Iterator[HyperedgeRecord]:
        return iter(self._with_others().hyperedges)

    def communities(self) -> Iterator[CommunityRecord]:
        return self._database.communities.all()

    def document(self, iri: str) -> DocumentRecord | None:
        """Return the record of one document; None if the corpus does not have it."""
        return next((each for each in self._about(iri).documents if each.iri == iri), None)

    def chunk(self, iri: str) -> ChunkRecord | None:
        """Return the record of one chunk; None if the corpus does not have it."""
        return next((each for each in self._about(iri).chunks if each.iri == iri), None)

    def hyperedge(self, iri: str) -> HyperedgeRecord | None:
        """Return the record of one hyperedge; None if the corpus does not have it."""
        records = self._with_others().hyperedges
        at = bisect_left(records, iri, key=lambda record: record.iri)
        return records[at] if at < len(records) and records[at].iri == iri else None

    def text(self, document: str) -> str | None:
        """Return the text of a document; None if the corpus does not have it."""
        record = self.document(document)
        return self._database.text(document, record.digest) if record else None

    @property
    def fingerprint(self) -> str:
        """A hash of the records."""
        communities = [(each.iri, each.members_hash, each.summary) for each in self.communities()]
        return digest(*self._database.heads(self.seq), *(part for each in communities for part in each), length=32)

    def _about(self, iri: str) -> Snapshot:
        return snapshot_of(self._database.live.concerning([iri], self.seq).values())

    def _with_texts(self) -> Snapshot:
        with self._lock:
            if self._texts is None:
                self._texts = self._database.snapshots.texts(self.seq)
            return self._texts

    def _with_others(self) -> Snapshot:
        with self._lock:
            if self._others is None:
                self._others = self._database.snapshots.others(self.seq)
            return self._others
