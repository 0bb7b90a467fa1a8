"""Describes the events of methods that act in turns in words: for `--trace`, progress, and answers as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kgqa.text.words import counted
from kgqa.trace.acting import (
    ActionRead,
    AnswerVerified,
    Called,
    EditAccepted,
    EditGated,
    EditProposed,
    FactNeeded,
    Finished,
    Reflected,
    Seen,
    StepPlanned,
    TaskGiven,
)
from kgqa.trace.event import Event
from kgqa.trace.phrases import SHOWN, listed, one_line, shortened

ACTING_EVENTS = (
    TaskGiven, StepPlanned, FactNeeded, ActionRead, Called, Seen, Finished, AnswerVerified, Reflected, EditProposed,
    EditGated, EditAccepted,
)  # fmt: skip
"""The events that this module describes."""
MAX_LINES = 12
_FIRST = 5
_FEW = 60
STATES = {
    "overlay": "seen by this question only",
    "proposed": "waits for review",
    "committed": "committed to the corpus",
}
"""What became of an accepted edit, for people."""
_JUDGMENT = re.compile(r"[\s*_]{0,20}\bjudge?ment[*_]{0,4}:[\s*_]{0,20}(?:yes|no)\W{0,20}\Z", re.IGNORECASE)
_VERDICTS = {"yes": "answer accepted", "no": "answer rejected"}


def event_words(event: Event) -> str:
    """Describe an event of a method that acts in turns, in one line; "" for other events."""
    return one_line(_words(event))


def progress_words(event: Event) -> str:
    """Describe in a few words what a method that acts in turns does after an event; "" for other events."""
    return one_line(_progress(event))


def step_lines(trace: Iterable[Event], *, most: int = MAX_LINES) -> list[str]:
    """Describe the turns, the verdicts and the edits of a method that acts in turns, in at most so many lines.

    If there are more, the first ones and the last ones are returned.
    """
    events = [event for event in trace if isinstance(event, ACTING_EVENTS)]
    lines = [one_line(line) for line in _step_lines(events)]
    more = len(lines) - most
    if more <= 0:
        return lines
    return [*lines[:_FIRST], f"... {more:,} more here (--trace shows all) ...", *lines[_FIRST + more :]]


def is_tool(event: Called) -> bool:
    """Return whether a tool was called, whose arguments are one JSON object, and not a function of a graph."""
    return len(event.arguments) == 1 and event.arguments[0].lstrip().startswith("{")


def call_words(event: Called) -> str:
    """Write a call as the language model wrote it: `Neighbour[Kimigayo, anthem of]`; of a tool with its arguments."""
    if is_tool(event):
        return f"{event.name}({_tool_arguments(_object(event.arguments[0]), event.arguments[0])})"
    return f"{event.name}[{', '.join(event.arguments)}]"


def action_words(action: str) -> str:
    """Write an action as a call; that of a tool, which is JSON, with its name and arguments."""
    found = _object(action)
    if isinstance(found.get("name"), str) and isinstance(found.get("arguments"), dict):
        return f"{found['name']}({_tool_arguments(found['arguments'], action)})"
    return action


def found_words(event: Called) -> str:
    """Say what a call found: its first values, or their number."""
    if event.failed:
        return "failed"
    if not event.names:
        return counted(event.total, "result" if is_tool(event) else "value")
    more = event.total - len(event.names[:SHOWN])
    return ", ".join(map(_few, event.names[:SHOWN])) + (f" and {more:,} more" if more > 0 else "")


def verdict_words(event: AnswerVerified) -> str:
    """Say how an answer was judged, and whether that took a language model."""
    words = _VERDICTS.get(event.verdict, "verdict not readable")
    return words if event.asked else f"{words} without asking a language model"


def verdict_reason(event: AnswerVerified) -> str:
    """Return what a judge wrote, without the line that repeats the verdict."""
    return _JUDGMENT.sub("", event.text).strip()


def _words(event: Event) -> str:
    match event:
        case TaskGiven():
            return f"task: {shortened(event.user)}"
        case StepPlanned() | FactNeeded():
            return f"{_place(event)}: {event.text}"
        case ActionRead():
            acts = ", ".join(map(action_words, event.actions)) or ("no action" if event.problem else "an answer")
            parts = [event.thought, acts, event.problem]
            return f"{_place(event)}: {'; '.join(filter(None, parts))}"
        case Called():
            along = f" along {listed(event.paths)}" if event.paths and not event.failed else ""
            return f"{_place(event)}: {call_words(event)} → {found_words(event)}{along}"
        case Seen():
            some = " (not all)" if event.approximate else ""
            return f"{_place(event)}: {counted(event.count, 'value')}{some}: {shortened(event.text)}"
        case Finished():
            return f"{_place(event)}: {_finished(event)}"
        case AnswerVerified():
            return f"trial {event.trial + 1}: {verdict_words(event)}{_after(verdict_reason(event))}"
        case Reflected():
            return f"trial {event.trial + 1}: {shortened(event.text)}"
        case EditProposed():
            return f"edit {event.proposal}, step {event.step}: {_edit(event)}"
        case EditGated():
            return f"edit {event.proposal}: rejected by the gate “{event.rule}”{_after(event.why)}"
        case EditAccepted():
            return f"edit {event.proposal}: accepted; {STATES.get(event.state, event.state)}"
    return ""


def _progress(event: Event) -> str:
    match event:
        case StepPlanned() | FactNeeded():
            return f"{_place(event)}: {_few(event.text)}"
        case ActionRead():
            acts = ", ".join(map(action_words, event.actions))
            return f"{_place(event)}: {_few(acts or ('reply not read' if event.problem else 'answering'))}"
        case Called():
            found = counted(event.total, "result" if is_tool(event) else "value")
            return f"{_place(event)}: {_few(event.name)}: {'failed' if event.failed else found}"
        case Finished():
            return f"{_place(event)}: answer: {_few(listed(event.answers) or event.text)}"
        case AnswerVerified():
            return f"trial {event.trial + 1}: {verdict_words(event)}"
        case Reflected():
            return f"trial {event.trial + 1}: trying again"
        case EditProposed():
            return f"edit {event.proposal}: {_few(event.edit)} proposed"
        case EditGated():
            return f"edit {event.proposal}: rejected"
        case EditAccepted():
            return f"edit {event.proposal}: accepted"
    return ""


def _step_lines(events: Sequence[Event]) -> Iterator[str]:
    planned: set[int] = set()
    gated = {each.proposal: each for each in events if isinstance(each, EditGated)}
    accepted = {each.proposal: each for each in events if isinstance(each, EditAccepted)}
    whys = {each.why for each in events if isinstance(each, Finished)}
    several = any(isinstance(each, Reflected) or (isinstance(each, StepPlanned) and each.trial) for each in events)
    edits = {(each.step, each.edit) for each in events if isinstance(each, EditProposed)}
    for event in events:
        match event:
            case StepPlanned():
                if event.trial not in planned:  # the later plans of a trial repeat much of the first
                    planned.add(event.trial)
                    yield f"plan: {shortened(event.text)}"
            case ActionRead():
                if event.problem:
                    acts = [action_words(each) for each in event.actions]
                    yield f"{_place(event)}: {shortened('; '.join([*acts, event.problem]))}"
            case Called():
                if (event.step, event.name) not in edits:
                    yield f"{_place(event)}: {shortened(call_words(event))} → {found_words(event)}"
            case Finished():
                yield f"{_place(event)}: {shortened(_finished(event))}"
            case AnswerVerified():
                why = "" if event.text in whys else verdict_reason(event)
                trial = f"trial {event.trial + 1}: " if several else ""
                yield f"{trial}{verdict_words(event)}{_after(why)}"
            case Reflected():
                yield f"trial {event.trial + 1} taught: {shortened(event.text)}"
            case EditProposed():
                outcome = _outcome(event.proposal, gated, accepted)
                yield f"step {event.step}, edit {event.proposal}: {_edit(event)}: {outcome}"


def _outcome(proposal: int, gated: Mapping[int, EditGated], accepted: Mapping[int, EditAccepted]) -> str:
    if proposal in accepted:
        return f"accepted, {STATES.get(accepted[proposal].state, accepted[proposal].state)}"
    return f"rejected by the gate “{gated[proposal].rule}”" if proposal in gated else "not decided"


def _place(event: StepPlanned | FactNeeded | ActionRead | Called | Seen | Finished) -> str:
    if not event.step:
        return "first"
    return f"trial {event.trial + 1}, step {event.step}" if event.trial else f"step {event.step}"


def _finished(event: Finished) -> str:
    answer = listed(event.answers) or shortened(event.text) or "no answer"
    if event.grounded:
        return f"answer {answer} (follows from what was found)"
    return f"answer {answer} (does not follow from what was found{_after(event.why)})"


def _edit(event: EditProposed) -> str:
    content = f"“{shortened(event.content)}”"
    target = f"“{shortened(event.target_text or event.target)}”"
    what = {"insert": f"insert {content}", "update": f"replace {target} by {content}", "delete": f"delete {target}"}
    sources = ", ".join(str(each.number) for each in event.sources[:SHOWN])
    cited = f" ({'source' if len(event.sources) == 1 else 'sources'} {sources})" if sources else " (no source)"
    return what.get(event.edit, event.edit) + cited


def _object(text: str) -> dict[str, Any]:
    """Read a JSON object; empty if the text is none."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _tool_arguments(values: dict[str, Any], text: str) -> str:
    """Write arguments as `query: Kimigayo`; the text itself if it is no JSON object."""
    shown = (
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
    )
    return shortened(", ".join(shown) if values or text.strip() == "{}" else text)


def _after(text: str) -> str:
    return f": {shortened(text)}" if text else ""


def _few(text: str) -> str:
    return shortened(text, _FEW)
