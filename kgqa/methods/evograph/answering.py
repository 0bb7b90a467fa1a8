"""EvoGraph-R1 (Lin et al. 2026): a language model searches a hypergraph, repairs it, and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.committing import commit
from kgqa.events import EditAccepted, Finished
from kgqa.llm.replies.cited_answers import read_cited_answers
from kgqa.methods.direct import UNREADABLE
from kgqa.methods.evograph.grounding import grounded_answer
from kgqa.methods.evograph.schemas import tool_schemas
from kgqa.methods.evograph.session import Session, SessionOptions
from kgqa.methods.evograph.tools import Tools, session_tools
from kgqa.methods.evograph.web import opened_web_search
from kgqa.methods.resources import Resources
from kgqa.methods.text.searching import within_budget
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
    agent = resources.models.by_stage["act"].name
    published = settings["evograph.reading"] == "published"
    with opened_web_search(settings["evograph.web"]) as web:
        tools = session_tools(question.text, resources, trace, web=web, session=question.id, agent=agent)
        allowed = [each for each in settings["evograph.tools"].split(",") if each != "web_search" or web is not None]
        session = Session(
            question.text,
            tools,
            tool_schemas(allowed, published=published),
            resources,
            trace,
            SessionOptions(
                settings["evograph.turns"],
                forced=not published,
                first_search=settings["evograph.first_search"] == "question" and "graph_search" in allowed,
                start="evograph/published_start" if published else "evograph/start",
            ),
        )
        spent = ""
        try:
            with within_budget(trace):
                session.run()
        except BudgetExhausted as error:
            spent = error.reason
        with trace.grace():
            found = _answer(session, empty, tools, resources, trace, published=published)
    if spent:
        found = replace(found, status="budget_exhausted", reason=spent, accepted=False)
    mode = settings["evograph.commit"]
    outcome = commit(tools.overlay, mode, gated=tools.edits.gated, guarded=not published)
    for number, each in tools.edits.accepted.items():
        if (state := outcome.state_of(each.edit)) != "overlay":
            trace.record(EditAccepted(proposal=number, edit=each.edit.id, state=state, step=session.turn))
    return replace(found, notes=(*found.notes, *outcome.notes))


def _answer(
    session: Session, empty: Answer, tools: Tools, resources: Resources, trace: Trace, *, published: bool
) -> Answer:
    """Return the answer of a session, grounded, and record it."""
    reply = session.answer
    if reply is None or reply.answer is None:
        return replace(empty, reason=NO_ANSWER.format(session.turn) if session.turn else UNREADABLE)
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
