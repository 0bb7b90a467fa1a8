"""EvoGraph-R1 as published (Lin et al. 2026, and its code): the same turns, with other tools.

The search ranks by weights, and shows again what was shown. Edits name their target by a part of its text; they need no
source, and no gate checks them. A deletion halves the weight of a hyperedge, which then comes last in results and can
still be found; here the weight is the completeness of the hyperedge, so a halved weight is an edit like any other. No
answer is forced, and a repeated call is made again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgqa.corpus.editing.gates import Proposal, Rejection
from kgqa.corpus.editing.overlay import OverlayEdit
from kgqa.corpus.editing.sources import ShownText
from kgqa.corpus.items import normal_name
from kgqa.corpus.records import HyperedgeRecord
from kgqa.methods.evograph.answering import Session, answered
from kgqa.methods.evograph.editing import Edits
from kgqa.methods.evograph.results import Observation
from kgqa.methods.evograph.segments import Segments, piece_of
from kgqa.methods.evograph.tools import CONTENT, SCHEMAS, Tools, schema_of
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Named, Piece, Question, Value
from kgqa.trace import EditDecided
from kgqa.trace.trace import Trace

MIN_PART = 10
"""Fewest characters of a part of a text by which an edit names its target."""
MIN_SHARE = 0.5
"""Least share of the longer one of both texts that the shorter one has."""
BEST = 5
"""How many entities and how many hyperedges a search begins with."""
DELETED = "deleted"
"""How the reason of an edit begins that stands for a published deletion."""
_CANDIDATES = 50


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer by a session with the published tools; arguments and errors as in `top.answer`. Topics are ignored."""
    return answered(PublishedSession, question, resources, trace)


class PublishedSegments(Segments):
    """The search: hyperedges of the best entities, and the best hyperedges.

    A hyperedge scores the sum of 1 / rank over both lists. The first is sorted by number of participants and weight,
    the second by weight. Passages, where a corpus has no hyperedges, are ranked by similarity.
    """

    def find(
        self, query: str, k: int, shown: Collection[str] = (), *, step: int = 0
    ) -> tuple[list[Piece], list[Piece]]:
        """Return the best k segments; those that were shown are shown again."""
        return super().find(query, k, (), step=step)[0], []

    def ranked(self, query: str) -> list[Piece]:
        """Return the segments, best first; deleted ones come last."""
        similar = super().ranked(query)
        by_text = [piece for piece in similar if piece.kind == "hyperedge"][:BEST]
        by_entity = self._of_entities(query)
        scores: dict[str, float] = {}
        pieces = {piece.iri: piece for piece in (*similar, *by_entity)}
        first = sorted(by_entity, key=lambda each: (-len(each.triples), -self._weight(each.iri), each.iri))
        second = sorted(by_text, key=lambda each: -self._weight(each.iri))
        for ranking in (first, second):
            for rank, piece in enumerate(ranking, 1):
                scores[piece.iri] = scores.get(piece.iri, 0.0) + 1 / rank
        best = sorted(scores, key=lambda iri: (self._is_deleted(iri), -scores[iri], iri))
        return [
            *(replace(pieces[iri], score=scores[iri]) for iri in best),
            *(piece for piece in similar if piece.iri not in scores),
        ]

    def contradicted_by(self, piece: Piece, best: Iterable[Piece]) -> frozenset[str]:
        """Return nothing: trust does not count."""
        return frozenset()

    def _weight(self, iri: str) -> float:
        return weight_of(self._overlay.record(iri))

    def _is_deleted(self, iri: str) -> bool:
        """Return whether the session deleted a hyperedge and has not updated it since."""
        edits = [each for each in self._overlay.edits if each.added is not None and each.added.iri == iri]
        return bool(edits) and edits[-1].edit.reason.startswith(DELETED)

    def _of_entities(self, query: str) -> list[Piece]:
        """Return the hyperedges in which the best entities take part."""
        (found,) = self._corpus.retriever("entity", self.channels).search([query], BEST)
        entities = {piece.iri for piece in found}
        index, statements = self._corpus.index, len(self._corpus.index.pieces("statement"))
        rows = [row for iri in entities if (row := index.pieces("entity").row(iri)) is not None]
        places = (fact - statements for fact in index.graph.facts_of(rows) if fact >= statements)
        hyperedges = map(index.pieces("hyperedge").piece, places)
        added = (each for each in self._overlay.added if entities & {entity for _, entity in each.participants})
        return [*(each for each in hyperedges if each.iri not in self._overlay.removed), *map(piece_of, added)]


