"""EvoGraph-R1 (Lin et al. 2026): a language model searches a hypergraph, repairs it, and answers.

In each turn the model thinks, calls a tool and reads the results, until it answers.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.committing import commit
from kgqa.corpus.editing.overlay import Overlay
from kgqa.corpus.extraction.images import image_of
from kgqa.errors import QuestionError, SettingsError
from kgqa.graph.opening import open_graph_of
from kgqa.llm.client import MAX_IMAGE_BYTES, Image, Message, TypedPrompt
from kgqa.llm.replies.answers import AnswersReply, read_answers, read_cited_answers
from kgqa.llm.replies.reply import Reply, schema_of
from kgqa.llm.replies.tool_calls import ToolReply, read_tool_reply
from kgqa.methods.ask import cache_of
from kgqa.methods.evograph.declarations import EvographSettings
from kgqa.methods.evograph.participants import asked_participants
from kgqa.methods.evograph.searching import ShownResult, ToolResult
from kgqa.methods.evograph.tools import EDITS, IMAGE_QUERY, SCHEMAS, EvographTools, allowed_tools
from kgqa.methods.evograph.web import WebSearch, opened_web_search
from kgqa.methods.grounding import UNQUOTED, ground
from kgqa.methods.resources import Resources
from kgqa.methods.text.searching import BYTES_PER_TOKEN, within_budget
from kgqa.methods.turns import MAX_REPEATS, Move, take_turns
from kgqa.model import Answer, Literal, Named, Question, Value
from kgqa.storage.loading import read_bytes
from kgqa.text.quotes import find_name, stand_in_quotes
from kgqa.text.words import clean
from kgqa.trace import ActionRead, Called, EditDecided, Finished, Seen, TaskGiven
from kgqa.trace.trace import BudgetExhausted, Trace

METHOD, STAGE = "evograph", "act"
MAX_HISTORY_THOUGHT = 1_500
"""Longest part of an earlier thought that later prompts show."""
MAX_SILENT = 2
"""After how many turns without any reply, as of a server that rejects the prompt, a session ends."""
MAX_IMAGES, MAX_IMAGE_NAMES, MAX_SOURCES = 4, 3, 5
UNKNOWN = "The language model found no answer."
_ONE_AT_A_TIME = threading.Lock()
"""Held by a question that others build on."""


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer by a session with tools; arguments and errors as in `top.answer`. Topics are ignored."""
    return answered(EvographSession, question, resources, trace)


def answered(kind: type[EvographSession], question: Question, resources: Resources, trace: Trace) -> Answer:
    """Answer a question by a kind of session, ground the answer, and commit the edits."""
    own, spent = resources.settings.of(EvographSettings), ""
    move: Move[ToolReply, str] = Move()
    with _current(resources) as resources, opened_web_search(own.web) as web:
        session = kind(question, resources, trace, web)
        try:
            with within_budget(trace):
                if session.images and "graph_search" in session.allowed:
                    session.tools.image_names = names_of_images(session)
                _, move = take_turns(session, own.turns, trace, at_end="answer" if kind.forced else "go on")
        except BudgetExhausted as error:
            spent = error.reason
        with trace.grace():
            found = grounded(session, move)
        if spent:
            found = replace(found, status="budget_exhausted", reason=spent, accepted=False)
        return replace(found, notes=(*found.notes, *commit_edits(session)))


