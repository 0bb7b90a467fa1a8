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


class Agent(Protocol[C, A, R]):
    """What methods differ in."""

    def reply(self, turn: int, *, last: bool) -> Move[C, A]:
        """Ask the model for its move; in the last turn only an answer has an effect."""

    def run(self, call: C, turns: Sequence[int]) -> R:
        """Run a call, or say that it is repeated, and return what the model is shown.

        Args:
            call: The call.
            turns: The turns in which it was made, the present one last.
        """

    def show(self, results: Sequence[R], turn: int, *, last: bool) -> None:
        """Add the results of a turn, and whether the next one is the last, to what the next prompt shows."""


def nearly_spent(trace: Trace, turns: int) -> bool:
    """Return whether the budget allows at most one more turn, which may take four times the mean of earlier ones."""
    usage, budget = trace.usage(), trace.budget
    if budget.calls is not None and usage.calls + 1 >= budget.calls:
        return True
    tokens = float(usage.prompt_tokens + usage.completion_tokens)
    limits = ((budget.tokens, tokens), (budget.seconds, usage.seconds))
    return any(limit is not None and used + (4 * used / turns if turns else 0) >= limit for limit, used in limits)


def take_turns(
    agent: Agent[C, A, R], limit: int, trace: Trace, *, at_end: OneOf["answer", "end", "go on"] = "answer"
) -> tuple[int, Move[C, A]]:
    """Let a model act until it answers, or its turns are used up.

    Args:
        agent: Asks the model, and runs its calls.
        limit: Most turns.
        trace: The trace of the question.
        at_end: What becomes of a model that makes the same call for the third time. answer: the next turn is its last,
            as when the budget is nearly used up; end: its turns end; go on: it is not hindered.

    Returns:
        The number of turns, and the last move: with an answer, or why there is none.

    Raises:
        BudgetExhausted: The budget of the question is used up.
    """
    made: dict[str, list[int]] = {}
    last = limit == 1 or (at_end == "answer" and nearly_spent(trace, 0))
    for turn in range(1, limit + 1):
        move = agent.reply(turn, last=last)
        if move.answer is not None or move.ends or (last and turn < limit):
            return turn, move
        results, stuck = [], False
        for text, call in move.calls.items():
            turns = made.setdefault(" ".join(text.split()).casefold(), [])
            turns += [] if turn in turns else [turn]
            results.append(agent.run(call, turns))
            stuck = stuck or len(turns) >= MAX_REPEATS
        last = turn + 1 >= limit or (at_end == "answer" and (stuck or nearly_spent(trace, turn)))
        agent.show(results, turn, last=last)
        if stuck and at_end == "end":
            return turn, Move(ends=STUCK)
    return limit, Move()
