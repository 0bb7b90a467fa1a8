"""Finds segments for a question: hyperedges and chunks of the corpus, as the edits of the question leave them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from kgqa.corpus.editing.gates import contradicts
from kgqa.corpus.editing.overlay import Overlay
from kgqa.corpus.editing.trust import CORPUS, rank
from kgqa.corpus.index.word_index import WordIndex
from kgqa.corpus.rdf.vocabulary import PARTY
from kgqa.corpus.records import HyperedgeRecord
from kgqa.corpus.retrieve.fused import DEPTH, fuse
from kgqa.corpus.snapshot import role_iri
from kgqa.methods.text.searching import TextSearch
from kgqa.model import Entity, Piece, PieceKind, Triple
from kgqa.trace import Retrieved
from kgqa.trace.trace import Trace

CHANNEL = "graph"
COMPARED = 20
"""How many of the best segments are compared with one that is trusted less than the corpus."""
Ranking = list[tuple[str, float]]
"""IRIs of pieces and their scores, best first."""


def kinds_of(setting: str, search: TextSearch) -> tuple[PieceKind, ...]:
    """Return the kinds of segments that are searched, as the setting `evograph.pieces` says.

    `auto`: hyperedges, and also chunks if there are more of them than hyperedges, because few hyperedges say little of
    what the texts say.
    """
    if setting == "auto":
        hyperedges, chunks = search.count("hyperedge"), search.count("chunk")
        return ("hyperedge",) if hyperedges >= chunks else ("hyperedge", "chunk")
    kinds: dict[str, tuple[PieceKind, ...]] = {"hyperedge": ("hyperedge",), "chunk": ("chunk",)}
    return kinds.get(setting, ("hyperedge", "chunk"))


class SegmentSearch:
    """The search of one question.

    Args:
        search: The retrievers of the question.
        overlay: The edits of the question.
        kinds: The kinds of segments.
        trace: The trace of the question.
    """

    def __init__(self, search: TextSearch, overlay: Overlay, kinds: Sequence[PieceKind], trace: Trace) -> None:
        self._search = search
        self._overlay = overlay
        self._kinds = tuple(kinds)
        self._trace = trace
        self._vectors: dict[str, np.ndarray] = {}
        """The vectors of segments that the index does not contain."""
        self.contradicted: dict[str, frozenset[str]] = {}
        """The IRIs of the segments that contradict a found one and are trusted more, by its IRI."""

    def find(
        self, query: str, k: int, shown: Collection[str] = (), *, step: int = 0
    ) -> tuple[list[Piece], list[Piece]]:
        """Return the best segments: those not shown yet, at most k, and the better ones that were shown.

        Segments that contradict each other come together, those that are trusted more first.

        Args:
            query: The query.
            k: How many new segments are returned.
            shown: The IRIs of the segments that were shown.
            step: The turn, for the events.
        """
        found = self.ranked(query)
        new = [piece for piece in found if piece.iri not in shown][:k]
        last = found.index(new[-1]) if len(new) == k else len(found)
        known = [piece for piece in found[: min(last, 2 * k)] if piece.iri in shown]
        new = self._with_disputed(new, found[:COMPARED], shown)
        self._trace.record(Retrieved(query=query, pieces=tuple(piece.iri for piece in new), step=step, channel=CHANNEL))
        return new, known

    def ranked(self, query: str) -> list[Piece]:
        """Return the segments by words and embedding, fused by reciprocal ranks, best first.

        Hyperedges and chunks are in one ranking, so that a few hyperedges do not take places from better chunks.
        """
        pieces: dict[str, Piece] = {}
        rankings: list[Ranking] = []
        added = self._overlay.added if "hyperedge" in self._kinds else ()
        for channel in self._channels():
            ranking = self._scores(channel, query, added)
            for kind in self._kinds:
                (found,) = self._search.corpus.retriever(kind, (channel,)).search([query], DEPTH)
                live = [piece for piece in found if piece.iri not in self._overlay.removed]
                pieces |= {piece.iri: piece for piece in live}
                if channel == "bm25" and kind != self._kinds[-1]:
                    ranking |= {piece.iri: self._words.score_of(query, piece.text) for piece in live}
                else:
                    ranking |= {piece.iri: piece.score for piece in live}
            rankings.append(sorted(ranking.items(), key=lambda each: (-each[1], each[0])))
        pieces |= {record.iri: piece_of(record) for record in added}
        fused = fuse(rankings, [1.0] * len(rankings))
        return [replace(pieces[iri], score=score) for iri, score in fused]

    @property
    def _words(self) -> WordIndex:
        """The index by which words are weighed: that of the last kind, which has the most segments."""
        return self._search.corpus.index.bm25(self._kinds[-1])

    def _channels(self) -> tuple[str, ...]:
        return ("bm25", "dense") if self._search.corpus.index.vectors is not None else ("bm25",)

    def _scores(self, channel: str, query: str, added: Sequence[HyperedgeRecord]) -> dict[str, float]:
        """Return the scores of segments that the index does not contain; by words, only of those that share one."""
        if not added:
            return {}
        if channel == "bm25":
            scored = ((record.iri, self._words.score_of(query, record.segment)) for record in added)
            return {iri: score for iri, score in scored if score > 0}
        encoder = self._search.corpus.index.encoder
        assert encoder is not None
        new = [record for record in added if record.iri not in self._vectors]
        if new:
            vectors = encoder.encode_once([record.segment for record in new])
            self._vectors |= {record.iri: vector for record, vector in zip(new, vectors)}
        asked = encoder.encode_questions([query])[0]
        return {record.iri: float(self._vectors[record.iri] @ asked) for record in added}

    def _with_disputed(self, pieces: Iterable[Piece], best: Sequence[Piece], shown: Collection[str]) -> list[Piece]:
        conflicts = self._overlay.conflicts
        by_iri = {piece.iri: piece for piece in best}
        found: dict[str, Piece] = {}
        for piece in pieces:
            trusted = self.contradicted[piece.iri] = frozenset(self._contradicted(piece, best))
            others = sorted(trusted | conflicts.get(piece.iri, frozenset()))
            together = [piece]
            for iri in others:
                record = self._overlay.record(iri)
                if record is not None and iri not in shown:
                    together.append(by_iri.get(iri) or piece_of(record))
            together.sort(key=lambda each: -self._rank(each))
            for each in together:
                found.setdefault(each.iri, each)
        return list(found.values())

    def _contradicted(self, piece: Piece, best: Iterable[Piece]) -> Iterable[str]:
        """Yield the IRIs of the hyperedges that a piece contradicts and that are trusted more."""
        if self._rank(piece) < rank(CORPUS):
            for other in best:
                if (
                    other.kind == "hyperedge"
                    and self._rank(other) > self._rank(piece)
                    and contradicts(piece.text, other.text)
                ):
                    yield other.iri

    def _rank(self, piece: Piece) -> int:
        return rank(self._overlay.trust_of(piece.iri) if piece.kind == "hyperedge" else CORPUS)


def piece_of(record: HyperedgeRecord) -> Piece:
    """Return a hyperedge that the index does not contain as a piece."""
    triples = [
        Triple(Entity(record.iri), role_iri(role) if role else PARTY, Entity(entity))
        for role, entity in record.participants
    ]
    return Piece(record.iri, "hyperedge", record.segment, triples=tuple(triples))
