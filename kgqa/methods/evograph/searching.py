"""What a session finds and shows: segments of the graph as its edits leave them, and results, numbered and cleaned."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from kgqa.corpus.editing.gates import contradicts
from kgqa.corpus.editing.overlay import Overlay
from kgqa.corpus.editing.sources import ShownText
from kgqa.corpus.editing.trust import CORPUS, rank
from kgqa.corpus.items import normal_name
from kgqa.corpus.rdf.vocabulary import PARTY
from kgqa.corpus.records import HyperedgeRecord
from kgqa.corpus.retrieve.fused import DEPTH, fuse
from kgqa.corpus.snapshot import role_iri
from kgqa.methods.evidence import MAX_TITLE_CHARS, Exhibits
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
class Result(ShownText):
    """A text that was shown, on which edits may rest.

    Attributes:
        kind: hyperedge, chunk or web.
        title: The title of its document or page; may be empty.
        score: The score of the search.
        piece: The piece of the corpus; None for a page.
        disputes: Numbers of results that contradict it.
    """

    kind: str = "web"
    title: str = ""
    score: float = 0.0
    piece: Piece | None = None
    disputes: tuple[int, ...] = ()

    @property
    def spans(self) -> tuple[Span, ...]:
        """The places of documents that it comes from."""
        return self.piece.spans if self.piece else ()

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
class Observation:
    """What a call returns to the language model. `results`: new ones. `notes`: sentences. `failed`: see `Called`."""

    results: tuple[Result, ...] = ()
    notes: tuple[str, ...] = ()
    failed: bool = False

    @property
    def lines(self) -> list[str]:
        """The results as lines of JSON."""
        return [result.line for result in self.results]


class Results(Exhibits[Result]):
    """The results of one session. A text that is shown again keeps its number."""

    def show(self, result: Result, score: float) -> Result:
        """Return the result of a piece or page under its number; a new one gets the next number."""
        known = self.get(self.number(result.iri))
        if known is None:
            text, title = without_marks(result.text), without_marks(result.title)[:MAX_TITLE_CHARS]
            known = replace(result, number=len(self) + 1, text=text, title=title, score=score)
            self.add(known)
        return known

    def find(self, text: str) -> Result | None:
        """Return the result with a text, case and blanks aside; None if there is none."""
        wanted = normal_name(without_marks(text))
        return next((each for each in self if normal_name(each.text) == wanted), None)

    def known(self, iris: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of the pieces or pages that were shown, sorted."""
        return tuple(sorted({self.number(iri) for iri in iris} - {0}))


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


class Segments:
    """The search of one question.

    Args:
        overlay: The edits of the question.
        pieces: The kinds of segments, as `evograph.pieces` says. auto: hyperedges, and also chunks if there are more
            of them than hyperedges, because few hyperedges say little of what the texts say.
        trace: The trace of the question.

    Attributes:
        contradicted: The IRIs of the segments that contradict a found one and are trusted more, by its IRI.
    """

    def __init__(self, overlay: Overlay, pieces: str, trace: Trace) -> None:
        self._overlay, self._corpus, self._trace = overlay, overlay.corpus, trace
        hyperedges, chunks = (len(self._corpus.index.pieces(kind)) for kind in KINDS["both"])
        usual = "hyperedge" if hyperedges >= chunks else "both"
        self._kinds = KINDS[usual if pieces == "auto" else pieces]
        self.contradicted: dict[str, frozenset[str]] = {}

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
        self._trace.record(Retrieved(query=query, pieces=tuple(piece.iri for piece in new), step=step, channel="graph"))
        return new, known

    def ranked(self, query: str) -> list[Piece]:
        """Return the segments by words and embedding, fused by reciprocal ranks, best first.

        Hyperedges and chunks are in one ranking, so that a few hyperedges do not take places from better chunks.
        """
        added = [piece_of(record) for record in self._overlay.added] if "hyperedge" in self._kinds else []
        pieces = {piece.iri: piece for piece in added}
        # words are weighed by the index of the last kind, which has the most segments
        words = self._corpus.index.bm25(self._kinds[-1])
        rankings: list[list[tuple[str, float]]] = []
        for channel in self.channels:
            scores = self._scores(added, query, channel)
            for kind in self._kinds:
                (found,) = self._corpus.retriever(kind, (channel,)).search([query], DEPTH)
                live = {piece.iri: piece for piece in found if piece.iri not in self._overlay.removed}
                pieces = live | pieces
                rescored = channel == "bm25" and kind != self._kinds[-1]
                scores |= {i: words.score_of(query, p.text) if rescored else p.score for i, p in live.items()}
            rankings.append(sorted(scores.items(), key=lambda each: (-each[1], each[0])))
        return [replace(pieces[iri], score=score) for iri, score in fuse(rankings, [1.0] * len(rankings))]

    @property
    def channels(self) -> tuple[str, ...]:
        """The retrievers of the index."""
        return ("bm25", "dense") if self._corpus.index.vectors is not None else ("bm25",)

    def _scores(self, added: Sequence[Piece], query: str, channel: str) -> dict[str, float]:
        """Return the scores of segments that the index does not contain."""
        encoder, words = self._corpus.index.encoder, self._corpus.index.bm25(self._kinds[-1])
        if channel == "bm25":
            return {piece.iri: score for piece in added if (score := words.score_of(query, piece.text)) > 0}
        if not added or encoder is None:
            return {}
        vectors = encoder.encode_once([piece.text for piece in added]) @ encoder.encode_questions([query])[0]
        return dict(zip((piece.iri for piece in added), vectors.tolist()))

    def _with_disputed(self, pieces: Iterable[Piece], best: Sequence[Piece], shown: Collection[str]) -> list[Piece]:
        conflicts, by_iri = self._overlay.conflicts, {piece.iri: piece for piece in best}
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
        """Return the IRIs of the hyperedges that contradict a piece of less trust than the corpus, and have more."""
        own = self._rank(piece)
        others = [other for other in best if other.kind == "hyperedge"] if own < rank(CORPUS) else []
        rivals = (other for other in others if own < self._rank(other) and contradicts(piece.text, other.text))
        return frozenset(rival.iri for rival in rivals)

    def _rank(self, piece: Piece) -> int:
        return rank(self._overlay.trust_of(piece.iri) if piece.kind == "hyperedge" else CORPUS)


def piece_of(record: HyperedgeRecord) -> Piece:
    """Return a hyperedge that the index does not contain as a piece."""
    triples = [
        Triple(Entity(record.iri), role_iri(role) if role else PARTY, Entity(entity))
        for role, entity in record.participants
    ]
    return Piece(record.iri, "hyperedge", record.segment, triples=tuple(triples))
