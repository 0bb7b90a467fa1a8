"""Searches a corpus, and reads its texts."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.inspection.searching import sources_of
from kgqa.errors import CorpusError
from kgqa.model import PieceKind
from kgqa.text.words import clean

AROUND = 400
"""Characters that are shown before and after a span of a document."""
MAX_SPAN = 5000
MAX_PIECES = 50
MAX_TEXT = 1000


def retrieve(corpus: Corpus | None, text: str, *, kind: PieceKind = "chunk", k: int = 5) -> dict[str, Any]:
    """Find the pieces of a corpus that say most about a text, best first, without a language model.

    Args:
        kind: chunk, statement, entity, hyperedge or community.
        k: maximum pieces.

    Returns:
        {pieces}; a piece is {id, kind, text, score, sources, spans}, with the spans of answers (docs/answer-json.md).

    Raises:
        CorpusError: there is no corpus.
        SettingsError: this kind cannot be searched.
    """
    opened = _checked(corpus)
    text = clean(text)[:MAX_TEXT]
    (pieces,) = opened.retriever(kind).search([text], max(1, min(k, MAX_PIECES))) if text else ([],)
    sources = sources_of(pieces, opened)
    return {
        "pieces": [
            {
                "id": piece.iri,
                "kind": piece.kind,
                "text": piece.text[:MAX_SPAN],
                "score": round(piece.score, 4),
                "sources": list(dict.fromkeys(sources.get(span.document, span.document) for span in piece.spans)),
                "spans": to_builtins(piece.spans),
            }
            for piece in pieces
        ]
    }


def graphs_of(corpus: Corpus | None) -> frozenset[str]:
    """Return the IRIs of the named graphs of a corpus."""
    return frozenset(iri for graphs in corpus.views.values() for iri in graphs) if corpus is not None else frozenset()


def chunk(corpus: Corpus | None, id: str) -> dict[str, Any]:
    """Return a chunk: {id, text, title, source, begin, end}; `begin` and `end` are its place in its document.

    Positions of quotes count in `text`, in code points.

    Raises:
        CorpusError: there is no corpus, or it has no such chunk.
    """
    found = _checked(corpus).chunk(id)
    if found is None:
        raise CorpusError(f"The corpus has no chunk {clean(id)[:200]}.")
    return {"id": id, "text": found.text, **_named(corpus, found.document), "begin": found.begin, "end": found.end}


def excerpt(corpus: Corpus | None, document: str, begin: int, end: int) -> dict[str, Any]:
    """Return the text around a span of a document, as `chunk` does; it begins and ends at line breaks if some are near.

    Raises:
        CorpusError: there is no corpus, or it has no such document.
    """
    text = _checked(corpus).text(document)
    begin = max(0, min(begin, len(text)))
    end = max(begin, min(end, begin + MAX_SPAN, len(text)))
    first = text.rfind("\n", max(0, begin - AROUND), begin) + 1 if begin > AROUND else 0
    first = first or max(0, begin - AROUND)
    last = text.find("\n", end, end + AROUND)
    last = min(len(text), end + AROUND) if last < 0 or len(text) <= end + AROUND else last
    return {"id": document, "text": text[first:last], **_named(corpus, document), "begin": first, "end": last}


def _checked(corpus: Corpus | None) -> Corpus:
    if corpus is None:
        raise CorpusError("This graph was not made from a text corpus.")
    return corpus


def _named(corpus: Corpus | None, iri: str) -> dict[str, str]:
    document = _checked(corpus).reader.document(iri)
    return {"title": document.title if document else "", "source": document.source if document else ""}
