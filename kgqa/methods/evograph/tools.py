"""The tools of a session: they search the graph and the web, and edit the graph. They need no language model."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgqa.corpus.editing.gates import Proposal, Rejection, check, contradicts, near_duplicate
from kgqa.corpus.editing.overlay import Overlay, OverlayEdit
from kgqa.corpus.editing.sources import ShownText
from kgqa.corpus.editing.trust import highest, trust_of_address
from kgqa.corpus.extraction.sentences import sentence_spans
from kgqa.corpus.items import normal_name
from kgqa.errors import CorpusError, KgqaError
from kgqa.methods.evograph.declarations import EvographSettings
from kgqa.methods.evograph.participants import named_participants
from kgqa.methods.evograph.searching import SegmentSearch, ShownResult, ToolResult, piece_of, without_marks
from kgqa.methods.evograph.web import WebSearch
from kgqa.methods.text.searching import within_tokens
from kgqa.text.words import clean
from kgqa.trace import Called, EditDecided, EditProposed, ProposedSource, Retrieved
from kgqa.trace.trace import Trace

SEARCH_TOKENS = 2_000
"""About how many tokens the segments of one search have together; a long chunk is shown whole."""
IMAGE_QUERY = "<img>"
"""The query that stands for the image of the question."""
EDITS = ("insert", "update", "delete")
MAX_NAME_CHARS, MAX_NAMES = 200, 20
NEAR, LIKE = 3, 5
"""How many texts are named if the target of an edit is unknown, and compared with a new one."""
NO_CHANGE = "only hyperedges can be changed. Insert the right statement instead."
_QUERY = {"type": "string", "description": "words of the text that is looked for"}
CONTENT = {"type": "string", "description": "one plain sentence that can be understood alone, at most 500 characters"}
_SOURCES = {
    "type": "array",
    "items": {"type": "integer"},
    "description": "the numbers of the results that say so",
}
_TARGET = {"type": ["integer", "string"], "description": "the number of the result, or its whole text"}
_REASON = {"type": "string", "description": "why it is wrong"}
_AGAINST = {**_SOURCES, "description": "the numbers of the results that contradict it"}


def schema_of(name: str, about: str, properties: Mapping[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    """Return what the language model is told of a tool; all properties are required unless some are named."""
    parameters = {"type": "object", "properties": properties, "required": list(required or properties)}
    return {"name": name, "description": about, "parameters": {**parameters, "additionalProperties": False}}


SCHEMAS = (
    schema_of("graph_search", "Searches the knowledge base.", {"query": _QUERY}),
    schema_of("web_search", "Searches the web, for what the knowledge base lacks.", {"query": _QUERY}),
    schema_of(
        "insert",
        "Adds a fact that results state and the knowledge base lacks.",
        {"content": CONTENT, "sources": _SOURCES},
    ),
    schema_of(
        "update",
        "Replaces a hyperedge that is wrong, vague or out of date.",
        {"target": _TARGET, "new_content": CONTENT, "sources": _SOURCES},
    ),
    schema_of(
        "delete",
        "Hides a hyperedge that another result contradicts.",
        {"target": _TARGET, "reason": _REASON, "sources": _AGAINST},
        ["target", "reason"],
    ),
)


def allowed_tools(settings: EvographSettings, web: WebSearch | None) -> list[str]:
    """Return the names of the tools that may be called."""
    names = map(str.strip, settings.tools.split(","))
    return [name for name in names if name != "web_search" or web is not None]


class EvographTools(SegmentSearch):
    """The tools of one session, what they have shown, and its edits, which other sessions do not see.

    Args:
        overlay: What the edits change.
        settings: The settings of the method.
        trace: The trace of the question.
        web: The search of the web; None if there is none.

    Attributes:
        proposals: The number of the last proposed edit.
        accepted: The numbers of the proposals that passed the gates, in the order of the edits of the overlay.
        image_names: The names of what the image of the question may show.
    """

    def __init__(
        self, overlay: Overlay, settings: EvographSettings, trace: Trace, web: WebSearch | None = None
    ) -> None:
        super().__init__(overlay, settings, trace)
        self._web, self.proposals = web, 0
        self.accepted: list[int] = []
        self.image_names: tuple[str, ...] = ()

    def call(self, name: str, arguments: Mapping[str, Any], *, step: int = 1) -> ToolResult:
        """Call a tool and record the call.

        Args:
            name: A tool.
            arguments: Its arguments, as its schema says.
            step: The turn.
        """
        if name in EDITS:
            found = self.edit(name, arguments, step)
        elif name == "web_search":
            found = self._web_search(arguments["query"], step)
        else:
            found = self._graph_search(arguments["query"], step)
        names = tuple(result.text[:MAX_NAME_CHARS] for result in found.results[:MAX_NAMES])
        total, given = len(found.results), json.dumps(dict(arguments), ensure_ascii=False)
        self.trace.record(
            Called(name=name, arguments=(given,), names=names, total=total, failed=found.failed, step=step)
        )
        return found

    def _graph_search(self, query: str, step: int) -> ToolResult:
        notes: tuple[str, ...] = ()
        if query.strip() == IMAGE_QUERY:
            names = [name for each in self.image_names if (name := without_marks(each))]
            if not names:
                return ToolResult(notes=("The question has no image.",), failed=True)
            query = " ".join(names)
            notes = (f"The image may show: {json.dumps(names, ensure_ascii=False)}.",)
        new, known = self.find(query, step=step)
        found = self._found(map(self.show_piece, within_tokens(new, SEARCH_TOKENS)), known)
        return replace(found, notes=(*notes, *found.notes))

    def _web_search(self, query: str, step: int) -> ToolResult:
        if self._web is None:
            return ToolResult(notes=("Web search is not available.",), failed=True)
        try:
            passages = self._web(query, self.settings.results)
        except KgqaError as error:
            return ToolResult(notes=(f"The web could not be searched: {clean(str(error))[:300]}",), failed=True)
        iris = tuple(each.address for each in passages)
        self.trace.record(Retrieved(query=query, pieces=iris, step=step, channel="web"))
        known, domains = self.numbers(iris), self.settings.domains.split(",")
        new = [each for each in passages if not self.shown.number(each.address)]
        results = [
            ShownResult(
                0, each.address, each.text, trust_of_address(each.address, domains), title=each.title, score=1 / rank
            )
            for rank, each in enumerate(new, 1)
        ]
        return self._found(map(self.show, results), known)

    def _found(self, results: Iterable[ShownResult], known: Sequence[int]) -> ToolResult:
        """Return what a search has found: new results, and the numbers of those that were shown before."""
        found, numbers = tuple(results), ", ".join(map(str, known))
        notes = [f"Found again: {numbers}, shown above."] if numbers else []
        if not found:
            notes.append("Nothing else was found." if numbers else "Nothing was found.")
        return ToolResult(found, tuple(notes))

    def edit(self, kind: str, arguments: Mapping[str, Any], step: int) -> ToolResult:
        """Propose an edit, and apply it to the overlay if it passes the gates.

        Args:
            kind: insert, update or delete.
            arguments: As the schema of the tool says.
            step: The turn, for the events.
        """
        content = str(arguments.get("new_content" if kind == "update" else "content", ""))
        target = None if kind == "insert" else self._target(arguments["target"])
        if isinstance(target, ToolResult):
            return target
        numbers = tuple(dict.fromkeys(arguments.get("sources") or ()))
        if kind == "delete" and target is not None and not numbers:
            numbers = self._against(target)
        changed = (target.iri, target.text, self.overlay.trust_of(target.iri)) if target else ()
        proposal = Proposal(kind, content, numbers, *changed)
        shown = {each.number: each for each in self.shown}
        sources = [shown[number] for number in numbers if number in shown]
        rejected = check(proposal, shown, [each.edit.kind for each in self.overlay.edits])
        same = self._duplicate(content) if rejected is None and kind == "insert" else None
        if same is not None:
            rejected = Rejection("duplicate", f"Result {same.number} says this already.")
        done = self.decide(proposal, rejected, sources, without_marks(str(arguments.get("reason", ""))), step=step)
        if isinstance(done, Rejection):
            self.overlay.reject(proposal, sources, done)
            return ToolResult((same,) if same else (), (f"Not done. {done.why}",), failed=True)
        number = self.show_piece(piece_of(done.added)).number if done.added else 0
        text = f"The new text is result {number}." if number else "The text is hidden."
        if done.disputed:
            return ToolResult(notes=(f"Both stand, because the old text is trusted more. The new one is {number}.",))
        return ToolResult(notes=(f"Done. {text}",))

    def decide(
        self,
        proposal: Proposal,
        rejected: Rejection | None,
        sources: Sequence[ShownText] = (),
        reason: str = "",
        *,
        step: int,
    ) -> OverlayEdit | Rejection:
        """Change the overlay unless the proposed edit is rejected; record both."""
        self.proposals += 1
        number, named = self.proposals, tuple(ProposedSource(each.number, each.iri, each.trust) for each in sources)
        self.trace.record(
            EditProposed(
                proposal=number,
                edit=proposal.kind,
                content=proposal.content,
                target=proposal.target,
                target_text=proposal.target_text,
                reason=reason,
                sources=named,
                step=step,
            )
        )
        try:
            done = rejected or self.change(proposal, sources, reason)
        except CorpusError as error:
            done = Rejection("corpus", error.message)
        if isinstance(done, Rejection):
            self.trace.record(EditDecided(proposal=number, state="rejected", rule=done.rule, why=done.why, step=step))
        else:
            self.accepted.append(number)
            self.trace.record(EditDecided(proposal=number, state="overlay", edit=done.edit.id, step=step))
        return done

    def change(self, proposal: Proposal, sources: Sequence[ShownText], reason: str) -> OverlayEdit:
        """Change the overlay. Raises CorpusError if it cannot be changed like this."""
        if proposal.kind == "delete":
            return self.overlay.delete(proposal.target, sources, reason)
        participants = named_participants(proposal.content, self.overlay.corpus)
        if proposal.kind == "insert":
            return self.overlay.insert(proposal.content, participants, sources, reason)
        return self.overlay.update(proposal.target, proposal.content, participants, sources, reason)

    def _target(self, target: int | str) -> ShownResult | ToolResult:
        """Return the hyperedge that is meant, or else what to tell the language model."""
        near: list[ShownResult] = []
        text = normal_name(without_marks(str(target)))
        equal = [each for each in self.shown if each.number == target or normal_name(each.text) == text]
        result = min(equal, key=lambda each: each.number != target, default=None)
        if result is None:
            by_text = {each.text: each for each in self.shown if each.kind == "hyperedge"}
            near = [by_text[each] for each in difflib.get_close_matches(str(target)[:500], by_text, NEAR, 0.4)]
            hint = f" The nearest: {', '.join(str(each.number) for each in near)}." if near else ""
            problem = f"No such result was shown.{hint}"
        elif result.kind != "hyperedge":
            passage = f"passage of {'a document' if result.kind == 'chunk' else 'the web'}"
            problem = f"Result {result.number} is a {passage}; {NO_CHANGE}"
        elif self.overlay.record(result.iri) is None:
            problem = f"Result {result.number} was replaced or hidden before."
        else:
            return result
        return ToolResult(tuple(near), (f"Not done. {problem}",), failed=True)

    def _against(self, deleted: ShownResult) -> tuple[int, ...]:
        """Return the results that contradict a text and are trusted most; the model need not name them."""
        against = [each for each in self.shown if contradicts(each.text, deleted.text)]
        best = highest(each.trust for each in against)
        return tuple(each.number for each in against if each.trust == best)

    def _duplicate(self, content: str) -> ShownResult | None:
        """Return the hyperedge, or the passage that was shown, that says the same; None if there is none."""
        similar = [piece for piece in self.ranked(content) if piece.kind == "hyperedge"]
        live = {piece.iri: piece for piece in (*map(piece_of, self.overlay.added), *similar[:LIKE])}
        sentences = (
            ShownText(each.number, each.iri, each.text[begin:end])
            for each in self.shown.passages
            for begin, end in sentence_spans(each.text)
        )
        same = near_duplicate(content, [*(ShownText(0, piece.iri, piece.text) for piece in live.values()), *sentences])
        if same is None:
            return None
        return self.shown.get(same.number) or self.show_piece(live[same.iri])
