"""The tools that edit: they find the target, let the gates check the edit, and change the overlay of the question."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from kgqa.corpus.editing.gates import Proposal, Rejection, SessionCounts, check, contradicts, near_duplicate
from kgqa.corpus.editing.overlay import Overlay, OverlayEdit, Participants
from kgqa.corpus.editing.proposals import GatedEdit
from kgqa.corpus.editing.sources import ShownText
from kgqa.corpus.editing.trust import highest
from kgqa.corpus.extraction.sentences import sentence_spans
from kgqa.errors import CorpusError
from kgqa.methods.evograph.results import Result, ShownResults, without_marks
from kgqa.methods.evograph.segments import SegmentSearch, piece_of
from kgqa.model import Piece
from kgqa.trace import EditDecided, EditProposed, ProposedSource
from kgqa.trace.trace import Trace

NEAR = 3
"""How many shown texts are named if the target of an edit is unknown."""
NO_CHANGE = "Result {} is a {}; only hyperedges can be changed. Insert the right statement instead."
_LIKE = 5


@dataclass(frozen=True, slots=True)
class EditResult:
    """What an edit returns to the language model. `shown`: results that it should see."""

    notes: tuple[str, ...]
    failed: bool = False
    shown: tuple[Result, ...] = ()


class EditTools:
    """Insert, update and delete for one question.

    Args:
        overlay: The edits of the question.
        shown: What the session has shown.
        segments: Finds near-duplicates.
        participants: Finds the participants of a text.
        trace: The trace of the question.
        about: Session, question and agent, for what is kept of rejected edits.
    """

    def __init__(
        self,
        overlay: Overlay,
        shown: ShownResults,
        segments: SegmentSearch,
        participants: Callable[[str], Participants],
        trace: Trace,
        *,
        about: tuple[str, str, str],
    ) -> None:
        self.gated: list[GatedEdit] = []
        self.accepted: dict[int, OverlayEdit] = {}
        """The edits that passed the gates, by the number of their proposal."""
        self._overlay = overlay
        self._shown = shown
        self._segments = segments
        self._participants = participants
        self._trace = trace
        self._about = about
        self._proposals = 0

    def edit(self, kind: str, arguments: Mapping[str, Any], *, step: int = 1) -> EditResult:
        """Propose an edit, and apply it to the overlay if it passes the gates.

        Args:
            kind: insert, update or delete.
            arguments: as the schema of the tool says.
            step: the turn, for the events.
        """
        content = str(arguments.get("new_content" if kind == "update" else "content", ""))
        target, problem = self._target(arguments["target"]) if kind != "insert" else (None, None)
        if problem is not None:
            return problem
        sources = self._sources(kind, arguments.get("sources"), target)
        self._proposals += 1
        number = self._proposals
        proposal = Proposal(
            kind,
            content,
            sources,
            target.iri if target else "",
            target.text if target else "",
            self._overlay.trust_of(target.iri) if target else "",
        )
        texts = {result.number: _shown_text(result) for result in self._shown}
        reason = without_marks(str(arguments.get("reason", "")))
        self._trace.record(
            EditProposed(
                proposal=number,
                edit=kind,
                content=content,
                target=proposal.target,
                target_text=proposal.target_text,
                reason=reason,
                sources=tuple(ProposedSource(n, texts[n].iri, texts[n].trust) for n in sources if n in texts),
                step=step,
            )
        )
        deletes = sum(each.edit.kind == "delete" for each in self.accepted.values())
        rejected = check(proposal, texts, SessionCounts(len(self.accepted), deletes))
        same = self._duplicate(content) if rejected is None and kind == "insert" else None
        if same is not None:
            rejected = Rejection("duplicate", f"Result {same.number} says this already.")
        if rejected is None:
            return self._apply(number, proposal, [texts[each] for each in sources], reason, step)
        return self._reject(number, proposal, texts, rejected, step, same)

    def contents(self) -> tuple[str, ...]:
        """Return the texts of the hyperedges that the accepted edits add."""
        return tuple(dict.fromkeys(each.added.segment for each in self.accepted.values() if each.added))

    def with_participants(self, found: Mapping[str, Participants]) -> Overlay:
        """Make the accepted edits again, with other participants, and return the overlay that contains them.

        Args:
            found: the participants of each text; those of other texts stay as they were found by name.
        """
        overlay = self._overlay.emptied()
        iris: dict[str, str] = {}
        """The IRI of each hyperedge that an edit added, by its former one."""
        for number, each in self.accepted.items():
            target = iris.get(each.edit.target, each.edit.target)
            sources = [replace(source, iri=iris.get(source.iri, source.iri)) for source in each.sources]
            reason, added = each.edit.reason, each.added
            if added is None:
                done = overlay.delete(target, sources, reason)
            elif added.iri == each.edit.target and added.completeness is not None:
                done = overlay.reweigh(target, added.completeness, reason)
            else:
                parties = found.get(added.segment) or self._participants(added.segment)
                if each.edit.kind == "insert":
                    done = overlay.insert(added.segment, parties, sources, reason)
                else:
                    done = overlay.update(target, added.segment, parties, sources, reason)
            if added is not None and done.added is not None:
                iris[added.iri] = done.added.iri
            self.accepted[number] = done
        self._overlay = overlay
        return overlay

    def _apply(
        self, number: int, proposal: Proposal, sources: Sequence[ShownText], reason: str, step: int
    ) -> EditResult:
        overlay, content = self._overlay, proposal.content
        try:
            if proposal.kind == "insert":
                done = overlay.insert(content, self._participants(content), sources, reason)
            elif proposal.kind == "update":
                done = overlay.update(proposal.target, content, self._participants(content), sources, reason)
            else:
                done = overlay.delete(proposal.target, sources, reason)
        except CorpusError as error:
            return self._reject(number, proposal, {}, Rejection("corpus", error.message), step, None)
        self.accepted[number] = done
        self._trace.record(EditDecided(proposal=number, state="overlay", edit=done.edit.id, step=step))
        if done.added is None:
            return EditResult(("Done. The text is hidden.",))
        result = self._show(piece_of(done.added))
        if done.disputed:
            return EditResult((f"Both stand, because the old text is trusted more. The new one is {result.number}.",))
        return EditResult((f"Done. The new text is result {result.number}.",))

    def _reject(
        self,
        number: int,
        proposal: Proposal,
        texts: Mapping[int, ShownText],
        rejected: Rejection,
        step: int,
        same: Result | None,
    ) -> EditResult:
        session, question, agent = self._about
        iris = tuple(texts[each].iri for each in proposal.sources if each in texts)
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.gated.append(
            GatedEdit(
                proposal.kind,
                proposal.content,
                proposal.target,
                iris,
                rejected.rule,
                rejected.why,
                session,
                question,
                agent,
                at,
            )
        )
        rule, why = rejected.rule, rejected.why
        self._trace.record(EditDecided(proposal=number, state="rejected", rule=rule, why=why, step=step))
        return EditResult((f"Not done. {rejected.why}",), failed=True, shown=(same,) if same else ())

    def _target(self, target: int | str) -> tuple[Result | None, EditResult | None]:
        """Return the hyperedge that is meant, or else what to tell the language model."""
        result = self._shown.get(target) if isinstance(target, int) else self._shown.find(target)
        if result is None:
            near = self._nearest(str(target)) if isinstance(target, str) else ()
            numbers = ", ".join(str(each.number) for each in near)
            hint = f" The nearest: {numbers}." if near else ""
            return None, EditResult((f"Not done. No such result was shown.{hint}",), failed=True, shown=near)
        if result.kind != "hyperedge":
            kind = {"chunk": "passage of a document", "web": "passage of the web"}[result.kind]
            return None, EditResult((f"Not done. {NO_CHANGE.format(result.number, kind)}",), failed=True)
        if self._overlay.record(result.iri) is None:
            return None, EditResult((f"Not done. Result {result.number} was replaced or hidden before.",), failed=True)
        return result, None

    def _nearest(self, text: str) -> tuple[Result, ...]:
        by_text = {result.text: result for result in self._shown if result.kind == "hyperedge"}
        return tuple(by_text[each] for each in difflib.get_close_matches(text[:500], by_text, n=NEAR, cutoff=0.4))

    def _sources(self, kind: str, given: Any, target: Result | None) -> tuple[int, ...]:
        if given:
            return tuple(dict.fromkeys(given))
        if kind == "delete" and target is not None:
            # the model need not name what contradicts the text; a source that is trusted less adds nothing
            against = [each for each in self._shown if contradicts(each.text, target.text)]
            best = highest(each.trust for each in against)
            return tuple(each.number for each in against if each.trust == best)
        return ()

    def _duplicate(self, content: str) -> Result | None:
        """Return the hyperedge, or the passage that was shown, that says the same; None if there is none."""
        live = {record.iri: piece_of(record) for record in self._overlay.added}
        similar = [piece for piece in self._segments.ranked(content) if piece.kind == "hyperedge"]
        live |= {piece.iri: piece for piece in similar[:_LIKE]}
        texts = [ShownText(0, piece.iri, piece.text) for piece in live.values()]
        same = near_duplicate(content, [*texts, *self._sentences()])
        if same is None:
            return None
        return self._shown.get(same.number) or self._show(live[same.iri])

    def _sentences(self) -> Iterator[ShownText]:
        """Yield the sentences of the passages of the corpus that were shown."""
        for each in self._shown:
            if each.kind == "chunk":
                for begin, end in sentence_spans(each.text):
                    yield ShownText(each.number, each.iri, each.text[begin:end])

    def _show(self, piece: Piece) -> Result:
        trust = self._overlay.trust_of(piece.iri)
        return self._shown.add(piece.text, "hyperedge", piece.iri, trust=trust, piece=piece)


def _shown_text(result: Result) -> ShownText:
    return ShownText(result.number, result.iri, result.text, result.trust)
