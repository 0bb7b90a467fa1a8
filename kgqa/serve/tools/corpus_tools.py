"""Reads the texts of a corpus."""

from __future__ import annotations

from typing import Any

from kgqa.corpus.corpus import Corpus
from kgqa.errors import CorpusError
from kgqa.words import clean


def chunk(corpus: Corpus | None, id: str) -> dict[str, Any]:
    """Return a chunk: {id, text, title, source, begin, end}; `begin` and `end` are its place in its document.

    Positions of quotes count in `text`, in code points.

    Raises:
        CorpusError: there is no corpus, or it has no such chunk.
    """
    if corpus is None:
        raise CorpusError("This graph was not made from a text corpus.")
    found = corpus.chunk(id)
    if found is None:
        raise CorpusError(f"The corpus has no chunk {clean(id)[:200]}.")
    document = corpus.reader.document(found.document)
    return {
        "id": found.iri,
        "text": found.text,
        "title": document.title if document else "",
        "source": document.source if document else "",
        "begin": found.begin,
        "end": found.end,
    }