def weight_of(record: HyperedgeRecord | None) -> float:
    """Return the weight of a hyperedge: its completeness, 1 if it is unknown."""
    return 1.0 if record is None or record.completeness is None else record.completeness


class PublishedEdits(Edits):
    """Edits after any search, without sources and gates."""

    def edit(self, kind: str, arguments: Mapping[str, Any], *, step: int = 1) -> Observation:
        """Apply an edit; arguments as the published schemas say."""
        new = str(arguments.get("content" if kind == "insert" else "new_content", ""))
        named = "" if kind == "insert" else str(arguments["content"])
        target = self._record_with(named)
        iri, text = (target.iri, target.segment) if target else ("", named)
        number = self.propose(Proposal(kind, new, target=iri, target_text=text), step=step)
        done: OverlayEdit | Rejection = Rejection("target", "No matching text was found.")
        if target is not None or kind == "insert":
            done = self.apply(number, (kind, iri, new, (), ""), step)
        if isinstance(done, OverlayEdit):
            return Observation(notes=("Success.",))
        self.trace.record(EditDecided(proposal=number, state="rejected", rule=done.rule, why=done.why, step=step))
        return Observation(notes=(f"Failed. {done.why}",), failed=True)

    def change(
        self, kind: str, target: str, content: str, sources: Sequence[ShownText] = (), reason: str = ""
    ) -> OverlayEdit:
        """Change the overlay; a deletion halves the weight."""
        if kind != "delete":
            return super().change(kind, target, content, sources, reason)
        weight = weight_of(self.overlay.record(target)) / 2
        return self.overlay.reweigh(target, weight, reason=f"{DELETED} by the language model")

    def _record_with(self, text: str) -> HyperedgeRecord | None:
        """Return the hyperedge of which a text is a part, or which is a part of the text; the closest one first."""
        wanted = normal_name(text)
        found = self.segments.ranked(text)[:_CANDIDATES] if len(wanted) >= MIN_PART else ()
        for piece in found:
            short, long = sorted((wanted, normal_name(piece.text)), key=len)
            if piece.kind == "hyperedge" and short in long and len(short) >= max(MIN_PART, MIN_SHARE * len(long)):
                return self.overlay.record(piece.iri)
        return None


class PublishedTools(Tools):
    """The published tools: `kb_search` in place of `graph_search`, and edits without gates."""

    segments_of = PublishedSegments
    edits_of = PublishedEdits
    ranked = False

    def call(self, name: str, arguments: Mapping[str, Any], *, step: int = 1) -> Observation:
        """Call a tool by its published name, and record the call."""
        return super().call("graph_search" if name == "kb_search" else name, arguments, step=step)


class PublishedSession(Session):
    """A session as published."""

    forced = False
    start = "evograph/published_start"
    tools_of = PublishedTools
    schemas = (
        schema_of("kb_search", "Searches the knowledge base.", SCHEMAS[0]["parameters"]["properties"]),
        schema_of("web_search", "Searches the web.", SCHEMAS[1]["parameters"]["properties"]),
        schema_of("insert", "Adds a fact to the knowledge base.", {"content": CONTENT}),
        schema_of(
            "update",
            "Replaces the text of a fact in the knowledge base.",
            {"content": {"type": "string", "description": "the present text"}, "new_content": CONTENT},
        ),
        schema_of(
            "delete",
            "Takes weight from a wrong fact in the knowledge base.",
            {"content": {"type": "string", "description": "its text"}},
        ),
    )
