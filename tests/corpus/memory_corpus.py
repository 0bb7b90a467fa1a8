"""A corpus in memory, for tests of what reads a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kgqa.corpus.items import CHUNK, ENTITY, RELATION, STATEMENT, Party, digest, document_iri, name_iri
from kgqa.corpus.records import (
    ChunkRecord,
    CommunityRecord,
    DocumentRecord,
    EntityRecord,
    HyperedgeRecord,
    Place,
    StatementRecord,
)
from kgqa.model import Entity


@dataclass
class MemoryCorpus:
    """A `CorpusReader` over lists of records, which may be given in any order."""

    seq: int = 1
    document_records: Iterable[DocumentRecord] = ()
    chunk_records: Iterable[ChunkRecord] = ()
    entity_records: Iterable[EntityRecord] = ()
    statement_records: Iterable[StatementRecord] = ()
    hyperedge_records: Iterable[HyperedgeRecord] = ()
    community_records: Iterable[CommunityRecord] = ()

    def documents(self) -> Iterator[DocumentRecord]:
        return _sorted(self.document_records)

    def chunks(self) -> Iterator[ChunkRecord]:
        return _sorted(self.chunk_records)

    def entities(self) -> Iterator[EntityRecord]:
        return _sorted(self.entity_records)

    def statements(self) -> Iterator[StatementRecord]:
        return _sorted(self.statement_records)

    def hyperedges(self) -> Iterator[HyperedgeRecord]:
        return _sorted(self.hyperedge_records)

    def communities(self) -> Iterator[CommunityRecord]:
        return _sorted(self.community_records)


def _sorted(records):
    return iter(sorted(records, key=lambda each: each.iri))


def corpus_of(passages, *, seq=1) -> MemoryCorpus:
    """Build a corpus of one chunk a document.

    Args:
        passages: Tuples (title, text) or (title, text, triples of names). The document of a passage is its title, a line
            break and its text; the chunk is all of it. A triple stands at its subject's first place in the text, or at
            the start.
        seq: The number of the last edit.
    """
    documents, chunks, entities, statements = [], [], {}, {}
    for title, text, *more in passages:
        iri, whole = document_iri(f"{title}-{digest(text)}"), f"{title}\n{text}"
        documents.append(DocumentRecord(iri, title, title, "text/plain", digest(whole)))
        chunk = CHUNK + digest(iri, "0", whole)
        chunks.append(ChunkRecord(chunk, iri, 0, len(whole), whole))
        for triple in more[0] if more else ():
            subject, relation, value = triple
            parts = [name_iri(ENTITY, subject), name_iri(RELATION, relation), name_iri(ENTITY, value)]
            for name, entity in ((subject, parts[0]), (value, parts[2])):
                known = entities.setdefault(entity, EntityRecord(entity, name, members=(Party(name).iri,)))
                at = max(whole.casefold().find(name.casefold()), 0)
                place = Place(iri, chunk, at, at + len(name))
                if place not in known.places:
                    entities[entity] = replace(known, places=(*known.places, place))
            statement = STATEMENT + digest(*parts)
            at = max(whole.casefold().find(subject.casefold()), 0)
            record = statements.get(statement) or StatementRecord(
                statement, parts[0], parts[1], relation, Entity(parts[2]), f"{subject} {relation} {value}"
            )
            place = Place(iri, chunk, at, at + len(subject))
            statements[statement] = replace(record, places=(*record.places, place))
    return MemoryCorpus(seq, documents, chunks, list(entities.values()), list(statements.values()))
