"""EvoGraph-R1 (Lin et al. 2026): a language model searches a hypergraph, repairs it, and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.committing import commit
from kgqa.corpus.editing.overlay import Overlay
from kgqa.events import EditAccepted, Finished
from kgqa.llm.replies.cited_answers import read_cited_answers
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.evograph.editing import EditTools
from kgqa.methods.evograph.grounding import grounded_answer
from kgqa.methods.evograph.participants import named_participants
from kgqa.methods.evograph.results import ShownResults
from kgqa.methods.evograph.schemas import tool_schemas
from kgqa.methods.evograph.segments import SegmentSearch, kinds_of
from kgqa.methods.evograph.session import Session, SessionOptions
from kgqa.methods.evograph.tools import Tools
from kgqa.methods.evograph.web import opened_web_search
from kgqa.methods.resources import Resources
from kgqa.methods.text.searching import TextSearch, within_budget
from kgqa.model import Answer, Named, Question, Value
from kgqa.trace import BudgetExhausted, Trace

METHOD = "evograph"
NO_ANSWER = "The language model gave no answer in {} turns."
UNKNOWN = "The language model found no answer."


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """Answer by a session with tools; arguments and errors as in `top.answer`. Topics are ignored."""
    corpus, settings = resources.corpus, resources.settings
    assert isinstance(corpus, Corpus) and resources.models is not None
    empty = Answer(question, "no_answer", method=METHOD, notes=corpus.index.notes)
    text_search = TextSearch(resources, trace)
    agent, session_name = resources.models.by_stage["act"].name, question.id
    overlay = Overlay(corpus, session=session_name, question=question.text, agent=agent)
    segments = SegmentSearch(text_search, overlay, kinds_of(settings["evograph.pieces"], text_search), trace)
    shown = ShownResults()
    edits = EditTools(
        overlay,
        shown,
        segments,
        lambda content: named_participants(content, corpus),
        trace,
        about=(session_name, question.text, agent),
    )
    with opened_web_search(settings["evograph.web"]) as web:
        names_of_tools = [
            each for each in settings["evograph.tools"].split(",") if each != "web_search" or web is not None
        ]
        tools = Tools(segments, overlay, edits, web, shown, trace, k=settings["evograph.results"])
        options = SessionOptions(settings["evograph.turns"])
        session = Session(question.text, tools, tool_schemas(names_of_tools), resources, trace, options)
        spent = ""
        try:
            with within_budget(trace):
                session.run()
        except BudgetExhausted as error:
            spent = error.reason
        with trace.grace():
            found = _answer(session, empty, shown, overlay, text_search, trace)
    if spent:
        found = replace(found, status="budget_exhausted", reason=spent, accepted=False)
    outcome = commit(overlay, settings["evograph.commit"], gated=edits.gated)
    for number, each in edits.accepted.items():
        if (state := outcome.state_of(each.edit)) != "overlay":
            trace.record(EditAccepted(proposal=number, edit=each.edit.id, state=state, step=session.turn))
    return replace(found, notes=(*found.notes, *outcome.notes))


def _answer(
    session: Session, empty: Answer, shown: ShownResults, overlay: Overlay, search: TextSearch, trace: Trace
) -> Answer:
    """Return the answer of a session, grounded, and record it."""
    reply = session.answer
    if reply is None or reply.answer is None:
        return replace(empty, reason=NO_ANSWER.format(session.turn) if len(shown) else UNREADABLE)
    cited = read_cited_answers(reply.answer)
    if not cited:
        trace.record(Finished(text=reply.answer, why=UNKNOWN, step=session.turn))
        return replace(empty, reason=UNKNOWN, response=reply.answer)
    found = grounded_answer(empty, cited, shown, reply.answer, overlay, search.graph, trace)
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
