"""What a session finds and shows: segments of the graph as its edits leave them, and results, numbered and cleaned."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from kgqa.corpus.editing.gates import contradicts
from kgqa.corpus.editing.overlay import Overlay
from kgqa.corpus.editing.sources import ShownText
from kgqa.corpus.editing.trust import CORPUS, rank
from kgqa.corpus.rdf.vocabulary import PARTY
from kgqa.corpus.records import HyperedgeRecord
from kgqa.corpus.retrieve.fused import DEPTH, fuse
from kgqa.corpus.snapshot import role_iri
from kgqa.methods.evidence import MAX_TITLE_CHARS, Exhibits, title_of
from kgqa.methods.evograph.declarations import EvographSettings
from kgqa.model import Entity, Piece, PieceKind, Span, Triple
from kgqa.text.words import clean
from kgqa.trace import Retrieved
from kgqa.trace.trace import Trace

COMPARED = 20
"""How many of the best segments are compared with one that is trusted less than the corpus."""
KINDS: dict[str, tuple[PieceKind, ...]] = {
    "hyperedge": ("hyperedge",),
    "chunk": ("chunk",),
    "both": ("hyperedge", "chunk"),
}
_TAG = re.compile(
    r"<\s{0,3}/?\s{0,3}(?:answer|think|tool_\w{1,20}|tools?|system|user|assistant|information|observation|results?)"
    r"\s{0,3}>|</?[A-Za-z!?|][^<>]{0,200}>|<\|[^<>|]{0,60}\|>|\[/?INST\]|</?SYS>|\b(?:im_start|im_end|endoftext)\b",
    re.IGNORECASE,
)
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class ShownResult(ShownText):
    """A text that was shown, on which edits may rest.

    Attributes:
        kind: The kind of the segment, or web for a page.
        title: The title of its document or page; may be empty.
        score: The score of the search.
        spans: The places of documents that it comes from.
        disputes: Numbers of results that contradict it.
    """

    kind: PieceKind | OneOf["web"] = "web"
    title: str = ""
    score: float = 0.0
    spans: tuple[Span, ...] = ()
    disputes: tuple[int, ...] = ()

    @property
    def line(self) -> str:
        """The result as one line of JSON."""
        shown = {
            "number": self.number,
            "text": self.text,
            "kind": self.kind,
            "trust": self.trust,
            "score": round(self.score, 4),
            **({"from": self.title} if self.title else {}),
            **({"contradicts": self.disputes} if self.disputes else {}),
        }
        return json.dumps(shown, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call returns to the language model. `results`: new ones. `notes`: sentences. `failed`: see `Called`."""

    results: tuple[ShownResult, ...] = ()
    notes: tuple[str, ...] = ()
    failed: bool = False

    @property
    def lines(self) -> list[str]:
        """The results as lines of JSON."""
        return [result.line for result in self.results]


def without_marks(text: str) -> str:
    """Return a text as one line without tags, marks of chats and control characters.

    What is left has no tag either: removing one may join the halves of another.
    """
    text = clean(text)
    for _ in range(_ROUNDS):
        text = _TAG.sub(" ", text)
    if _TAG.search(text):
        text = _TAG.sub(" ", re.sub("[<>]", " ", text))
    return " ".join(text.split())


