"""Describes the events of the search for paths in words, one line each, for people who watch a question."""

from __future__ import annotations

from kgqa.text.words import counted
from kgqa.trace.decision import (
    Accepted,
    Checked,
    Composed,
    ConditionsRead,
    Converged,
    Judged,
    Met,
    PathsRanked,
    Read,
    Rejected,
)
from kgqa.trace.event import Event
from kgqa.trace.phrases import listed
from kgqa.trace.search import Entities, Expanded, Joined, Kept, MatchPlayed, NoIntersection, Pool, Shortlist
from kgqa.trace.topics import Clauses, CuesRead, Linked, Unsupported

_CLASSES = {"exact": "exactly these answers", "restricted": "these answers, for the chosen entities"}


def search_words(event: Event) -> str:
    """Describe an event of the search for paths; "" for other events."""
    match event:
        case Linked():
            named = [f"“{each.text}”" for each in event.mentions]
            return f"topics in the question: {listed(named)}" if named else "no topic found in the question"
        case CuesRead():
            wanted = f", asked for: {event.asked_for}" if event.asked_for else ""
            return f"the wording suggests {counted(event.hops, 'hop')}{wanted}"
        case Clauses():
            return f"the question has {counted(len(event.clauses), 'clause')}"
        case Unsupported():
            return f"paths cannot answer {event.asks_for}"
        case Expanded():
            more = " (only some of the nodes)" if event.approximate else ""
            return f"{event.path}: {counted(event.steps, 'next step')}{more}"
        case Pool():
            return f"hop {event.hop}: {counted(len(event.paths), 'candidate')}"
        case Shortlist():
            return f"hop {event.hop}: {counted(len(event.paths), 'candidate')} after the prefilter"
        case MatchPlayed():
            return f"compared {counted(len(event.candidates), 'path')}"
        case Kept():
            return f"hop {event.hop}: kept {listed(event.paths)}" if event.paths else f"hop {event.hop}: kept none"
        case Entities():
            return f"goes on from {listed(event.selected)}"
        case Joined():
            return f"paths that meet: {listed(event.paths)}"
        case NoIntersection():
            return "no paths of the topics meet"
        case ConditionsRead():
            found = (f"“{each.words}” means {each.meaning}" for each in event.found)
            return "; ".join(found)
        case _:
            return _decision_words(event)


def _decision_words(event: Event) -> str:
    match event:
        case PathsRanked():
            best = event.paths[0] if event.paths else None
            score = f" ({best.score:.2f})" if best and best.score is not None else ""
            return f"best path: {best.path}{score}" if best else "no path found"
        case Met() | Accepted():
            return f"accepted: {event.path}"
        case Converged():
            return f"the answers no longer change: {event.path}"
        case Rejected():
            return f"not accepted: {event.path}"
        case Judged():
            return f"the rows of {counted(len(event.paths), 'path')} are {event.verdict}"
        case Composed():
            return f"the model answers: {listed([str(each) for each in event.said])}"
        case Read():
            return f"the query of {event.path} returns {counted(event.answers, 'answer')}"
        case Checked():
            return f"the query was run again: it returns {_CLASSES.get(event.query_class, 'something else')}"
    return ""
