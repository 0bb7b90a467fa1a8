"""Describes the events of methods over text in words, one line each: for `--trace`, progress, and answers as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kgqa.text.words import counted
from kgqa.trace.event import Event
from kgqa.trace.phrases import SHOWN, listed, shortened
from kgqa.trace.text import (
    Drafted,
    DraftVerified,
    EvidenceEdited,
    Grounded,
    LocalFact,
    PiecesKept,
    Planned,
    Retrieved,
    StepAnswered,
    Stopped,
    SufficiencyJudged,
)

MAX_LINES = 12


def event_words(event: Event) -> str:
    """Describe an event of a method over text; "" for other events."""
    match event:
        case Retrieved():
            return f"{_step(event.step)}{_channel(event)}: {counted(len(event.pieces), 'piece')} for “{event.query}”"
        case PiecesKept():
            return f"{_step(event.step)}: {counted(len(event.pieces), 'piece')}"
        case Planned():
            asked = "; ".join(
                f"{each.number}. {each.text}" + (f" (needs {listed(each.needs)})" if each.needs else "")
                for each in event.sub_questions
            )
            return f"round {event.round}: {asked or 'no sub-questions'}"
        case Grounded():
            return f"{_step(event.step)}: {event.text}" + ("" if event.filled else " (an earlier answer is missing)")
        case StepAnswered():
            return f"{_step(event.step)}: {event.question} → {_answer(event)}"
        case EvidenceEdited():
            return f"{_step(event.step)}: {'; '.join(_edits(event)) or 'nothing'}"
        case SufficiencyJudged():
            return f"round {event.round}: {_verdict(event)}"
        case Drafted():
            claims = sum(each.verified for each in event.claims)
            quoted = f" ({claims} of {counted(len(event.claims), 'claim')} with a verified quote)"
            return f"round {event.round}{_channel(event)}: {event.text}{quoted if event.claims else ''}"
        case DraftVerified():
            return f"round {event.round}{_channel(event)}: {_verdict(event)}"
        case Stopped():
            return f"round {event.round}: {event.why}"
    return ""


def progress_words(event: Event) -> str:
    """Describe in a few words what a method over text does after an event; "" for other events."""
    match event:
        case Retrieved():
            return f"{_step(event.step)}: {counted(len(event.pieces), 'piece')} found"
        case PiecesKept():
            return f"{_step(event.step)}: reading {counted(len(event.pieces), 'piece')}"
        case Planned():
            return f"round {event.round}: {counted(len(event.sub_questions), 'sub-question')}"
        case StepAnswered():
            return f"{_step(event.step)}: {_answer(event)}"
        case EvidenceEdited():
            return f"{_step(event.step)}: {counted(len(event.added), 'new fact')}"
        case SufficiencyJudged() | DraftVerified():
            return f"round {event.round}: {_verdict(event)}"
        case Drafted():
            return f"round {event.round}: verifying the draft"
    return ""


def step_lines(trace: Iterable[Event], *, most: int = MAX_LINES) -> list[str]:
    """Describe the answered sub-questions, the verdicts and the end of a method over text, in at most so many lines."""
    lines = list(_step_lines(trace))
    more = len(lines) - most
    return lines[:most] + ([f"... and {more:,} more (--trace shows all)"] if more > 0 else [])


def _step_lines(trace: Iterable[Event]) -> Iterator[str]:
    events = list(trace)
    answered = {each.step for each in events if isinstance(each, StepAnswered)}
    for event in events:
        match event:
            case Planned():
                # the others follow with their answers
                asked = [each for each in event.sub_questions if each.number not in answered]
                if asked:
                    yield f"round {event.round} asks: " + " ".join(f"{each.number}. {each.text}" for each in asked)
            case StepAnswered():
                step = f"{event.step}. {event.question}" if event.step else "the question"
                yield f"{step} → {_answer(event)}"
            case SufficiencyJudged():
                yield f"round {event.round}: {_verdict(event)}"
            case DraftVerified():
                yield f"round {event.round}{_channel(event)}: {_verdict(event)}"
            case Stopped():
                yield f"stopped: {event.why}"


def _step(number: int) -> str:
    return f"sub-question {number}" if number else "question"


def _channel(event: Retrieved | Drafted | DraftVerified) -> str:
    return f", {event.channel}" if event.channel else ""


def _answer(event: StepAnswered) -> str:
    if not event.read:
        return "the reply could not be read"
    if not event.answers:
        return "not in the passages"
    quoted = f" ({event.verified} of {counted(event.quotes, 'quote')} verified)" if event.quotes else ""
    return f"{listed(event.answers)}{quoted}"


def _verdict(event: SufficiencyJudged | DraftVerified) -> str:
    if isinstance(event, SufficiencyJudged):
        words = {"yes": "sufficient, but not accepted: no verified quote", "no": "insufficient"}
        text = "sufficient" if event.accepted else words.get(event.verdict, "verdict not readable, so insufficient")
        return f"{text}; missing: {shortened(event.missing)}" if event.missing else text
    words = {"yes": "draft accepted", "no": "draft rejected"}
    text = words.get(event.verdict, "verdict not readable, so the draft is rejected")
    return f"{text}; claims that do not hold: {listed(event.failed)}" if event.failed else text


def _edits(event: EvidenceEdited) -> Iterator[str]:
    yield from (f"+ {_fact(each)}" for each in event.added[:SHOWN])
    if len(event.added) > SHOWN:
        yield f"+ {len(event.added) - SHOWN:,} more"
    yield from (f"{one} = {other}" for one, other in event.merged[:SHOWN])
    if event.removed:
        yield f"{len(event.removed):,} removed"
    if event.refused:
        yield f"{event.refused:,} refused"


def _fact(fact: LocalFact) -> str:
    return f"{fact.subject} — {fact.relation} → {fact.object}"
