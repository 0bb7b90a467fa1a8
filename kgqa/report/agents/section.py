"""Prepares the values of the sections that a question's page has for a method that acts in turns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kgqa.report.agents.edits import ShownEdits, edits_of
from kgqa.report.agents.observations import observation_of
from kgqa.report.agents.turns import ActingTrials, Trial, Turn, trials_of
from kgqa.report.agents.walk import walk_of
from kgqa.report.agents.walk_drawing import draw_walk
from kgqa.report.lenient_json import objects_of, text_of
from kgqa.text.words import counted
from kgqa.trace import ActionRead, AnswerVerified, Called, Event, Finished
from kgqa.trace.acting import action_words

MAX_CALLS = 64
_OPEN_TURNS = 12
"""If there are more turns, only the last trial is open."""


def agents_section(trace: Sequence[Event], answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the page shows of a method that acts in turns; None if the trace has no event of such a method.

    Args:
        trace: The events of the question.
        answer: Its answer object (docs/answer-json.md).
    """
    found = trials_of(trace)
    if not found.trials:
        return None
    edits = edits_of(trace)
    names = tuple(text_of(each.get("name")) for each in objects_of(answer.get("answers")))
    trials = len(found.trials)
    few = len(found.turns) <= _OPEN_TURNS
    return {
        "trials": [
            _trial(each, edits, titled=trials > 1, opened=few or each is found.trials[-1]) for each in found.trials
        ],
        "summary": ", ".join(_summary(found, edits)),
        "left_out": found.left_out,
        "walk": draw_walk(walk_of(trace, answer), trials=trials, answers=names),
        "edits": edits,
    }


def _summary(found: ActingTrials, edits: ShownEdits | None) -> list[str]:
    calls = [call for turn in found.turns for call in turn.calls]
    failed = sum(call.failed for call in calls)
    unread = sum(bool(read.problem) for turn in found.turns for read in turn.actions)
    parts = [counted(len(found.trials), "trial")] if len(found.trials) > 1 else []
    parts += [counted(sum(bool(turn.step) for turn in found.turns), "turn"), counted(len(calls), "call")]
    if failed:
        parts.append(f"{failed:,} of them failed")
    if unread:
        parts.append(f"{counted(unread, 'reply', 'replies')} not read or only in part")
    return [*parts, edits.summary] if edits else parts


def _trial(trial: Trial, edits: ShownEdits | None, *, titled: bool, opened: bool) -> dict[str, Any]:
    outcome = trial.verdicts[-1] if trial.verdicts else None
    whys = {each.why for turn in trial.turns for each in turn.finished}
    return {
        "number": trial.number,
        "title": f"Trial {trial.number + 1}" if titled else "",
        "opened": opened,
        "outcome": outcome.verdict_words() if outcome else "",
        "good": bool(outcome and outcome.verdict == "yes"),
        "turns": [_turn(each, edits) for each in trial.turns],
        "verdicts": [_verdict(each, whys) for each in trial.verdicts],
        "reflections": [each.text for each in trial.reflections],
    }


def _turn(turn: Turn, edits: ShownEdits | None) -> dict[str, Any]:
    proposed = [each for each in edits.edits if each.number in set(turn.edits)] if edits else []
    calls = [each for each in turn.calls if each.name not in {edit.kind for edit in proposed}]
    return {
        "id": f"turn-{turn.trial}-{turn.step}",
        "title": f"Step {turn.step}" if turn.step else "Before the first step",
        "plans": turn.plans,
        "needs": turn.needs,
        "actions": [_action(each, turn.calls) for each in turn.actions],
        "calls": [_call(each) for each in calls[:MAX_CALLS]],
        "calls_more": max(0, len(calls) - MAX_CALLS),
        "seen": [observation_of(each) for each in turn.seen],
        "edits": proposed,
        "finished": [_finished(each) for each in turn.finished],
    }


def _action(read: ActionRead, calls: Sequence[Called]) -> dict[str, Any]:
    """Describe a reply: its thought, the actions that were read, and the reply itself if it differs from them."""
    said = "".join(read.reply.split())
    plain = said in ("".join("".join(each).split()) for each in (read.actions, ",".join(read.actions)))
    return {
        "thought": read.thought,
        "actions": [action_words(each) for each in read.actions[:MAX_CALLS]],
        "problem": read.problem,
        "reply": "" if plain else read.reply,
    }


def _call(call: Called) -> dict[str, Any]:
    """Describe a call. The results of a tool are in what was seen, so only their number is given."""
    tool = call.is_tool
    return {
        "text": call.name if tool else call.call_words(),
        "failed": call.failed,
        "found": counted(call.total, "result") if tool and not call.failed else call.result_words(),
        "paths": [path for path in call.paths[:MAX_CALLS] if path not in call.names],
    }


def _finished(event: Finished) -> dict[str, Any]:
    shown = event.text.strip() not in ("", ", ".join(event.answers))
    return {
        "answers": event.answers,
        "text": event.text if shown else "",
        "grounded": event.grounded,
        "why": event.why,
    }


def _verdict(event: AnswerVerified, whys: Collection[str]) -> dict[str, Any]:
    """Describe a verdict; a reason that is given beside the answer is not repeated."""
    words = event.verdict_words()
    text = "" if event.text in whys else event.text
    return {"words": f"{words[:1].upper()}{words[1:]}", "text": text, "good": event.verdict == "yes"}
