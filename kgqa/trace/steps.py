"""The steps of an answer in words: what a method over text, or one that acts in turns, did to get to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kgqa.text.words import clean
from kgqa.trace.acting import (
    ActionRead,
    AnswerVerified,
    Called,
    EditAccepted,
    EditGated,
    EditProposed,
    Finished,
    Reflected,
    StepPlanned,
    action_words,
    after_colon,
)
from kgqa.trace.event import Event
from kgqa.trace.phrases import shortened
from kgqa.trace.text import DraftVerified, Planned, StepAnswered, Stopped, SufficiencyJudged

MAX_LINES = 12
_FIRST = 5


def step_lines(trace: Iterable[Event], *, most: int = MAX_LINES) -> list[str]:
    """Describe the steps of a method over text, or of one that acts in turns; empty for other methods.

    If there are more than `most` lines, the first ones and the last ones are returned, with a line between them.
    """
    lines = [clean(line) for line in _lines(list(trace))]
    more = len(lines) - most
    if more <= 0:
        return lines
    return [*lines[:_FIRST], f"... {more:,} more here (--trace shows all) ...", *lines[_FIRST + more :]]


def _lines(events: Sequence[Event]) -> Iterator[str]:
    answered = {each.step for each in events if isinstance(each, StepAnswered)}
    planned: set[int] = set()
    gated = {each.proposal: each for each in events if isinstance(each, EditGated)}
    accepted = {each.proposal: each for each in events if isinstance(each, EditAccepted)}
    whys = {each.why for each in events if isinstance(each, Finished)}
    several = any(isinstance(each, Reflected) or (isinstance(each, StepPlanned) and each.trial) for each in events)
    edits = {(each.step, each.edit) for each in events if isinstance(each, EditProposed)}
    for event in events:
        match event:
            case Planned():
                # the others follow with their answers
                asked = [each.in_words() for each in event.sub_questions if each.number not in answered]
                if asked:
                    yield f"round {event.round} asks: {' '.join(asked)}"
            case StepAnswered():
                step = f"{event.step}. {event.question}" if event.step else "the question"
                yield f"{step} → {event.answer_words()}"
            case SufficiencyJudged() | DraftVerified() | Finished():
                yield event.in_words()
            case Stopped():
                yield f"stopped: {event.why}"
            case StepPlanned():
                if event.trial not in planned:  # the later plans of a trial repeat much of the first
                    planned.add(event.trial)
                    yield f"plan: {shortened(event.text)}"
            case ActionRead():
                if event.problem:
                    acts = [*map(action_words, event.actions), event.problem]
                    yield f"{event.place}: {shortened('; '.join(acts))}"
            case Called():
                if (event.step, event.name) not in edits:
                    yield f"{event.place}: {shortened(event.call_words())} → {event.result_words()}"
            case AnswerVerified():
                trial = f"trial {event.trial + 1}: " if several else ""
                yield f"{trial}{event.verdict_words()}{after_colon('' if event.text in whys else event.reason)}"
            case Reflected():
                yield f"trial {event.trial + 1} taught: {shortened(event.text)}"
            case EditProposed():
                outcome = _outcome(gated.get(event.proposal), accepted.get(event.proposal))
                yield f"step {event.step}, edit {event.proposal}: {event.edit_words()}: {outcome}"


def _outcome(gated: EditGated | None, accepted: EditAccepted | None) -> str:
    if accepted:
        return f"accepted, {accepted.state_words()}"
    return f"rejected by the gate “{gated.rule}”" if gated else "not decided"
