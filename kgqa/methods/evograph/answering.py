"""EvoGraph-R1 (Lin et al. 2026): a language model searches a hypergraph, repairs it, and answers."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.committing import commit
from kgqa.errors import SettingsError
from kgqa.graph.opening import open_graph_of
from kgqa.llm.replies.cited_answers import read_cited_answers
from kgqa.methods.acting.declarations import EvographSettings
from kgqa.methods.ask import cache_of
from kgqa.methods.evograph.grounding import grounded_answer
from kgqa.methods.evograph.images import names_of_images, read_images
from kgqa.methods.evograph.participants import asked_participants
from kgqa.methods.evograph.schemas import IMAGE_QUERY, tool_schemas
from kgqa.methods.evograph.session import Session, SessionOptions
from kgqa.methods.evograph.tools import Tools, session_tools
from kgqa.methods.evograph.web import WebSearch, opened_web_search
from kgqa.methods.resources import Resources
from kgqa.methods.text.searching import within_budget
from kgqa.model import Answer, Named, Question, Value
from kgqa.trace import EditDecided, Finished
from kgqa.trace.trace import BudgetExhausted, Trace

METHOD = "evograph"
NO_ANSWER = "The language model gave no answer in {} turns."
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
    assert isinstance(resources.corpus, Corpus)
    with _current(resources) as now, opened_web_search(now.settings.of(EvographSettings).web) as web:
        return _answered(question, now, web, trace)


def _answered(question: Question, resources: Resources, web: WebSearch | None, trace: Trace) -> Answer:
    corpus, settings = resources.corpus, resources.settings.of(EvographSettings)
    assert isinstance(corpus, Corpus) and resources.models is not None
    empty = Answer(question, "no_answer", method=METHOD, notes=corpus.index.notes)
    agent, published = resources.models.by_stage["act"].name, settings.reading == "published"
    images, names, spent = read_images(question.images), tuple[str, ...](), ""
    allowed = [each for each in settings.tools.split(",") if each != "web_search" or web is not None]
    about = {"session": f"{question.id or 'ask'}:{secrets.token_hex(5)}", "agent": agent}
    session, tools = None, session_tools(question.text, resources, trace, web=web, **about)
    try:
        with within_budget(trace):
            if images and "graph_search" in allowed:
                names = names_of_images(images, question.text, resources, trace)
                tools = session_tools(question.text, resources, trace, web=web, image_names=names, **about)
            schemas = tool_schemas(allowed, published=published, image=bool(names))
            session = Session(
                question.text,
                tools,
                schemas,
                resources,
                trace,
                SessionOptions(
                    settings.turns,
                    forced=not published,
                    first_query=_first_query(question.text, names, allowed, settings),
                    start="evograph/published_start" if published else "evograph/start",
                ),
                images=images,
            )
            session.run()
    except BudgetExhausted as error:
        spent = error.reason
    with trace.grace():
        found = _answer(session, empty, tools, resources, trace, published=published)
    if spent:
        found = replace(found, status="budget_exhausted", reason=spent, accepted=False)
    notes = _commit(tools, resources, trace, published=published, turn=session.turn if session else 0)
    return replace(found, notes=(*found.notes, *notes))


def _first_query(question: str, names: Sequence[str], allowed: Sequence[str], settings: EvographSettings) -> str:
    """Return what is searched before the first prompt: what the image shows, or the question; "" for nothing."""
    if "graph_search" not in allowed:
        return ""
    if names:
        return IMAGE_QUERY
    return question if settings.first_search == "question" else ""


def _commit(tools: Tools, resources: Resources, trace: Trace, *, published: bool, turn: int) -> tuple[str, ...]:
    """Propose or commit the edits, record what became of them, and return notes."""
    settings, edits, overlay = resources.settings.of(EvographSettings), tools.edits, tools.overlay
    mode = settings.commit
    if mode != "off" and settings.extract == "model" and edits.accepted:
        with suppress(BudgetExhausted):  # then the participants that were found by name remain
            overlay = edits.with_participants(asked_participants(edits.contents(), resources, trace))
    hold = settings.merge == "hold"
    outcome = commit(overlay, mode, gated=edits.gated, guarded=not published, hold=hold)
    for number, each in edits.accepted.items():
        if (state := outcome.state_of(each.edit)) != "overlay":
            trace.record(EditDecided(proposal=number, state=state, edit=each.edit.id, step=turn))
    return outcome.notes


@contextmanager
def _current(resources: Resources) -> Iterator[Resources]:
    """Yield the resources with the corpus as the question before left it, if questions build on each other.

    Only one question at a time then has the corpus.

    Raises:
        SettingsError: the edits of a question are not committed, so that no other one could build on them.
    """
    settings, corpus = resources.settings.of(EvographSettings), resources.corpus
    assert isinstance(corpus, Corpus)
    if settings.persist != "run":
        yield resources
        return
    if settings.commit != "auto":
        raise SettingsError(
            "Questions build on each other (evograph.persist=run) only if their edits are committed.",
            "Set evograph.commit=auto, or evograph.persist=question.",
        )
    with _ONE_AT_A_TIME, ExitStack() as opened:
        if corpus.database.seq != corpus.reader.seq:
            cache = corpus.cache or cache_of(resources.settings)
            corpus = opened.enter_context(Corpus.open(corpus.folder.path, cache=cache, encoder=resources.encoder))
            graph = resources.graph
            if not corpus.folder.file.url:
                graph = opened.enter_context(open_graph_of(resources.settings, corpus.folder.path, cache=cache))
            resources = replace(resources, corpus=corpus, graph=graph)
        yield resources


def _answer(
    session: Session | None, empty: Answer, tools: Tools, resources: Resources, trace: Trace, *, published: bool
) -> Answer:
    """Return the answer of a session, grounded, and record it."""
    reply = session.answer if session else None
    if session is None or reply is None or reply.answer is None:
        return replace(empty, reason=NO_ANSWER.format(session.turn if session else 0))
    cited = read_cited_answers(reply.answer, split=not published)
    if not cited:
        trace.record(Finished(text=reply.answer, why=UNKNOWN, step=session.turn))
        return replace(empty, reason=UNKNOWN, response=reply.answer)
    graph = resources.graph.for_question(trace)
    found = grounded_answer(empty, cited, tools.shown, reply.answer, tools.overlay, graph, trace)
    grounded = found.grounding in ("graph", "text")
    trace.record(
        Finished(
            text=reply.answer,
            answers=tuple(each.name for each in found.answers),
            grounded=grounded,
            why="" if grounded else " ".join(note for note in found.notes if note not in empty.notes),
            step=session.turn,
        )
    )
    return found
