"""Pairwise and knockout tournaments: results with perfect and arbitrary choosers, and numbers of matches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import NEITHER
from kgqa.rank.tournaments.pairwise import knockout, pairwise
from kgqa.testing.oracle import NoisyOracle
from kgqa.trace import MatchPlayed
from tests.rank.tournaments.test_listwise import pool_of

SYSTEMS = [pairwise, knockout]
both_systems = pytest.mark.parametrize("play", SYSTEMS)
sizes = st.integers(0, 40)


class ScriptedChooser:
    """A chooser that replies to matches from a script and records its batches."""

    name = "a script"

    def __init__(self, answers: Sequence[int], say: Callable[[list[int], int], list[int]] = lambda given, size: given):
        self.answers = list(answers)
        self.rounds: list[list[tuple[Candidate, Candidate]]] = []
        self.say = say

    @property
    def pairs(self) -> list[tuple[Candidate, Candidate]]:
        return [pair for batch in self.rounds for pair in batch]

    def prefer(self, question: str, pairs: Sequence[tuple[Candidate, Candidate]]) -> list[int]:
        self.rounds.append(list(pairs))
        given = [self.answers.pop(0) if self.answers else 0 for _ in pairs]
        return self.say(given, len(pairs))


answers = st.lists(st.sampled_from([-1, 0, 1]), max_size=80)


@both_systems
@given(st.integers(2, 40), st.integers(1, 8), answers)
def test_no_pair_is_repeated_and_every_candidate_plays(play, size, k, script):
    pool = pool_of(size)
    chooser = ScriptedChooser(script)
    play("q", pool, chooser, k=k)
    assert len({frozenset(pair) for pair in chooser.pairs}) == len(chooser.pairs)
    assert {candidate for pair in chooser.pairs for candidate in pair} == set(pool)
    assert all(pool.index(first) < pool.index(second) for first, second in chooser.pairs)


@both_systems
@given(sizes, st.integers(1, 8), st.sets(st.integers(0, 39)), st.randoms(use_true_random=False))
def test_only_useful_candidates_are_ranked(play, size, k, useful, random):
    """A consistent chooser that finds some candidates useless: the best useful ones win, and no useless one twice."""
    pool = pool_of(size)
    truth = random.sample(pool, size)
    good = [candidate for candidate in truth if int(candidate.words[1:]) in useful]
    beaten: list[Candidate] = []

    class StrictChooser(NoisyOracle):
        def prefer(self, question, pairs):
            for pair in pairs:
                assert not set(pair) <= set(beaten), "two rejected candidates are compared again"
                beaten.extend(pair if not set(pair) & set(good) else ())
            replies = super().prefer(question, pairs)
            return [reply if set(pair) & set(good) else NEITHER for reply, pair in zip(replies, pairs)]

    won = play("q", pool, StrictChooser([*good, *(c for c in truth if c not in good)]), k=k)
    assert [candidate for candidate in won if candidate in good] == good[:k]
    assert won[: len(good)] == good[:k]


@both_systems
@pytest.mark.parametrize("size", range(2, 10))
def test_no_winner_if_all_pairs_are_useless(play, size):
    assert play("q", pool_of(size), ScriptedChooser([NEITHER] * size), k=3) == []


@both_systems
@pytest.mark.parametrize(("last", "winner"), [(1, 1), (-1, 0), (NEITHER, None)])
def test_a_candidate_that_had_no_match_gets_one(play, last, winner):
    pool, asked = pool_of(3), []

    class Chooser(ScriptedChooser):
        def prefer(self, question, pairs):
            asked.extend(pairs)
            return [NEITHER if len(asked) == 1 else last for _ in pairs]

    won = play("q", pool, Chooser([]), k=1)
    assert len(asked) == 2 and set(asked[0]) | set(asked[1]) == set(pool)
    assert won == ([asked[1][1 - winner]] if winner is not None else [])


@both_systems
@pytest.mark.parametrize(
    ("reply", "noted"), [(1, {"picked": ("r0",)}), (-1, {"picked": ("r1",)}), (0, {"picked": ("r0",), "tie": True})]
)
def test_matches_are_traced_with_their_winner(play, reply, noted):
    notes = []
    play("q", pool_of(2), ScriptedChooser([reply]), k=1, record=notes.append)
    assert notes == [MatchPlayed(candidates=("r0", "r1"), **noted)]


def worst_order(size: int) -> list[int]:
    """Return an order of 0..size-1 whose halves alternate at every level, so that no list empties early."""
    if size < 2:
        return list(range(size))
    low, high = worst_order(size // 2), [size // 2 + i for i in worst_order(size - size // 2)]
    longer, shorter = (high, low) if len(high) > len(low) else (low, high)
    return [i for pair in zip(longer, shorter) for i in pair] + longer[len(shorter) :]


def test_worst_case_of_thirty_candidates():
    pool = pool_of(30)
    oracle = NoisyOracle([pool[i] for i in worst_order(30)])
    assert pairwise("q", pool, oracle, k=3) == [pool[i] for i in worst_order(30)[:3]]
    assert (oracle.calls, oracle.rounds) == (57, 13)


@given(st.integers(1, 60), answers)
def test_knockout_winner_costs_one_match_per_loser(size, script):
    chooser = ScriptedChooser(script)
    knockout("q", pool_of(size), chooser, k=1)
    assert len(chooser.pairs) == size - 1
    assert len(chooser.rounds) == (math.ceil(math.log2(size)) if size > 1 else 0)


def test_only_losers_to_the_winner_play_for_second_place():
    """The second best meets the best in the first round (seeds 1 and 4) and is still found."""
    pool = pool_of(4)
    truth = [pool[0], pool[3], pool[1], pool[2]]
    assert knockout("q", pool, NoisyOracle(truth), k=2) == truth[:2]
