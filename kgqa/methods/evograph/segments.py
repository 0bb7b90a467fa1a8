"""Finds segments for a question: hyperedges and chunks of the corpus, as the edits of the question leave them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.gates import contradicts
from kgqa.corpus.editing.overlay import Overlay
from kgqa.corpus.editing.trust import CORPUS, rank
from kgqa.corpus.rdf.vocabulary import PARTY
from kgqa.corpus.records import HyperedgeRecord
from kgqa.corpus.retrieve.fused import DEPTH, fuse
from kgqa.corpus.snapshot import role_iri
from kgqa.model import Entity, Piece, PieceKind, Triple
from kgqa.trace import Retrieved
from kgqa.trace.trace import Trace

CHANNEL = "graph"
COMPARED = 20
"""How many of the best segments are compared with one that is trusted less than the corpus."""
KINDS: dict[str, tuple[PieceKind, ...]] = {
    "hyperedge": ("hyperedge",),
    "chunk": ("chunk",),
    "both": ("hyperedge", "chunk"),
}


def kinds_of(setting: str, corpus: Corpus) -> tuple[PieceKind, ...]:
    """Return the kinds of segments that are searched, as `evograph.pieces` says.

    `auto`: hyperedges, and also chunks if there are more of them than hyperedges, because few hyperedges say little of
    what the texts say.
    """
    hyperedges, chunks = (len(corpus.index.pieces(kind)) for kind in KINDS["both"])
    return KINDS[("hyperedge" if hyperedges >= chunks else "both") if setting == "auto" else setting]


class Segments:
    """The search of one question.

    Args:
        overlay: The edits of the question.
        pieces: The kinds of segments; see `kinds_of`.
        trace: The trace of the question.
    """

    def __init__(self, overlay: Overlay, pieces: str, trace: Trace) -> None:
        self._overlay = overlay
        self._corpus = overlay.corpus
        self._kinds = kinds_of(pieces, overlay.corpus)
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
        ranked = self.ranked(query)
        new = [piece for piece in ranked if piece.iri not in shown][:k]
        last = ranked.index(new[-1]) if len(new) == k else len(ranked)
        known = [piece for piece in ranked[: min(last, 2 * k)] if piece.iri in shown]
        new = self._with_disputed(new, ranked[:COMPARED], shown)
        self._trace.record(Retrieved(query=query, pieces=tuple(piece.iri for piece in new), step=step, channel=CHANNEL))
        return new, known

    def ranked(self, query: str) -> list[Piece]:
        """Return the segments by words and embedding, fused by reciprocal ranks, best first.

        Hyperedges and chunks are in one ranking, so that a few hyperedges do not take places from better chunks.
        """
        pieces: dict[str, Piece] = {}
        rankings: list[list[tuple[str, float]]] = []
        added = self._overlay.added if "hyperedge" in self._kinds else ()
        # words are weighed by the index of the last kind, which has the most segments
        words = self._corpus.index.bm25(self._kinds[-1])
        for channel in self.channels:
            if channel == "bm25":
                scored = ((record.iri, words.score_of(query, record.segment)) for record in added)
                scores = {iri: score for iri, score in scored if score > 0}
            else:
                scores = self._similarities(query, added)
            for kind in self._kinds:
                (found,) = self._corpus.retriever(kind, (channel,)).search([query], DEPTH)
                live = {piece.iri: piece for piece in found if piece.iri not in self._overlay.removed}
                pieces |= live
                rescored = channel == "bm25" and kind != self._kinds[-1]
                scores |= {i: words.score_of(query, p.text) if rescored else p.score for i, p in live.items()}
            rankings.append(sorted(scores.items(), key=lambda each: (-each[1], each[0])))
        pieces |= {record.iri: piece_of(record) for record in added}
        return [replace(pieces[iri], score=score) for iri, score in fuse(rankings, [1.0] * len(rankings))]

    @property
    def channels(self) -> tuple[str, ...]:
        """The retrievers of the index."""
        return ("bm25", "dense") if self._corpus.index.vectors is not None else ("bm25",)

    def _similarities(self, query: str, added: Sequence[HyperedgeRecord]) -> dict[str, float]:
        """Return the similarities of segments that the index does not contain."""
        encoder = self._corpus.index.encoder
        if not added or encoder is None:
            return {}
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
            self.contradicted[piece.iri] = self.contradicted_by(piece, best)
            others = sorted(self.contradicted[piece.iri] | conflicts.get(piece.iri, frozenset()))
            records = [record for iri in others if iri not in shown and (record := self._overlay.record(iri))]
            together = [piece, *(by_iri.get(record.iri) or piece_of(record) for record in records)]
            for each in sorted(together, key=lambda each: -self._rank(each)):
                found.setdefault(each.iri, each)
        return list(found.values())

    def contradicted_by(self, piece: Piece, best: Iterable[Piece]) -> frozenset[str]:
        """Return the IRIs of the hyperedges that contradict a piece and are trusted more."""
        own = self._rank(piece)
        if own >= rank(CORPUS):
            return frozenset()
        rivals = (other for other in best if other.kind == "hyperedge" and self._rank(other) > own)
        return frozenset(other.iri for other in rivals if contradicts(piece.text, other.text))

    def _rank(self, piece: Piece) -> int:
        return rank(self._overlay.trust_of(piece.iri) if piece.kind == "hyperedge" else CORPUS)


def piece_of(record: HyperedgeRecord) -> Piece:
    """Return a hyperedge that the index does not contain as a piece."""
    triples = [
        Triple(Entity(record.iri), role_iri(role) if role else PARTY, Entity(entity))
        for role, entity in record.participants
    ]
    return Piece(record.iri, "hyperedge", record.segment, triples=tuple(triples))
