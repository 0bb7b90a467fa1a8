"""Reconstructs the rounds and sub-questions of a method over text from the trace of a question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kgqa.trace import (
    Drafted,
    DraftVerified,
    Event,
    Grounded,
    PiecesKept,
    Planned,
    Retrieved,
    StepAnswered,
    Stopped,
    SufficiencyJudged,
    TextEvent,
)

MAX_STEPS = 80
MAX_DEPTH = 6
MAX_EVENTS = 4000
Verdict = SufficiencyJudged | DraftVerified


@dataclass(eq=False)
class TextStep:
    """A sub-question, or the question itself (`number` 0), with what happened for it.

    `kept`: the pieces that its prompts show; None if it had no prompt. `round`: the round that planned it. `final`: the
    question is answered after the method has stopped. `below`: sub-questions that need its answer.
    """

    number: int
    text: str = ""
    needs: tuple[int, ...] = ()
    round: int | None = None
    final: bool = False
    grounded: list[Grounded] = field(default_factory=list)
    searches: list[Retrieved] = field(default_factory=list)
    kept: tuple[str, ...] | None = None
    answers: list[StepAnswered] = field(default_factory=list)
    below: list[TextStep] = field(default_factory=list)
    above: TextStep | None = field(default=None, repr=False)

    @property
    def depth(self) -> int:
        """Number of steps above this one."""
        return 0 if self.above is None else self.above.depth + 1

    @property
    def answer(self) -> StepAnswered | None:
        """The last answer."""
        return self.answers[-1] if self.answers else None


@dataclass(eq=False)
class Draft:
    """A draft of the chain of reasoning, and how it was verified."""

    drafted: Drafted
    verified: DraftVerified | None = None


@dataclass(eq=False)
class Plan:
    """Sub-questions that were asked together. `reasons`: why, if they ask for what was missing.

    `steps`: those that are not shown below sub-questions of earlier plans. `elsewhere`: number of those that are.
    """

    reasons: tuple[str, ...] = ()
    steps: list[TextStep] = field(default_factory=list)
    elsewhere: int = 0


Entry = TextStep | Plan | Draft | DraftVerified | SufficiencyJudged | Stopped
"""What a round consists of."""


@dataclass(eq=False)
class Round:
    """A round and what happened in it, in this order. `number`: None if no event tells."""

    number: int | None
    entries: list[Entry] = field(default_factory=list)


@dataclass(eq=False)
class TextRounds:
    """The rounds of a question. `steps`: its sub-questions by number. `left_out`: number of sub-questions not shown."""

    rounds: list[Round] = field(default_factory=list)
    steps: dict[int, TextStep] = field(default_factory=dict)
    left_out: int = 0


def rounds_of(trace: Iterable[Event]) -> TextRounds:
    """Return the rounds of a trace; without rounds for methods that do not answer from text."""
    reader = _Reader()
    for event in [each for each in trace if isinstance(each, TextEvent)][:MAX_EVENTS]:
        reader.read(event)
    return reader.found


class _Reader:
    """Sorts the events of a trace into rounds."""

    def __init__(self) -> None:
        self.found = TextRounds()
        self._round = Round(None)
        self._own: TextStep | None = None
        self._stopped = False
        self._drafts: dict[tuple[int, str], Draft] = {}
        self._last: tuple[Verdict, Draft | None] | None = None

    def read(self, event: Event) -> None:
        if isinstance(event, (Planned, StepAnswered, SufficiencyJudged, Drafted, DraftVerified)):
            self._enter(event.round)
        if isinstance(event, Planned):
            self._plan(event)
        elif isinstance(event, (Grounded, Retrieved, PiecesKept, StepAnswered)):
            self._add(event)
        elif isinstance(event, Drafted):
            draft = self._drafts[event.round, event.channel] = Draft(event)
            self._entries.append(draft)
        elif isinstance(event, DraftVerified):
            verified = self._drafts.get((event.round, event.channel))
            if verified is None or verified.verified is not None:
                self._entries.append(event)
            else:
                verified.verified = event
            self._last = event, verified
        elif isinstance(event, SufficiencyJudged):
            self._entries.append(event)
            self._last = event, None
        elif isinstance(event, Stopped):
            self._stopped = True
            self._own = None
            self._entries.append(event)

    @property
    def _entries(self) -> list[Entry]:
        if self._round not in self.found.rounds:
            self.found.rounds.append(self._round)
        return self._round.entries

    def _enter(self, number: int) -> None:
        if self._round.number == number:
            return
        if self._round.number is None:
            self._round.number = number
            return
        known = [each for each in self.found.rounds if each.number == number]
        self._round = known[0] if known else Round(number)
        self._own = None

    def _plan(self, event: Planned) -> None:
        fresh = []
        for each in event.sub_questions:
            if len(self.found.steps) >= MAX_STEPS:
                self.found.left_out += 1
            elif each.number and each.number not in self.found.steps:
                step = TextStep(each.number, each.text, each.needs, event.round)
                self.found.steps[each.number] = step
                fresh.append(step)
        verdict_above = self._entries and self._entries[-1] is (self._last or [None])[0]
        plan = Plan(tuple(self._reasons(*self._last)) if self._last and not verdict_above else ())
        for step in fresh:
            step.above = _above(step, self.found.steps)
            if step.above is None:
                plan.steps.append(step)
            else:
                step.above.below.append(step)
                plan.elsewhere += step.above not in fresh and _first(step) not in plan.steps
        self._entries.append(plan)
        self._own = None

    def _reasons(self, verdict: Verdict, draft: Draft | None) -> Iterator[str]:
        """Yield what the last verdict found missing: in words, or failed claims and unanswered sub-questions."""
        if isinstance(verdict, SufficiencyJudged):
            if verdict.missing and not verdict.accepted:
                yield verdict.missing
            return
        claims: Sequence[str] = [claim.text for claim in draft.drafted.claims] if draft else ()
        for number in verdict.failed:
            text = claims[number - 1] if 0 < number <= len(claims) else ""
            yield f"claim {number} does not hold: {text}" if text else f"claim {number} does not hold"
        for step in self.found.steps.values():
            if step.answers and not step.answers[-1].answers:
                yield f"sub-question {step.number} has no answer"

    def _add(self, event: Grounded | Retrieved | PiecesKept | StepAnswered) -> None:
        step = self._step(event)
        if step is None:
            return
        if isinstance(event, Grounded):
            step.grounded.append(event)
        elif isinstance(event, Retrieved):
            step.searches.append(event)
        elif isinstance(event, PiecesKept):
            step.kept = tuple(dict.fromkeys((*(step.kept or ()), *event.pieces)))
        else:
            step.text = step.text or event.question
            step.answers.append(event)

    def _step(self, event: Grounded | Retrieved | PiecesKept | StepAnswered) -> TextStep | None:
        """Return the step that an event belongs to; the question itself is a new step each time it is answered."""
        if event.step in self.found.steps:
            return self.found.steps[event.step]
        if event.step:
            if len(self.found.steps) >= MAX_STEPS:
                return None
            step = self.found.steps[event.step] = TextStep(event.step, round=self._round.number)
            self._entries.append(step)
            return step
        if self._own is None or (self._own.answers and not isinstance(event, StepAnswered)):
            self._own = TextStep(0, round=self._round.number, final=self._stopped)
            self._entries.append(self._own)
        return self._own


def _above(step: TextStep, steps: dict[int, TextStep]) -> TextStep | None:
    """Return the step below which a step is shown: the deepest one whose answer it needs."""
    needed = [steps[number] for number in step.needs if number in steps and number != step.number]
    needed = [each for each in needed if step not in _upwards(each)]
    above = max(needed, key=lambda each: (each.depth, each.number), default=None)
    while above is not None and above.depth >= MAX_DEPTH:
        above = above.above
    return above


def _upwards(step: TextStep) -> Iterator[TextStep]:
    above: TextStep | None = step
    while above is not None:
        yield above
        above = above.above


def _first(step: TextStep) -> TextStep:
    return list(_upwards(step))[-1]
