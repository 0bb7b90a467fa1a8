"""Counts what a language model did in turns: trials, turns, calls, replies that could not be read, edits by outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kgqa.trace import ActionRead, AnswerVerified, Called, EditDecided, EditProposed, Reflected, read_event
from kgqa.trace.acting import TurnEvent

_OUTCOMES = ("proposed", "accepted", "rejected")
"""Outcomes of edits. An edit may be accepted twice: for its question, and into a state after it."""


class TurnTable:
    """Counts over the questions of a run that were answered in turns."""

    def __init__(self) -> None:
        self._n = self._trials = self._turns = self._calls = self._failed = self._replies = self._unread = 0
        self._edits: Counter[str] = Counter()
        self._gates: Counter[str] = Counter()
        self._verdicts: Counter[str] = Counter()

    def add(self, trace: Iterable[Mapping[str, Any]]) -> None:
        """Count the events of a question, given as JSON."""
        trials: set[int] = set()
        turns: set[tuple[int, int]] = set()
        edits: set[tuple[str, int]] = set()
        for event in map(read_event, trace):
            if isinstance(event, (TurnEvent, AnswerVerified, Reflected)):
                trials.add(event.trial)
            if isinstance(event, TurnEvent) and event.step:  # 0: before the first turn
                turns.add((event.trial, event.step))
            match event:
                case Called():
                    self._calls += 1
                    self._failed += event.failed
                case ActionRead():
                    self._replies += 1
                    self._unread += bool(event.problem) and not event.actions
                case AnswerVerified():
                    self._verdicts[event.verdict] += 1
                case EditProposed():
                    edits.add(("proposed", event.proposal))
                case EditDecided(state="rejected"):
                    edits.add(("rejected", event.proposal))
                    self._gates[event.rule] += 1
                case EditDecided():
                    edits.add(("accepted", event.proposal))
        self._edits.update(outcome for outcome, _ in edits)
        self._n += bool(trials)
        self._trials += len(trials)
        self._turns += len(turns)

    def summary(self) -> dict[str, Any]:
        """Return the counts as JSON data; empty if no question was answered in turns."""
        if not self._n:
            return {}
        found: dict[str, Any] = {
            "n": self._n,
            "trials": self._trials / self._n,
            "turns": self._turns / self._n,
            "calls": self._calls / self._n,
            "failed_calls": self._failed / self._calls if self._calls else None,
            "replies": self._replies,
            "unread": self._unread / self._replies if self._replies else None,
            "verdicts": dict(sorted(self._verdicts.items())),
            "edits": {},
        }
        if self._edits:
            counts = {name: self._edits[name] for name in _OUTCOMES}
            found["edits"] = {**counts, "gates": dict(sorted(self._gates.items()))}
        return found