class EvographSession:
    """The session of one question: an `Agent` of turns.

    Args:
        question: The question.
        resources: The resources of the run.
        trace: The trace of the question.
        web: The search of the web; None if there is none.

    Attributes:
        forced: Whether trust and gates guard the corpus, the last reply must be an answer, and no call is repeated.
        turn: The number of the last turn.

    Raises:
        QuestionError: An image cannot be used.
    """

    forced = True
    start = "evograph/start"
    schemas: Sequence[Mapping[str, Any]] = SCHEMAS
    tools_of: type[EvographTools] = EvographTools

    def __init__(self, question: Question, resources: Resources, trace: Trace, web: WebSearch | None) -> None:
        assert resources.models is not None and isinstance(resources.corpus, Corpus)
        if len(question.images) > MAX_IMAGES:
            raise QuestionError(
                f"A question has at most {MAX_IMAGES} images, not {len(question.images)}.", "Leave some out."
            )
        self.question, self.resources, self.trace = question, resources, trace
        self.settings = resources.settings.of(EvographSettings)
        self.allowed = allowed_tools(self.settings, web)
        overlay = Overlay(
            resources.corpus,
            session=f"{question.id or 'ask'}:{secrets.token_hex(5)}",
            question=question.text,
            agent=resources.models.by_stage[STAGE].name,
            ranked=self.forced,
        )
        self.tools = self.tools_of(overlay, self.settings, trace, web)
        self.images = list(map(_read_image, question.images))
        self._messages: list[Message] = []
        self._problem = ""
        self.turn = self._written = self._silent = 0

    def reply(self, turn: int, *, last: bool) -> Move[ToolReply, str]:
        """Ask for a thought with a call or an answer."""
        if self.settings.tokens is not None and self._written // BYTES_PER_TOKEN >= self.settings.tokens:
            return Move(ends="the session is as long as it may be")
        self.turn, last = turn, last and self.forced
        schemas = () if last else self._allowed_schemas()
        self._messages = self._messages or self._first_messages(last)
        prompt = TypedPrompt(tuple(self._messages), STAGE, reply=Reply(partial(read_tool_reply, schemas=schemas)))
        reading = self.resources.read(prompt, self.trace, with_reasoning=True)
        text, reply, self._problem = reading.text, reading.value or ToolReply(), reading.problem
        self._written += len(text.encode(errors="replace"))
        calls = {call_text(reply): reply} if reply.name else {}
        self.trace.record(
            ActionRead(reply=text, actions=tuple(calls), problem=self._problem, thought=reply.thought, step=turn)
        )
        self._messages.append(Message("assistant", history_text(reply, text)))
        self._silent = 0 if text else self._silent + 1
        ends = f"{MAX_SILENT} replies in a row were empty" if self._silent == MAX_SILENT else ""
        return Move(reply.answer, calls, ends)

    def run(self, call: ToolReply, turns: Sequence[int]) -> ToolResult:
        """Call a tool; a call that was made before refers to its results."""
        further = ("Only the first call was run; make one call per reply.",) if call.ignored else ()
        if not self.forced or len(turns) == 1:
            found = self.tools.call(call.name, call.arguments, step=self.turn)
            return replace(found, notes=(*further, *found.notes))
        given = json.dumps(dict(call.arguments), ensure_ascii=False)
        self.trace.record(Called(name=call.name, arguments=(given,), failed=True, step=self.turn))
        note = f"This call was made in turn {turns[0]}; its results are shown above. Do something else, or answer."
        if len(turns) >= MAX_REPEATS:
            note = "This call was made twice before."
        return ToolResult(notes=(note, *further), failed=True)

    def show(self, results: Sequence[ToolResult], turn: int, *, last: bool) -> None:
        """Add the results to the messages."""
        lost = ToolResult(notes=(f"Your reply could not be read, and the turn is lost. {self._problem}",))
        (found,) = results or (lost,)
        values = {"left": self.settings.turns - turn, "last": last and self.forced}
        *_, shown = self.resources.prompts.render("evograph/results", notes=found.notes, lines=found.lines, **values)
        self._messages.append(shown)
        self._written += len(shown.text.encode(errors="replace"))
        self.trace.record(Seen(text=shown.text, count=len(found.results), step=turn))

    def _allowed_schemas(self) -> list[Mapping[str, Any]]:
        schemas = [each for each, ours in zip(self.schemas, SCHEMAS) if ours["name"] in self.allowed]
        if self.tools.image_names:
            hint = f" The query {IMAGE_QUERY} finds what the image shows."
            schemas[0] = {**schemas[0], "description": schemas[0]["description"] + hint}
        return schemas

    def _first_messages(self, last: bool) -> list[Message]:
        found, schemas = ToolResult(), self._allowed_schemas()
        asked = self.question.text if self.settings.first_search == "question" else ""
        query = IMAGE_QUERY if self.tools.image_names else asked
        if query and "graph_search" in self.allowed:
            found = self.tools.call("graph_search", {"query": query}, step=0)
            self.trace.record(Seen(text="\n".join(found.lines), count=len(found.results), step=0))
        prompt = self.resources.prompts.prompt(
            self.start,
            STAGE,
            Reply(partial(read_tool_reply, schemas=schemas)),
            images=self.images,
            question=self.question.text,
            tools=[json.dumps(each, ensure_ascii=False) for each in schemas],
            turns=self.settings.turns,
            web="web_search" in self.allowed,
            edits=bool({*self.allowed} & {*EDITS}),
            image=bool(self.images),
            lines=[*found.notes, *found.lines],
            last=last,
        )
        texts = {message.role: message.text for message in prompt.messages}
        self.trace.record(TaskGiven(system=texts.get("system", ""), user=texts.get("user", "")))
        return list(prompt.messages)


