"""Finds the pieces of a corpus that are parts of the supporting passages of a question."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.documents.document import safe_text
from kgqa.corpus.items import HYPEREDGE, STATEMENT
from kgqa.corpus.records import ChunkRecord
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.metrics.retrieval import retrieval_steps
from kgqa.model import PieceKind

_KINDS: Mapping[str, PieceKind] = {STATEMENT: "statement", HYPEREDGE: "hyperedge"}
"""The kinds of pieces besides chunks that state what a passage says, by the prefix of their IRIs."""
_SEPARATOR = "\n"
"""Stands between two documents; the compared texts contain no white space."""


class PassageFinder:
    """Finds the chunks of a corpus that contain a passage or a part of it. Thread-safe.

    Texts are compared without white space and regardless of case.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._chunks: dict[str, list[ChunkRecord]] = defaultdict(list)
        for chunk in corpus.reader.chunks():
            self._chunks[chunk.document].append(chunk)
        self._texts = {iri: corpus.text(iri) for iri in self._chunks}
        self._whole: dict[str, list[tuple[str, int]]] = defaultdict(list)
        """Documents by their text, with and without the first line, which may be a title; and where the text begins."""
        for iri, text in self._texts.items():
            title, _, rest = text.partition("\n")
            for each, begin in {_folded(text): 0, _folded(rest): len(_folded(title))}.items():
                self._whole[each].append((iri, begin))
        self._lock = threading.Lock()
        self._joined: tuple[str, list[int], list[str]] | None = None

    def chunks(self, text: str) -> list[str]:
        """Return the IRIs of the chunks that contain a part of a passage; empty if the corpus does not contain it."""
        wanted = _folded(safe_text(text))
        if not wanted:
            return []
        found: dict[str, None] = {}
        for iri, begin in self._whole.get(wanted) or self._places(wanted):
            places = [place for place, char in enumerate(self._texts[iri]) if not char.isspace()]
            first, last = places[begin], places[begin + len(wanted) - 1]
            found.update((c.iri, None) for c in self._chunks[iri] if c.begin <= last and first < c.end)
        return list(found)

    def _places(self, wanted: str) -> Iterator[tuple[str, int]]:
        """Yield the documents that contain a text, and where it begins in them."""
        with self._lock:
            if self._joined is None:
                texts = {iri: _folded(text) for iri, text in self._texts.items()}
                starts, at = [], 0
                for text in texts.values():
                    starts.append(at)
                    at += len(text) + len(_SEPARATOR)
                self._joined = _SEPARATOR.join(texts.values()), starts, list(texts)
        joined, starts, documents = self._joined
        at = joined.find(wanted)
        while at >= 0:
            number = bisect_right(starts, at) - 1
            yield documents[number], at - starts[number]
            at = joined.find(wanted, at + 1)


def _folded(text: str) -> str:
    """Return a text without white space and with small letters; each letter stays one character."""
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text if not char.isspace())


_finders: WeakKeyDictionary[Corpus, PassageFinder] = WeakKeyDictionary()
_opening = threading.Lock()


def supporting_pieces(
    question: GoldQuestion, trace: Iterable[Mapping[str, Any]], corpus: object
) -> tuple[tuple[str, ...], ...]:
    """Return the pieces of a corpus that are parts of each supporting passage of a question.

    These are the chunks of the passage, and the retrieved statements and hyperedges that were read in these chunks.

    Args:
        trace: the events of the question, as in an answer object.
        corpus: the corpus; None for a graph without one.

    Returns:
        The IRIs of the pieces of each passage, none for a passage that the corpus does not contain; empty if the
        question has no supporting passages.
    """
    if not isinstance(corpus, Corpus) or not question.supporting:
        return ()
    with _opening:
        finder = _finders.get(corpus)
        if finder is None:
            finder = _finders[corpus] = PassageFinder(corpus)
    read_in = _read_in(trace, corpus)
    found = []
    for _, text in question.supporting:
        chunks = finder.chunks(text)
        more = [iri for iri, places in read_in.items() if not places.isdisjoint(chunks)]
        found.append(tuple(dict.fromkeys([*chunks, *more])))
    return tuple(found)


def _read_in(trace: Iterable[Mapping[str, Any]], corpus: Corpus) -> dict[str, set[str]]:
    """Return the chunks in which each retrieved statement and hyperedge was read."""
    retrieved: Sequence[str] = [iri for step in retrieval_steps(trace) for pieces in step.lists for iri in pieces]
    found = {}
    for iri in dict.fromkeys(retrieved):
        kind = next((kind for prefix, kind in _KINDS.items() if iri.startswith(prefix)), None)
        if kind and (piece := corpus.index.pieces(kind).get(iri)):
            found[iri] = {span.chunk for span in piece.spans}
    return found
