"""The sentences of a text as spans."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from kgqa.corpus.documents.document import Document, Span
from kgqa.corpus.documents.sentences import sentence_cuts
from kgqa.corpus.items import ChunkItem


def sentence_spans(text: str, borders: Collection[int] = ()) -> list[Span]:
    """Return the span of each sentence of a text, without the blanks around it.

    Args:
        text: The text.
        borders: Offsets at which no sentence goes on, such as the end of a heading.
    """
    stops = sorted({0, len(text), *(border for border in borders if 0 < border < len(text))})
    spans: list[Span] = []
    for begin, end in pairwise(stops):
        cuts = [begin, *(at for at, _ in sentence_cuts(text, begin, end)), end]
        spans += [trimmed(text, *span) for span in pairwise(cuts)]
    return [span for span in spans if span[0] < span[1]]


def element_borders(document: Document, chunk: ChunkItem) -> set[int]:
    """Return the offsets in a chunk at which a heading, a table row or another element begins or ends."""
    apart = [
        each for each in document.elements if each.kind != "link" and each.begin < chunk.end and each.end > chunk.begin
    ]
    return {offset - chunk.begin for each in apart for offset in (each.begin, each.end)}


def trimmed(text: str, begin: int, end: int) -> Span:
    """Return a span without the blanks at its begin and end."""
    piece = text[begin:end]
    left = len(piece) - len(piece.lstrip())
    return begin + left, max(begin + left, begin + len(piece.rstrip()))
