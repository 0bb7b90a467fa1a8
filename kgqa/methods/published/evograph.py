"""EvoGraph-R1 as published (Lin et al. 2026, and its code): the same turns, with other tools.

The search ranks by weights, and shows again what was shown. Edits name their target by a part of its text; they need no
source, and no gate checks them. A deletion halves the weight of a hyperedge, which then comes last in results and can
still be found; here the weight is the completeness of the hyperedge, so a halved weight is an edit like any other. No
answer is forced, and a repeated call is made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgqa.corpus.editing.gates import Proposal, Rejection
from kgqa.corpus.editing.overlay import OverlayEdit
from kgqa.corpus.editing.sources import ShownText
from kgqa.corpus.items import normal_name
from kgqa.corpus.records import HyperedgeRecord
from kgqa.methods.evograph.answering import EvographSession, answered
from kgqa.methods.evograph.searching import ToolResult, piece_of
from kgqa.methods.evograph.tools import CONTENT, SCHEMAS, EvographTools, schema_of
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Named, Piece, Question, Value
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


def weight_of(record: HyperedgeRecord | None) -> float:
    """Return the weight of a hyperedge: its completeness, 1 if it is unknown."""
    return 1.0 if record is None or record.completeness is None else record.completeness


class PublishedTools(EvographTools):
    """The published tools: `kb_search` in place of `graph_search`, and edits without sources and gates.

    The search finds hyperedges of the best entities, and the best hyperedges. A hyperedge scores the sum of 1 / rank
    over both lists. The first is sorted by number of participants and weight, the second by weight. Passages, where a
    corpus has no hyperedges, are ranked by similarity.
    """

    def is_new(self, iri: str) -> bool:
        """Return yes: what was shown is shown again."""
        return True

    def ranked(self, query: str) -> list[Piece]:
        """Return the segments, best first; deleted ones come last."""
        similar, by_entity = super().ranked(query), self._of_entities(query)
        by_text = [piece for piece in similar if piece.kind == "hyperedge"][:BEST]
        pieces = {piece.iri: piece for piece in (*similar, *by_entity)}
        weights = {each.iri: weight_of(self.overlay.record(each.iri)) for each in (*by_text, *by_entity)}
        by_entity.sort(key=lambda each: (-len(each.triples), -weights[each.iri], each.iri))
        by_text.sort(key=lambda each: -weights[each.iri])
        scores: dict[str, float] = {}
        for rank, piece in (*enumerate(by_entity, 1), *enumerate(by_text, 1)):
            scores[piece.iri] = scores.get(piece.iri, 0.0) + 1 / rank
        edits = {each.added.iri: each.edit for each in self.overlay.edits if each.added}
        deleted = {iri for iri, edit in edits.items() if edit.reason.startswith(DELETED)}
        best = sorted(scores, key=lambda iri: (iri in deleted, -scores[iri], iri))
        return [
            *(replace(pieces[iri], score=scores[iri]) for iri in best),
            *(piece for piece in similar if piece.iri not in scores),
        ]

    def _of_entities(self, query: str) -> list[Piece]:
        """Return the hyperedges in which the best entities take part."""
        (found,) = self.corpus.retriever("entity", self.channels).search([query], BEST)
        entities = {piece.iri for piece in found}
        index, statements = self.corpus.index, len(self.corpus.index.pieces("statement"))
        rows = [row for iri in entities if (row := index.pieces("entity").row(iri)) is not None]
        places = (fact - statements for fact in index.graph.facts_of(rows) if fact >= statements)
        hyperedges = map(index.pieces("hyperedge").piece, places)
        added = (each for each in self.overlay.added if entities & {entity for _, entity in each.participants})
        return [*(each for each in hyperedges if each.iri not in self.overlay.removed), *map(piece_of, added)]

    def call(self, name: str, arguments: Mapping[str, Any], *, step: int = 1) -> ToolResult:
        """Call a tool by its published name, and record the call."""
        return super().call("graph_search" if name == "kb_search" else name, arguments, step=step)

    def edit(self, kind: str, arguments: Mapping[str, Any], step: int) -> ToolResult:
        """Apply an edit; arguments as the published schemas say."""
        content, changed, rejected = arguments["content"], ("", ""), None
        if kind != "insert":
            target = self._record_with(content)
            changed = (target.iri, target.segment) if target else ("", content)
            rejected = None if target else Rejection("target", "No matching text was found.")
            content = arguments.get("new_content", "")
        done = self.decide(Proposal(kind, content, (), *changed), rejected, step=step)
        if isinstance(done, Rejection):
            return ToolResult(notes=(f"Failed. {done.why}",), failed=True)
        return ToolResult(notes=("Success.",))

    def change(self, proposal: Proposal, sources: Sequence[ShownText], reason: str) -> OverlayEdit:
        """Change the overlay; a deletion halves the weight."""
        if proposal.kind != "delete":
            return super().change(proposal, sources, reason)
        weight = weight_of(self.overlay.record(proposal.target)) / 2
        return self.overlay.reweigh(proposal.target, weight, reason=f"{DELETED} by the language model")

    def _record_with(self, text: str) -> HyperedgeRecord | None:
        """Return the hyperedge of which a text is a part, or which is a part of the text; the closest one first."""
        wanted = normal_name(text)
        for piece in self.ranked(text)[:_CANDIDATES]:
            short, long = sorted((wanted, normal_name(piece.text)), key=len)
            if piece.kind == "hyperedge" and short in long and len(short) >= max(MIN_PART, MIN_SHARE * len(long)):
                return self.overlay.record(piece.iri)
        return None


class PublishedSession(EvographSession):
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