class SegmentSearch:
    """The search of a session, and what it has shown: results keep their numbers.

    Args:
        overlay: The edits of the question.
        settings: The settings of the method.
        trace: The trace of the question.

    Attributes:
        shown: The results.
    """

    def __init__(self, overlay: Overlay, settings: EvographSettings, trace: Trace) -> None:
        self.overlay, self.settings, self.trace = overlay, settings, trace
        self.corpus, self.index = overlay.corpus, overlay.corpus.index
        self.shown: Exhibits[ShownResult] = Exhibits(self.corpus)
        self._contradicted: dict[str, frozenset[str]] = {}
        """The IRIs of the segments that contradict a found one and are trusted more, by its IRI."""

    def find(self, query: str, *, step: int = 0) -> tuple[list[Piece], list[int]]:
        """Return the best new segments, and the numbers of better ones that were shown.

        Segments that contradict each other come together, those that are trusted more first.
        """
        ranked, most = self.ranked(query), self.settings.results
        new = [piece for piece in ranked if self.is_new(piece.iri)][:most]
        last = ranked.index(new[-1]) if len(new) == most else len(ranked)
        known = self.numbers(piece.iri for piece in ranked[: min(last, 2 * most)] if not self.is_new(piece.iri))
        new = self._with_disputed(new, ranked[:COMPARED])
        iris = tuple(piece.iri for piece in new)
        self.trace.record(Retrieved(query=query, pieces=iris, step=step, channel="graph"))
        return new, known

    def is_new(self, iri: str) -> bool:
        """Return whether a search may find a segment, because it was not shown before."""
        return not self.shown.number(iri)

    def numbers(self, iris: Iterable[str]) -> list[int]:
        """Return the numbers of the segments or pages that were shown, sorted."""
        return sorted({self.shown.number(iri) for iri in iris} - {0})

    def ranked(self, query: str) -> list[Piece]:
        """Return the segments by words and embedding, fused by reciprocal ranks, best first.

        Hyperedges and chunks are in one ranking, so that a few hyperedges do not take places from better chunks.
        """
        added = [piece_of(record) for record in self.overlay.added] if "hyperedge" in self.kinds else []
        pieces = {piece.iri: piece for piece in added}
        # words are weighed by the index of the last kind, which has the most segments
        words = self.index.bm25(self.kinds[-1])
        rankings: list[list[tuple[str, float]]] = []
        for channel in self.channels:
            scores: dict[str, float] = {}
            if channel == "bm25":
                scores = {each.iri: score for each in added if (score := words.score_of(query, each.text)) > 0}
            elif added and self.index.encoder is not None:
                vectors = self.index.encoder.encode_once([each.text for each in added])
                asked = self.index.encoder.encode_questions([query])[0]
                scores = {each.iri: float(vector @ asked) for each, vector in zip(added, vectors)}
            for kind in self.kinds:
                (found,) = self.corpus.retriever(kind, (channel,)).search([query], DEPTH)
                live = {piece.iri: piece for piece in found if piece.iri not in self.overlay.removed}
                pieces = live | pieces
                rescored = channel == "bm25" and kind != self.kinds[-1]
                scores |= {i: words.score_of(query, p.text) if rescored else p.score for i, p in live.items()}
            rankings.append(sorted(scores.items(), key=lambda each: (-each[1], each[0])))
        return [replace(pieces[iri], score=score) for iri, score in fuse(rankings, [1.0] * len(rankings))]

    @property
    def kinds(self) -> tuple[PieceKind, ...]:
        """The kinds of segments, as `evograph.pieces` says.

        auto: hyperedges, and also chunks if there are more of them, because few hyperedges say little of the texts.
        """
        few = len(self.index.pieces("hyperedge")) < len(self.index.pieces("chunk"))
        return KINDS[("both" if few else "hyperedge") if self.settings.pieces == "auto" else self.settings.pieces]

    @property
    def channels(self) -> tuple[str, ...]:
        """The retrievers of the index."""
        return ("bm25", "dense") if self.index.vectors is not None else ("bm25",)

    def _with_disputed(self, pieces: Iterable[Piece], best: Sequence[Piece]) -> list[Piece]:
        conflicts, by_iri = self.overlay.conflicts, {piece.iri: piece for piece in best}
        found: dict[str, Piece] = {}
        for piece in pieces:
            self._contradicted[piece.iri] = self._contradicted_by(piece, best)
            others = sorted(self._contradicted[piece.iri] | conflicts.get(piece.iri, frozenset()))
            records = [record for iri in others if self.is_new(iri) and (record := self.overlay.record(iri))]
            together = [piece, *(by_iri.get(record.iri) or piece_of(record) for record in records)]
            for each in sorted(together, key=lambda each: -rank(self._trust(each))):
                found.setdefault(each.iri, each)
        return list(found.values())

    def _contradicted_by(self, piece: Piece, best: Iterable[Piece]) -> frozenset[str]:
        """Return the IRIs of the hyperedges that contradict a piece of less trust than the corpus, and have more.

        Empty if trust does not count.
        """
        own = rank(self._trust(piece)) if self.overlay.ranked else rank(CORPUS)
        others = [other for other in best if other.kind == "hyperedge"] if own < rank(CORPUS) else []
        rivals = (other for other in others if own < rank(self._trust(other)) and contradicts(piece.text, other.text))
        return frozenset(rival.iri for rival in rivals)

    def show(self, result: ShownResult) -> ShownResult:
        """Return a result, cleaned, with the next number; or as it was shown before."""
        known = self.shown.get(self.shown.number(result.iri))
        if known is None:
            text, title = without_marks(result.text), without_marks(result.title)[:MAX_TITLE_CHARS]
            known = replace(result, number=len(self.shown) + 1, text=text, title=title)
            self.shown.add(known)
        return known

    def show_piece(self, piece: Piece) -> ShownResult:
        """Return the result of a segment."""
        others = self.overlay.conflicts.get(piece.iri, frozenset()) | self._contradicted.get(piece.iri, frozenset())
        title = title_of(piece, self.corpus) if piece.kind == "chunk" else ""
        shown = ShownResult(
            0,
            piece.iri,
            piece.text,
            self._trust(piece),
            kind=piece.kind,
            title="" if title in piece.text else title,
            score=piece.score,
            spans=piece.spans,
            disputes=tuple(self.numbers(others)),
        )
        return self.show(shown)

    def _trust(self, piece: Piece) -> str:
        return self.overlay.trust_of(piece.iri) if piece.kind == "hyperedge" else CORPUS


def piece_of(record: HyperedgeRecord) -> Piece:
    """Return a hyperedge that the index does not contain as a piece."""
    triples = [
        Triple(Entity(record.iri), role_iri(role) if role else PARTY, Entity(entity))
        for role, entity in record.participants
    ]
    return Piece(record.iri, "hyperedge", record.segment, triples=tuple(triples))
