"""The skeleton of methods in which a language model acts in turns: it calls tools until it answers.

An `Agent` asks the model, runs a call and shows the results; `take_turns` counts the turns, notices repeated calls and
watches the budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar
from typing import Literal as OneOf

from kgqa.trace.trace import Trace

C = TypeVar("C")
A = TypeVar("A")
R = TypeVar("R")
MAX_REPEATS = 3
"""How often the same call may be made before the model no longer makes progress."""
STUCK = "the same call was made three times"


@dataclass(frozen=True, slots=True)
class Move(Generic[C, A]):
    """What the model does in a turn.

    Attributes:
        answer: Its answer, which ends the turns.
        calls: Otherwise its calls by their texts; none if the reply could not be read.
        ends: Why the turns end without an answer.
    """

    answer: A | None = None
    calls: Mapping[str, C] = field(default_factory=dict)
    ends: str = ""


@dataclass(frozen=True, slots=True)
class Repeat:
    """An earlier call that is made again. `first`: the turn that made it first. `last`: whether it is the last time."""

    first: int
    last: bool


@dataclass(frozen=True, slots=True)
class Ended(Generic[A]):
    """How the turns ended: after how many, and with which answer, or why without one."""

    turn: int
    answer: A | None = None
    why: str = ""


class Agent(Protocol[C, A, R]):
    """What methods differ in."""

    def reply(self, turn: int, *, last: bool) -> Move[C, A]:
        """Ask the model for its move; in the last turn only an answer has an effect."""

    def run(self, call: C, turn: int, repeat: Repeat | None) -> R:
        """Run a call, or say that it is repeated, and return what the model is shown."""

    def show(self, results: Sequence[R], turn: int, *, last: bool) -> None:
        """Add the results of a turn, and whether the next one is the last, to what the next prompt shows."""


class LoopGuard:
    """The calls that were made, by their texts; texts that differ only in case or blanks are the same."""

    def __init__(self) -> None:
        self._made: dict[str, list[int]] = {}

    def check(self, text: str, turn: int) -> Repeat | None:
        """Add a call of a turn; return what it repeats, None for a new call."""
        made = self._made.setdefault(" ".join(text.split()).casefold(), [])
        if not made or made[-1] != turn:
            made.append(turn)
        return Repeat(made[0], len(made) >= MAX_REPEATS) if len(made) > 1 else None


class Pace:
    """What turns take of the budget of a question."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._used = self._most = (0.0, 0.0)

    def nearly_spent(self) -> bool:
        """Return whether the budget allows about one more turn, judged by the longest one so far."""
        usage, budget = self._trace.usage(), self._trace.budget
        used = float(usage.prompt_tokens + usage.completion_tokens), usage.seconds
        self._most = max(self._most[0], used[0] - self._used[0]), max(self._most[1], used[1] - self._used[1])
        self._used = used
        if budget.calls is not None and usage.calls + 1 >= budget.calls:
            return True
        limits = zip((budget.tokens, budget.seconds), used, self._most)
        return any(limit is not None and now + 2 * most >= limit for limit, now, most in limits)


def take_turns(
    agent: Agent[C, A, R], limit: int, trace: Trace, *, at_end: OneOf["answer", "end", "go on"] = "answer"
) -> Ended[A]:
    """Let a model act until it answers, or its turns are used up.

    Args:
        agent: Asks the model, and runs its calls.
        limit: Most turns.
        trace: The trace of the question.
        at_end: What becomes of a model that makes the same call for the third time. answer: the next turn is its last,
            as when the budget is nearly used up; end: its turns end; go on: it is not hindered.

    Raises:
        BudgetExhausted: The budget of the question is used up.
    """
    guard, pace = LoopGuard(), Pace(trace)
    last = limit == 1 or (at_end == "answer" and pace.nearly_spent())
    for turn in range(1, limit + 1):
        move = agent.reply(turn, last=last)
        if move.answer is not None or move.ends or (last and turn < limit):
            return Ended(turn, move.answer, move.ends)
        results, stuck = [], False
        for text, call in move.calls.items():
            repeat = guard.check(text, turn)
            results.append(agent.run(call, turn, repeat))
            stuck = stuck or (repeat is not None and repeat.last)
        last = turn + 1 >= limit or (at_end == "answer" and (stuck or pace.nearly_spent()))
        agent.show(results, turn, last=last)
        if stuck and at_end == "end":
            return Ended(turn, why=STUCK)
    return Ended(limit)
