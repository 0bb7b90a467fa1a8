"""What an extractor is asked to read, and the protocol of extractors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kgqa.corpus.documents.document import Document, Figure
from kgqa.corpus.extraction.results import ChunkResult
from kgqa.corpus.items import ChunkItem

PLACEHOLDER = "[image]"
"""The text of a document that consists of images."""


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """A chunk to be read, with its document. `images`: the figures of the document that stand in the chunk."""

    document: Document
    chunk: ChunkItem
    images: tuple[Figure, ...] = ()


class Extractor(Protocol):
    """Finds entities, statements and hyperedges in chunks.

    `name`: what it is called in messages. `key`: a hash that changes with everything that its results depend on, except
    the text: rules, prompts, model, settings. `needs_model`: whether it asks a language model.
    """

    name: str
    key: str
    needs_model: bool

    def extract(self, requests: Iterable[ExtractionRequest]) -> Iterator[ChunkResult]:
        """Yield one result for each request, in any order, each as soon as it is known.

        A chunk that cannot be read has a result with the status "failed"; no error is raised for it.
        """
        ...


def with_placeholder(document: Document) -> Document:
    """Return a document of images only, such as an image file, with the text PLACEHOLDER, so that it has a chunk.

    Other documents are returned as they are.
    """
    return replace(document, text=PLACEHOLDER) if document.figures and not document.text.strip() else document


def extraction_requests(document: Document, chunks: Sequence[ChunkItem]) -> list[ExtractionRequest]:
    """Return a request for each chunk of a document.

    Each figure goes to one chunk: the first one that contains its place, otherwise the last one that begins before it.
    """
    figures: dict[str, list[Figure]] = {}
    for figure in document.figures:
        around = [chunk for chunk in chunks if chunk.begin <= figure.begin < chunk.end]
        before = [chunk for chunk in chunks if chunk.begin <= figure.begin]
        chosen = around[:1] or before[-1:] or list(chunks[:1])
        for chunk in chosen:
            figures.setdefault(chunk.chunk, []).append(figure)
    return [ExtractionRequest(document, chunk, tuple(figures.get(chunk.chunk, ()))) for chunk in chunks]


def has_text(text: str, figures: Sequence[Figure]) -> bool:
    """Return whether the text of a chunk says more than PLACEHOLDER and the captions of figures that are sent.

    Args:
        text: The text of the chunk.
        figures: The figures that are sent to a model as images.
    """
    for part in (PLACEHOLDER, *(figure.caption for figure in figures if figure.caption)):
        text = text.replace(part, "")
    return any(character.isalnum() for character in text)
