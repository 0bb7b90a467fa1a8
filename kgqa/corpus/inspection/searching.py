"""Searches a corpus folder once, for the command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgqa.cache import Cache
from kgqa.corpus.corpus import Corpus
from kgqa.model import Piece, PieceKind


@dataclass(frozen=True)
class Found:
    """The pieces that were found, best first; the sources of their documents; and notes for the user."""

    pieces: tuple[Piece, ...]
    sources: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


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
        return Found(tuple(pieces), sources_of(pieces, corpus), corpus.index.notes)


def sources_of(pieces: Iterable[Piece], corpus: Corpus) -> dict[str, str]:
    """Return the sources of the documents that pieces come from, by the IRIs of the documents."""
    wanted = {span.document for piece in pieces for span in piece.spans}
    records = filter(None, map(corpus.reader.document, sorted(wanted)))
    return {each.iri: each.source for each in records}
