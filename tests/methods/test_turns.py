"""The skeleton of agents: turns until an answer, repeated calls, and a budget that is nearly used up."""

from __future__ import annotations

import pytest

from kgqa.methods.turns import STUCK, Move, take_turns
from kgqa.trace.trace import Budget, Trace


class Scripted:
    """An agent whose moves are listed: a text is a call, a number the answer, None the end. Each takes 100 tokens."""

    def __init__(self, *moves, trace):
        self.moves, self.trace, self.ran, self.last = list(moves), trace, [], []

    def reply(self, turn, *, last):
        self.last.append(last)
        self.trace.tally("act", prompt_tokens=100)
        move = self.moves[min(turn, len(self.moves)) - 1]
        if isinstance(move, int):
            return Move(move)
        return Move(calls={move: move}) if move is not None else Move(ends="no reply")

    def run(self, call, turns):
        self.ran.append(call if len(turns) == 1 else (call, turns[0]))
        return call

    def show(self, results, turn, *, last):
        assert results == [self.ran[-1] if isinstance(self.ran[-1], str) else self.ran[-1][0]]


@pytest.mark.parametrize(
    ("moves", "at_end", "ended", "ran", "last"),
    [
        (["a", "b", 7], "answer", (3, Move(7)), ["a", "b"], [False, False, False]),
        (["a", "b", "c", "d"], "answer", (4, Move()), ["a", "b", "c", "d"], [False, False, False, True]),
        (["a", "A ", "a", 7], "answer", (4, Move(7)), ["a", ("A ", 1), ("a", 1)], [False, False, False, True]),
        (["a", "a", "a", "a"], "end", (3, Move(ends=STUCK)), ["a", ("a", 1), ("a", 1)], [False, False, False]),
        (["a", "a", "a", 7], "go on", (4, Move(7)), ["a", ("a", 1), ("a", 1)], [False, False, False, True]),
    ],
)
def test_turns_end(moves, at_end, ended, ran, last):
    trace = Trace()
    agent = Scripted(*moves, trace=trace)
    assert take_turns(agent, 4, trace, at_end=at_end) == ended
    assert (agent.ran, agent.last) == (ran, last)


@pytest.mark.parametrize(("at_end", "turns"), [("answer", 4), ("end", 9)])
def test_the_last_turn_comes_while_the_budget_allows_one(at_end, turns):
    trace = Trace(Budget(tokens=680))
    agent = Scripted(*"abcdefghi", trace=trace)
    assert take_turns(agent, 9, trace, at_end=at_end)[0] == turns
    assert agent.last[-1]
