"""The entries of the index: for each record of a corpus, the piece that is returned and the text that is searched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kgqa.corpus.rdf.vocabulary import PARTY
from kgqa.corpus.records import (
    ChunkRecord,
    CommunityRecord,
    CorpusReader,
    EntityRecord,
    HyperedgeRecord,
    Place,
    StatementRecord,
)
from kgqa.corpus.snapshot import role_iri
from kgqa.errors import CorpusError
from kgqa.model import Entity, Piece, PieceKind, Span, Triple

INDEXED: tuple[PieceKind, ...] = ("chunk", "entity", "statement", "hyperedge", "community")
"""The kinds of pieces that the index contains. Paths are not indexed; they are found from a question."""
MAX_SPANS = 20
"""Most places of one piece that the index keeps. An entity may stand in thousands of chunks."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One record in the index.

    `text` is what is searched. `head` is searched, too, with every part of the text: it is the title of a chunk's
    document, because a chunk from the middle of a document often does not say what it is about.
    """

    piece: Piece
    text: str
    head: str = ""


class Entries:
    """Reads the records of a corpus as entries of the index, in the order of their IRIs."""

    def __init__(self, reader: CorpusReader) -> None:
        self._reader = reader
        self._titles = {each.iri: each.title for each in reader.documents()}
        self._begins: dict[str, int] = {}
        """Where each chunk begins in its document. Filled while the chunks are read, which are the first kind."""

    def of(self, kind: PieceKind) -> Iterator[IndexEntry]:
        """Yield the entries of one kind.

        Raises:
            CorpusError: The records are not in the order of their IRIs.
        """
        before = ""
        for entry in self._read(kind):
            if entry.piece.iri <= before:
                raise CorpusError(f"The corpus is damaged: the record {entry.piece.iri} comes after {before}.")
            before = entry.piece.iri
            yield entry

    def _read(self, kind: PieceKind) -> Iterator[IndexEntry]:
        reader = self._reader
        if kind == "chunk":
            return map(self._chunk, reader.chunks())
        if not self._begins:
            self._begins = {each.iri: each.begin for each in reader.chunks()}
        read: dict[PieceKind, tuple[Callable[[], Iterable[object]], Callable[..., IndexEntry]]] = {
            "entity": (reader.entities, self._entity),
            "statement": (reader.statements, self._statement),
            "hyperedge": (reader.hyperedges, self._hyperedge),
            "community": (reader.communities, self._community),
        }
        records, entry = read[kind]
        return map(entry, records())

    def _chunk(self, record: ChunkRecord) -> IndexEntry:
        self._begins[record.iri] = record.begin
        span = Span(record.document, record.iri, 0, len(record.text))
        title = self._titles.get(record.document, "").strip()
        head = "" if title in record.text else title
        return IndexEntry(Piece(record.iri, "chunk", record.text, spans=(span,)), record.text, head)

    def _entity(self, record: EntityRecord) -> IndexEntry:
        types = f" ({', '.join(record.types)})" if record.types else ""
        text = f"{record.name}{types}" + (f": {record.description}" if record.description else "")
        searched = " | ".join((text, *record.aliases))
        return IndexEntry(Piece(record.iri, "entity", text, spans=self._spans(record.places)), searched)

    def _statement(self, record: StatementRecord) -> IndexEntry:
        triple = Triple(Entity(record.subject), record.relation, record.object)
        piece = Piece(record.iri, "statement", record.words, spans=self._spans(record.places), triples=(triple,))
        return IndexEntry(piece, record.words)

    def _hyperedge(self, record: HyperedgeRecord) -> IndexEntry:
        triples = [
            Triple(Entity(record.iri), role_iri(role) if role else PARTY, Entity(entity))
            for role, entity in record.participants
        ]
        piece = Piece(record.iri, "hyperedge", record.segment, spans=self._spans(record.places), triples=tuple(triples))
        return IndexEntry(piece, record.segment)

    def _community(self, record: CommunityRecord) -> IndexEntry:
        text = f"{record.title}: {record.summary}" if record.title else record.summary
        return IndexEntry(Piece(record.iri, "community", text), text)

    def _spans(self, places: Iterable[Place]) -> tuple[Span, ...]:
        spans: dict[Span, None] = {}
        for place in places:
            begin = self._begins.get(place.chunk)
            if not place.document:  # what an edit adds stands in no document
                continue
            if begin is None:
                spans[Span(place.document, "", place.begin, place.end)] = None
            else:
                spans[Span(place.document, place.chunk, place.begin - begin, place.end - begin)] = None
            if len(spans) == MAX_SPANS:
                break
        return tuple(spans)
