"""What the published code does otherwise: a ranking by weights, targets by a part of their text, no gates.

A deletion there halves the weight of a hyperedge, which then comes last in results and can still be found. Here the
weight is the completeness of the hyperedge, so a halved weight is an edit like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from kgqa.corpus.items import normal_name
from kgqa.corpus.records import HyperedgeRecord
from kgqa.errors import CorpusError
from kgqa.methods.evograph.editing import EditResult, EditTools
from kgqa.methods.evograph.segments import SegmentSearch, piece_of
from kgqa.model import Piece
from kgqa.trace import EditDecided, EditProposed

MIN_PART = 10
"""Fewest characters of a part of a text by which an edit names its target."""
MIN_SHARE = 0.5
"""Least share of the longer one of both texts that the shorter one has."""
BEST = 5
"""How many entities and how many hyperedges a search begins with."""
_CANDIDATES = 50


class PublishedSegments(SegmentSearch):
    """The search of the published code: hyperedges of the best entities, and the best hyperedges.

    A hyperedge scores the sum of 1 / rank over both lists. The first is sorted by number of participants and weight,
    the second by weight. Passages, where a corpus has no hyperedges, are ranked by similarity.
    """

    def find(
        self, query: str, k: int, shown: Collection[str] = (), *, step: int = 0
    ) -> tuple[list[Piece], list[Piece]]:
        """Return the best k segments; those that were shown are shown again."""
        new, _ = super().find(query, k, (), step=step)
        return new, []

    def ranked(self, query: str) -> list[Piece]:
        """Return the segments, best first; deleted ones come last."""
        similar = super().ranked(query)
        by_text = [piece for piece in similar if piece.kind == "hyperedge"][:BEST]
        by_entity = self._of_entities(query)
        scores: dict[str, float] = {}
        pieces = {piece.iri: piece for piece in (*similar, *by_entity)}
        first = sorted(by_entity, key=lambda each: (-len(each.triples), -self.weight(each.iri), each.iri))
        second = sorted(by_text, key=lambda each: (-self.weight(each.iri), by_text.index(each)))
        for ranking in (first, second):
            for rank, piece in enumerate(ranking, 1):
                scores[piece.iri] = scores.get(piece.iri, 0.0) + 1 / rank
        best = sorted(scores, key=lambda iri: (self.is_deleted(iri), -scores[iri], iri))
        found = [replace(pieces[iri], score=scores[iri]) for iri in best]
        return [*found, *(piece for piece in similar if piece.iri not in scores)]

    def _contradicted(self, piece: Piece, best: Iterable[Piece]) -> Iterable[str]:
        return ()

    def weight(self, iri: str) -> float:
        """Return the weight of a hyperedge: its completeness, 1 if it is unknown."""
        record = self._overlay.record(iri)
        return 1.0 if record is None or record.completeness is None else record.completeness

    def is_deleted(self, iri: str) -> bool:
        """Return whether the session deleted a hyperedge and has not updated it since."""
        edits = [each for each in self._overlay.edits if each.added is not None and each.added.iri == iri]
        return bool(edits) and edits[-1].edit.reason.startswith(DELETED)

    def _of_entities(self, query: str) -> list[Piece]:
        """Return the hyperedges in which the best entities take part."""
        channels = self._channels()
        (found,) = self._search.corpus.retriever("entity", channels).search([query], BEST)
        entities = {piece.iri for piece in found}
        added = [piece_of(record) for record in self._overlay.added]
        return [*self._base_of(entities), *(each for each in added if _takes_part(each, entities))]

    def _base_of(self, entities: Collection[str]) -> Iterable[Piece]:
        table, seen = self._search.corpus.index.pieces("hyperedge"), self._overlay.removed
        if not entities or not len(table):
            return
        for record in self._search.corpus.reader.hyperedges():
            if record.iri not in seen and any(entity in entities for _, entity in record.participants):
                piece = table.get(record.iri)
                yield piece if piece is not None else piece_of(record)


def _takes_part(piece: Piece, entities: Collection[str]) -> bool:
    return any(str(getattr(triple.object, "iri", "")) in entities for triple in piece.triples)


DELETED = "deleted"
"""How the reason of an edit begins that stands for a published deletion."""


class PublishedEdits(EditTools):
    """Edits as in the published code: after any search, without sources and gates."""

    def edit(self, kind: str, arguments: Mapping[str, Any], *, step: int = 1) -> EditResult:
        """Apply an edit; arguments as the published schemas say."""
        self._proposals += 1
        number = self._proposals
        new = str(arguments.get("content" if kind == "insert" else "new_content", ""))
        target = None if kind == "insert" else self._record_with(str(arguments["content"]))
        self._trace.record(
            EditProposed(
                proposal=number,
                edit=kind,
                content=new,
                target=target.iri if target else "",
                target_text=target.segment if target else str(arguments["content"]) if kind != "insert" else "",
                step=step,
            )
        )
        overlay = self._overlay
        if kind != "insert" and target is None:
            return self._failed(number, "target", "No matching text was found.", step)
        try:
            if target is None:
                done = overlay.insert(new, self._participants(new))
            elif kind == "update":
                done = overlay.update(target.iri, new, self._participants(new))
            else:
                halved = (1.0 if target.completeness is None else target.completeness) / 2
                done = overlay.reweigh(target.iri, halved, reason=f"{DELETED} by the language model")
        except CorpusError as error:
            return self._failed(number, "corpus", error.message, step)
        self.accepted[number] = done
        self._trace.record(EditDecided(proposal=number, state="overlay", edit=done.edit.id, step=step))
        return EditResult(("Success.",))

    def _failed(self, number: int, rule: str, why: str, step: int) -> EditResult:
        self._trace.record(EditDecided(proposal=number, state="rejected", rule=rule, why=why, step=step))
        return EditResult((f"Failed. {why}",), failed=True)

    def _record_with(self, text: str) -> HyperedgeRecord | None:
        """Return the hyperedge of which a text is a part, or which is a part of the text; the closest one first."""
        wanted = normal_name(text)
        if len(wanted) < MIN_PART:
            return None
        found = [piece for piece in self._segments.ranked(text)[:_CANDIDATES] if piece.kind == "hyperedge"]
        for piece in found:
            known = normal_name(piece.text)
            short, long = sorted((wanted, known), key=len)
            if short in long and len(short) >= max(MIN_PART, MIN_SHARE * len(long)):
                return self._overlay.record(piece.iri)
        return None
