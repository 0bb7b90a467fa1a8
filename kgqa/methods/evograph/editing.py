"""The tools that edit: they find the target, let the gates check the edit, and change the overlay of the question."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.gates import Proposal, Rejection, SessionCounts, check, contradicts, near_duplicate
from kgqa.corpus.editing.overlay import Overlay, OverlayEdit, Participants
from kgqa.corpus.editing.proposals import GatedEdit
from kgqa.corpus.editing.sources import ShownText
from kgqa.corpus.editing.trust import highest
from kgqa.corpus.extraction.sentences import sentence_spans
from kgqa.corpus.items import Party, normal_name
from kgqa.corpus.snapshot import parties_of
from kgqa.errors import CorpusError
from kgqa.llm.replies.reply import Form, reply_of
from kgqa.methods.evograph.results import Observation, Result, Results, without_marks
from kgqa.methods.evograph.segments import Segments, piece_of
from kgqa.methods.resources import Resources
from kgqa.text.quotes import find_name
from kgqa.trace import EditDecided, EditProposed, ProposedSource
from kgqa.trace.trace import Trace

NEAR = 3
"""How many shown texts are named if the target of an edit is unknown."""
NO_CHANGE = "Result {} is a {}; only hyperedges can be changed. Insert the right statement instead."
_LIKE = 5
MAX_PARTICIPANTS = 12
_CANDIDATES = 40
_NAME = re.compile(r"[A-Z][\w'’-]*(?:(?: (?:of|the|de|la|von|van|du|da))? [A-Z0-9][\w'’-]*)*")
_SENTENCE_START = re.compile(r"(?:^|[.!?] )$")
_KINDS = {"chunk": "passage of a document", "web": "passage of the web"}
Change = tuple[str, str, str, Sequence[ShownText], str]
"""The kind of an edit, the IRI of its target, its new text, the texts that it rests on, and its reason."""


@dataclass(frozen=True)
class _Participant:
    sentence: int
    name: Annotated[str, Form(chars=200)]
    type: Annotated[str, Form(chars=60)] = ""
    role: Annotated[str, Form(chars=60)] = ""


@dataclass(frozen=True)
class _Listed:
    participants: tuple[_Participant, ...]


class Edits:
    """The edits of one question.

    Args:
        overlay: What the edits change.
        shown: What the session has shown.
        segments: Finds near-duplicates.
        trace: The trace of the question.
    """

    def __init__(self, overlay: Overlay, shown: Results, segments: Segments, trace: Trace) -> None:
        self.gated: list[GatedEdit] = []
        self.accepted: dict[int, OverlayEdit] = {}
        """The edits that passed the gates, by the number of their proposal."""
        self.overlay = overlay
        self.shown = shown
        self.segments = segments
        self.trace = trace
        self.proposals = 0
        self._changes: dict[int, Change] = {}
        self._participants: Mapping[str, Participants] = {}

    def edit(self, kind: str, arguments: Mapping[str, Any], *, step: int = 1) -> Observation:
        """Propose an edit, and apply it to the overlay if it passes the gates.

        Args:
            kind: insert, update or delete.
            arguments: as the schema of the tool says.
            step: the turn, for the events.
        """
        content = str(arguments.get("new_content" if kind == "update" else "content", ""))
        target = None if kind == "insert" else self._target(arguments["target"])
        if isinstance(target, Observation):
            return target
        proposal = Proposal(
            kind,
            content,
            self._sources(arguments.get("sources"), target if kind == "delete" else None),
            target.iri if target else "",
            target.text if target else "",
            self.overlay.trust_of(target.iri) if target else "",
        )
        texts = {each.number: ShownText(each.number, each.iri, each.text, each.trust) for each in self.shown}
        sources = [texts[number] for number in proposal.sources if number in texts]
        reason = without_marks(str(arguments.get("reason", "")))
        number = self.propose(proposal, sources, reason, step)
        deletes = sum(each.edit.kind == "delete" for each in self.accepted.values())
        rejected = check(proposal, texts, SessionCounts(len(self.accepted), deletes))
        same = self._duplicate(content) if rejected is None and kind == "insert" else None
        if same is not None:
            rejected = Rejection("duplicate", f"Result {same.number} says this already.")
        if rejected is None:
            done = self.apply(number, (kind, proposal.target, content, sources, reason), step)
            if isinstance(done, OverlayEdit):
                return self._done(done)
            rejected, sources = done, []
        self._reject(number, proposal, sources, rejected, step)
        return Observation((same,) if same else (), (f"Not done. {rejected.why}",), failed=True)

    def propose(self, proposal: Proposal, sources: Iterable[ShownText] = (), reason: str = "", step: int = 1) -> int:
        """Record a proposed edit, and return its number."""
        self.proposals += 1
        event = EditProposed(
            proposal=self.proposals,
            edit=proposal.kind,
            content=proposal.content,
            target=proposal.target,
            target_text=proposal.target_text,
            reason=reason,
            sources=tuple(ProposedSource(each.number, each.iri, each.trust) for each in sources),
            step=step,
        )
        self.trace.record(event)
        return self.proposals

    def apply(self, number: int, change: Change, step: int) -> OverlayEdit | Rejection:
        """Apply a proposed edit to the overlay."""
        try:
            done = self.change(*change)
        except CorpusError as error:
            return Rejection("corpus", error.message)
        self.accepted[number], self._changes[number] = done, change
        self.trace.record(EditDecided(proposal=number, state="overlay", edit=done.edit.id, step=step))
        return done

    def change(
        self, kind: str, target: str, content: str, sources: Sequence[ShownText] = (), reason: str = ""
    ) -> OverlayEdit:
        """Change the overlay; see `Change`. Raises CorpusError if it cannot be changed like this."""
        if kind == "delete":
            return self.overlay.delete(target, sources, reason)
        participants = self._participants.get(content) or named_participants(content, self.overlay.corpus)
        if kind == "insert":
            return self.overlay.insert(content, participants, sources, reason)
        return self.overlay.update(target, content, participants, sources, reason)

    def contents(self) -> tuple[str, ...]:
        """Return the texts of the hyperedges that the accepted edits add."""
        return tuple(dict.fromkeys(each.added.segment for each in self.accepted.values() if each.added))

    def with_participants(self, found: Mapping[str, Participants]) -> None:
        """Make the accepted edits again in an empty overlay, with other participants of these texts."""
        self._participants = found
        self.overlay = self.overlay.emptied()
        iris: dict[str, str] = {}
        """The IRI of each hyperedge that an edit added, by its former one."""
        for number, (kind, target, content, sources, reason) in self._changes.items():
            before = self.accepted[number].added
            moved = [replace(source, iri=iris.get(source.iri, source.iri)) for source in sources]
            done = self.change(kind, iris.get(target, target), content, moved, reason)
            if before is not None and done.added is not None:
                iris[before.iri] = done.added.iri
            self.accepted[number] = done

    def _done(self, done: OverlayEdit) -> Observation:
        if done.added is None:
            return Observation(notes=("Done. The text is hidden.",))
        number = self._show(piece_of(done.added)).number
        if done.disputed:
            note = f"Both stand, because the old text is trusted more. The new one is {number}."
            return Observation(notes=(note,))
        return Observation(notes=(f"Done. The new text is result {number}.",))

    def _reject(
        self, number: int, proposal: Proposal, sources: Iterable[ShownText], rejected: Rejection, step: int
    ) -> None:
        agent, session, question = self.overlay.about
        iris, rule, why = tuple(each.iri for each in sources), rejected.rule, rejected.why
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        edit = (proposal.kind, proposal.content, proposal.target)
        self.gated.append(GatedEdit(*edit, iris, rule, why, session, question, agent, at))
        self.trace.record(EditDecided(proposal=number, state="rejected", rule=rule, why=why, step=step))

    def _target(self, target: int | str) -> Result | Observation:
        """Return the hyperedge that is meant, or else what to tell the language model."""
        result = self.shown.get(target) if isinstance(target, int) else self.shown.find(target)
        near: tuple[Result, ...] = ()
        if result is None:
            by_text = {each.text: each for each in self.shown if each.kind == "hyperedge"}
            close = difflib.get_close_matches(target[:500], by_text, NEAR, 0.4) if isinstance(target, str) else ()
            near = tuple(by_text[each] for each in close)
            hint = f" The nearest: {', '.join(str(each.number) for each in near)}." if near else ""
            problem = f"No such result was shown.{hint}"
        elif result.kind != "hyperedge":
            problem = NO_CHANGE.format(result.number, _KINDS[result.kind])
        elif self.overlay.record(result.iri) is None:
            problem = f"Result {result.number} was replaced or hidden before."
        else:
            return result
        return Observation(near, (f"Not done. {problem}",), failed=True)

    def _sources(self, given: Any, deleted: Result | None) -> tuple[int, ...]:
        if given or deleted is None:
            return tuple(dict.fromkeys(given or ()))
        # the model need not name what contradicts the text; a source that is trusted less adds nothing
        against = [each for each in self.shown if contradicts(each.text, deleted.text)]
        best = highest(each.trust for each in against)
        return tuple(each.number for each in against if each.trust == best)

    def _duplicate(self, content: str) -> Result | None:
        """Return the hyperedge, or the passage that was shown, that says the same; None if there is none."""
        live = {record.iri: piece_of(record) for record in self.overlay.added}
        similar = [piece for piece in self.segments.ranked(content) if piece.kind == "hyperedge"]
        live |= {piece.iri: piece for piece in similar[:_LIKE]}
        sentences = (
            ShownText(each.number, each.iri, each.text[begin:end])
            for each in self.shown.passages
            for begin, end in sentence_spans(each.text)
        )
        same = near_duplicate(content, [*(ShownText(0, piece.iri, piece.text) for piece in live.values()), *sentences])
        if same is None:
            return None
        return self.shown.get(same.number) or self._show(live[same.iri])

    def _show(self, piece: Any) -> Result:
        trust = self.overlay.trust_of(piece.iri)
        return self.shown.show(piece.text, "hyperedge", piece.iri, trust=trust, piece=piece)


def asked_participants(contents: Sequence[str], resources: Resources, trace: Trace) -> dict[str, Participants]:
    """Return the participants of texts, with types and roles, as the language model lists them in one call.

    A text is missing in the result if the reply cannot be read or names nothing in it.
    """
    prompt = resources.prompts.prompt("evograph/participants", "extract", reply_of(_Listed), sentences=list(contents))
    (reply,) = resources.ask([prompt], trace)
    found: dict[str, dict[tuple[str, Party], None]] = defaultdict(dict)
    for each in reply.participants if reply else ():
        content = contents[each.sentence - 1] if 1 <= each.sentence <= len(contents) else ""
        if find_name(content, each.name) and len(found[content]) < MAX_PARTICIPANTS:
            found[content][each.role, Party(each.name, each.type)] = None
    return {content: list(parties) for content, parties in found.items() if parties}


def named_participants(content: str, corpus: Corpus) -> Participants:
    """Return the entities of a corpus that a text names, and after them the other names in it; roles are unknown.

    A name that is a part of a longer one is left out.
    """
    known = [party for party in _candidates(content, corpus) if find_name(content, party.name)]
    known.sort(key=lambda each: (-len(each.name), each.name, each.type))
    found: dict[str, Party] = {}
    for party in (*known, *map(Party, _names(content))):
        if not any(find_name(longer, party.name) for longer in found):
            found.setdefault(normal_name(party.name), party)
    return [("", party) for party in list(found.values())[:MAX_PARTICIPANTS]]


def _candidates(content: str, corpus: Corpus) -> Iterable[Party]:
    """Yield the names of entities that share words with a text."""
    (pieces,) = corpus.retriever("entity", ("bm25",)).search([content], _CANDIDATES)
    wanted = {piece.iri for piece in pieces}
    additions = corpus.database.live.concerning(wanted, corpus.reader.seq).values() if wanted else ()
    return (party for addition in additions for party in parties_of(addition.item) if party.iri in wanted)


def _names(content: str) -> Iterator[str]:
    """Yield names by their capitals; a single word that begins a sentence is none."""
    for match in _NAME.finditer(content):
        if " " in match[0] or not _SENTENCE_START.search(content[: match.start()]):
            yield match[0]
