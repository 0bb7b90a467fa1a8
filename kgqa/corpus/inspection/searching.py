"""Searches a corpus folder once, for the command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.standing import standing_of
from kgqa.model import Piece, PieceKind
from kgqa.storage.cache import Cache


@dataclass(frozen=True)
class Found:
    """What was found.

    Attributes:
        pieces: The pieces, best first.
        sources: The sources of their documents, by the IRIs of the documents.
        notes: Notes for the user.
        trusts: How far the hyperedges among them are trusted, by their IRIs.
        conflicts: The texts that contradict the hyperedges among them, by their IRIs.
    """

    pieces: tuple[Piece, ...]
    sources: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    trusts: dict[str, str] = field(default_factory=dict)
    conflicts: dict[str, tuple[str, ...]] = field(default_factory=dict)


def search_corpus(
    path: Path | str,
    text: str,
    *,
    kind: PieceKind = "chunk",
    k: int = 10,
    encoder: Any = None,
    cache: Cache | None = None,
) -> Found:
    """Find pieces of one kind.

    Raises:
        CorpusError: There is no corpus.
        SettingsError: This kind cannot be searched.
    """
    with Corpus.open(path, encoder=encoder, cache=cache) as corpus:
        (pieces,) = corpus.retriever(kind).search([text], k)
        found = Found(tuple(pieces), sources_of(pieces, corpus), corpus.index.notes)
        return _with_standing(found, corpus) if kind == "hyperedge" else found


def _with_standing(found: Found, corpus: Corpus) -> Found:
    standing = standing_of(corpus.database, corpus.reader.seq)
    conflicts = {}
    for piece in found.pieces:
        records = map(corpus.reader.hyperedge, sorted(standing.conflicts.get(piece.iri, ())))
        if texts := tuple(record.segment for record in records if record):
            conflicts[piece.iri] = texts
    trusts = {piece.iri: standing.trust(piece.iri) for piece in found.pieces}
    return replace(found, trusts=trusts, conflicts=conflicts)


def sources_of(pieces: Iterable[Piece], corpus: Corpus) -> dict[str, str]:
    """Return the sources of the documents that pieces come from, by the IRIs of the documents."""
    wanted = {span.document for piece in pieces for span in piece.spans}
    records = filter(None, map(corpus.reader.document, sorted(wanted)))
    return {each.iri: each.source for each in records}
