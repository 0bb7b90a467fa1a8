"""Counts what a language model did in turns: trials, turns, calls, replies that could not be read, edits by outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kgqa.trace import (
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
)

_IN_TURNS = frozenset(each.kind for each in (StepPlanned, FactNeeded, ActionRead, Called, Seen, Finished))
_IN_TRIALS = _IN_TURNS | {AnswerVerified.kind, Reflected.kind}
_OF_EDITS = {EditProposed.kind: "proposed", EditAccepted.kind: "accepted", EditGated.kind: "rejected"}
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
        trials: set[Any] = set()
        turns: set[Any] = set()
        edits: set[tuple[str, int]] = set()
        for event in trace:
            kind = str(event.get("kind"))
            if kind in _IN_TRIALS:
                trials.add(_key(event.get("trial", 0)))
            if kind in _IN_TURNS and event.get("step") != 0:  # 0: before the first turn
                turns.add((_key(event.get("trial", 0)), _key(event.get("step", 1))))
            if kind == Called.kind:
                self._calls += 1
                self._failed += event.get("failed") is True
            elif kind == ActionRead.kind:
                self._replies += 1
                self._unread += not event.get("actions") and bool(event.get("problem"))
            elif kind == AnswerVerified.kind:
                self._verdicts[str(event.get("verdict"))] += 1
            elif kind in _OF_EDITS:
                edits.add((_OF_EDITS[kind], _key(event.get("proposal", 0))))
                if kind == EditGated.kind:
                    self._gates[str(event.get("rule"))] += 1
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
            counts = {name: self._edits[name] for name in _OF_EDITS.values()}
            found["edits"] = {**counts, "gates": dict(sorted(self._gates.items()))}
        return found


def _key(value: Any) -> int:
    return value if isinstance(value, int) else 0