def _read_image(path: str) -> Image:
    try:
        return image_of(read_bytes(Path(path), MAX_IMAGE_BYTES), Path(path).suffix or "without a name")
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise QuestionError(f"The image {clean(path)} cannot be used: {problem}.", "Use another file.") from error


def names_of_images(session: EvographSession) -> tuple[str, ...]:
    """Return what the images of a question may show, the most likely name first; empty if the reply cannot be read."""
    resources = session.resources
    prompt = resources.prompts.prompt(
        "evograph/image",
        "extract",
        Reply(read_answers, schema_of(AnswersReply)),
        images=session.images,
        question=session.question.text,
        most=MAX_IMAGE_NAMES,
    )
    (names,) = resources.ask([prompt], session.trace)
    return tuple(clean(name)[:200] for name in (names or ())[:MAX_IMAGE_NAMES])


def call_text(reply: ToolReply) -> str:
    """Return a call as canonical JSON; equal for equal calls."""
    call = {"name": reply.name, "arguments": dict(sorted(reply.arguments.items()))}
    return json.dumps(call, ensure_ascii=False)


def history_text(reply: ToolReply, text: str) -> str:
    """Return a reply as later prompts show it: only what was read of it."""
    if not reply.name:
        return text.strip()[:MAX_HISTORY_THOUGHT] or "(nothing)"
    thought = f"<think>{reply.thought[:MAX_HISTORY_THOUGHT]}</think>\n" if reply.thought else ""
    return f"{thought}<tool_call>{call_text(reply)}</tool_call>"


