"""Sorts the events of a method that acts in turns into trials and turns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kgqa.trace import (
    ActingEvent,
    ActionRead,
    AnswerVerified,
    Called,
    EditProposed,
    Event,
    Finished,
    Reflected,
    Seen,
    StepPlanned,
)

MAX_TURNS = 200
MAX_EVENTS = 4000


@dataclass(eq=False)
class Turn:
    """A turn: what was planned and missing, what was done, and what was seen. `trial`: from 0.

    `step`: from 1; 0 before the first turn. `edits`: the numbers of the edits that were proposed in it.
    """

    trial: int
    step: int
    plans: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    actions: list[ActionRead] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    edits: list[int] = field(default_factory=list)
    finished: list[Finished] = field(default_factory=list)


@dataclass(eq=False)
class Trial:
    """A trial: its turns, the verdicts on its answer, and the reflections on it. `number`: from 0."""

    number: int
    turns: list[Turn] = field(default_factory=list)
    verdicts: list[AnswerVerified] = field(default_factory=list)
    reflections: list[Reflected] = field(default_factory=list)


@dataclass
class ActingTrials:
    """The trials of a question. `left_out`: number of turns that are not kept."""

    trials: list[Trial] = field(default_factory=list)
    left_out: int = 0

    @property
    def turns(self) -> list[Turn]:
        """All turns."""
        return [turn for trial in self.trials for turn in trial.turns]


def trials_of(trace: Iterable[Event]) -> ActingTrials:
    """Return the trials of a trace; without trials for methods that do not act in turns."""
    reader = _Reader()
    for event in [each for each in trace if isinstance(each, ActingEvent)][:MAX_EVENTS]:
        reader.read(event)
    return ActingTrials(list(reader.trials.values()), len(reader.left_out))


class _Reader:
    def __init__(self) -> None:
        self.trials: dict[int, Trial] = {}
        self.left_out: set[tuple[int, int]] = set()
        self._turns: dict[tuple[int, int], Turn] = {}
        self._last = 0

    def read(self, event: Event) -> None:
        match event:
            case AnswerVerified():
                self._trial(event.trial).verdicts.append(event)
            case Reflected():
                self._trial(event.trial).reflections.append(event)
            case EditProposed():
                if turn := self._turn(self._last, event.step):
                    turn.edits.append(event.proposal)
            case StepPlanned() | ActionRead() | Called() | Seen() | Finished():
                self._last = event.trial
                if turn := self._turn(event.trial, event.step):
                    _add(turn, event)

    def _trial(self, number: int) -> Trial:
        return self.trials.setdefault(number, Trial(number))

    def _turn(self, trial: int, step: int) -> Turn | None:
        key = trial, step
        if key not in self._turns:
            if len(self._turns) >= MAX_TURNS:
                self.left_out.add(key)
                return None
            self._turns[key] = Turn(trial, step)
            self._trial(trial).turns.append(self._turns[key])
        return self._turns[key]


def _add(turn: Turn, event: StepPlanned | ActionRead | Called | Seen | Finished) -> None:
    match event:
        case StepPlanned():
            (turn.needs if event.need else turn.plans).append(event.text)
        case ActionRead():
            turn.actions.append(event)
        case Called():
            turn.calls.append(event)
        case Seen():
            turn.seen.append(event)
        case Finished():
            turn.finished.append(event)