def grounded(session: EvographSession, move: Move[ToolReply, str]) -> Answer:
    """Return the answer of a session with what it rests on, and record it.

    Answers that are participants of cited hyperedges get the path to them. Answers that stand in cited segments get
    the query for these words of the chunks. Answers that rest on pages of the web, or on edits that the corpus does
    not contain, come from the model, and notes name the sources.

    Args:
        session: The session.
        move: The last move of the language model: its answer, or why there is none.
    """
    tools, shown, overlay = session.tools, session.tools.shown, session.tools.overlay
    trace, turn = session.trace, session.turn
    empty = Answer(session.question, "no_answer", method=METHOD, notes=overlay.corpus.index.notes)
    if (text := move.answer) is None:
        why = f": {move.ends}" if move.ends else ""
        return replace(empty, reason=f"The language model gave no answer in {turn} turns{why}.")
    cited = read_cited_answers(text, split=session.forced)
    if not cited:
        trace.record(Finished(text=text, why=UNKNOWN, step=turn))
        return replace(empty, reason=UNKNOWN, response=text)
    pieces = (tools.index.pieces(each.kind).get(each.iri) for each in shown if each.kind != "web")
    live = {piece.iri: piece for piece in pieces if piece is not None and piece.iri not in overlay.removed}
    reply = replace(shown.look_up(cited, session.question.text, live.keys()), response=text)
    elsewhere = {
        each.name: [result for n in each.numbers if (result := shown.get(n)) and result.iri not in live]
        for each in cited
        if not stand_in_quotes([Named(Literal(each.name), "", each.name)], reply.quotes)
    }
    found = ground(
        reply,
        empty,
        session.resources.graph.for_question(trace),
        trace,
        overlay.corpus,
        used=[live[iri] for iri in dict.fromkeys(each.piece for each in reply.citations) if iri in live],
        hyper=True,
        notes=_sources([result for results in elsewhere.values() for result in results], overlay),
    )
    if all(any(find_name(each.text, name) for each in results) for name, results in elsewhere.items()):
        found = replace(found, notes=tuple(note for note in found.notes if note != UNQUOTED))
    is_grounded = found.grounding in ("graph", "text")
    why = "" if is_grounded else " ".join(note for note in found.notes if note not in empty.notes)
    names = tuple(each.name for each in found.answers)
    trace.record(Finished(text=text, answers=names, grounded=is_grounded, why=why, step=turn))
    return found


def _sources(results: Sequence[ShownResult], overlay: Overlay) -> Iterator[str]:
    """Yield notes about the sources of cited results that are not in the corpus."""
    if pages := list(dict.fromkeys(each.iri for each in results if each.kind == "web")):
        yield f"The answer rests on the web, which is not checked: {', '.join(pages[:MAX_SOURCES])}"
    edited = {each.iri for each in results if each.kind == "hyperedge"}
    if made := [each for each in overlay.edits if each.added is not None and each.added.iri in edited]:
        sources = list(dict.fromkeys(source.iri for each in made for source in each.sources))
        named = ", ".join(sources[:MAX_SOURCES]) or "no source"
        yield f"The answer rests on an edit that is not part of the corpus, made from: {named}"


def commit_edits(session: EvographSession) -> tuple[str, ...]:
    """Propose or commit the edits of a session, record what became of them, and return notes."""
    settings, tools, trace = session.settings, session.tools, session.trace
    if settings.commit != "off" and settings.extract == "model" and tools.accepted:
        with suppress(BudgetExhausted):  # then the participants that were found by name remain
            found = asked_participants(tools.overlay, session.resources, trace)
            tools.overlay = tools.overlay.with_participants(found)
    outcome = commit(tools.overlay, settings.commit, guarded=session.forced, hold=settings.merge == "hold")
    for number, each in zip(tools.accepted, tools.overlay.edits):
        if (state := outcome.state_of(each.edit)) != "overlay":
            trace.record(EditDecided(proposal=number, state=state, edit=each.edit.id, step=session.turn))
    return outcome.notes


@contextmanager
def _current(resources: Resources) -> Iterator[Resources]:
    """Yield the resources with the corpus as the question before left it, if questions build on each other.

    Only one question at a time then has the corpus.

    Raises:
        SettingsError: the edits of a question are not committed, so that no other one could build on them.
    """
    settings, corpus = resources.settings.of(EvographSettings), resources.corpus
    with ExitStack() as opened:
        if settings.persist == "run" and isinstance(corpus, Corpus):
            if settings.commit != "auto":
                raise SettingsError(
                    "Questions build on each other only if their edits are committed.", "Set evograph.commit=auto."
                )
            opened.enter_context(_ONE_AT_A_TIME)
            if corpus.database.seq != corpus.reader.seq:
                path, cache, graph = corpus.folder.path, corpus.cache or cache_of(resources.settings), resources.graph
                if not corpus.folder.file.url:
                    graph = opened.enter_context(open_graph_of(resources.settings, path, cache=cache))
                corpus = opened.enter_context(Corpus.open(path, cache=cache, encoder=resources.encoder))
                resources = replace(resources, corpus=corpus, graph=graph)
        yield resources
