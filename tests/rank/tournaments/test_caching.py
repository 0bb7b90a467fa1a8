"""The caching chooser: each decision is made once per question and counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.rank.tournaments.caching import CachingChooser
from kgqa.rank.tournaments.chooser import NEITHER, EntityGroup, RandomChooser
from kgqa.rank.tournaments.registry import tournament
from kgqa.testing.oracle import NoisyOracle
from tests.rank.tournaments.test_listwise import TOURNAMENTS, ConstantChooser, pool_of

POOL = pool_of(8)
A, B, C = POOL[:3]


def test_swapped_pair_is_the_same_pair():
    memo = CachingChooser(NoisyOracle(POOL))
    assert memo.prefer("q", [(A, B), (C, A), (B, A)]) == [1, -1, -1]
    assert memo.calls == 2
    assert memo.prefer("q", [(A, C), (B, C), (B, A)]) == [1, 1, -1]
    assert memo.calls == 3
    assert memo.prefer("q", [(A, C)]) == [1]
    assert memo.calls == 3


def test_only_missing_decisions_are_requested():
    oracle = NoisyOracle(POOL)
    memo = CachingChooser(oracle)
    memo.pick("q", [[A, B], [B, C]], 1)
    assert memo.pick("q", [[C, B], [A, C], [B, A]], 1) == [[1], [0], [1]]
    assert memo.calls == 3 and (oracle.calls, oracle.rounds) == (3, 2)


@pytest.mark.parametrize(("reply", "read"), [([], []), (None, None), ([2, 1], [2, 1])])
def test_chunk_replies_are_read_once(reply, read):
    memo = CachingChooser(ConstantChooser(reply))
    assert memo.pick("q", [POOL[:3]], 2) == [read]
    assert memo.pick("q", [POOL[:3][::-1]], 2) == [read and [2 - i for i in read]]
    assert memo.calls == 1


@pytest.mark.parametrize("reply", [0, NEITHER])
def test_a_tie_and_neither_are_the_same_in_both_orders(reply):
    memo = CachingChooser(ConstantChooser(reply))
    assert memo.prefer("q", [(A, B)]) == memo.prefer("q", [(B, A)]) == [reply]
    assert memo.calls == 1


def test_picked_candidates_are_kept_in_order():
    memo = CachingChooser(NoisyOracle([C, A, B]))
    memo.pick("q", [[A, B], [C]], 1)
    assert list(memo.picked) == [A]
    memo.pick("q", [[A, C]], 2)
    assert list(memo.picked) == [A, C]


def test_trivial_decisions_are_not_requested():
    memo = CachingChooser(ConstantChooser([]))
    assert memo.pick("q", [[A], []], 3) == [[0], []]
    assert memo.pick_grouped("q", [[EntityGroup("p", ("a",))], [EntityGroup("p", ())], []], 3) == [[0], [], []]
    assert memo.score("q", []).shape == (0,)
    assert memo.prefer("q", []) == memo.pick("q", [], 3) == memo.accept("q", []) == []
    assert memo.calls == 0


def test_grouped_picks_are_cached():
    truth = [("p", "b"), ("r", "c"), ("p", "a")]
    chunk = [EntityGroup("p", ("a", "b")), EntityGroup("r", ("c",))]
    memo = CachingChooser(NoisyOracle(truth))
    assert memo.pick_grouped("q", [chunk], 2) == memo.pick_grouped("q", [chunk], 2) == [[1, 2]]
    assert memo.calls == 1


def test_scores_are_cached_read_only():
    memo = CachingChooser(RandomChooser())
    first = memo.score("q", POOL, batch_size=3)
    expected = first.tolist()
    first[:] = 0
    assert memo.score("q", POOL, batch_size=3).tolist() == expected
    assert memo.calls == 3
    memo.score("q", POOL)
    assert memo.calls == 4


def test_verdicts_are_cached_for_any_order_of_evidence():
    memo = CachingChooser(NoisyOracle(POOL))
    assert memo.accept("q", [[A, B], [B, C], [B, A]]) == ["yes", "no", "yes"]
    assert memo.accept("q", [[C, B], [C]]) == ["no", "no"]
    assert memo.calls == 3


@pytest.mark.parametrize("play", [tournament(name).play for name in TOURNAMENTS], ids=TOURNAMENTS)
@given(size=st.integers(0, 25), k=st.integers(1, 5), seed=st.integers(0, 1000))
def test_tournament_result_is_unchanged_and_repeated_from_the_cache(play, size, k, seed):
    pool = pool_of(size)
    memo = CachingChooser(RandomChooser(seed))
    won = play("q", pool, RandomChooser(seed), k=k)
    assert play("q", pool, memo, k=k) == won
    calls = memo.calls
    assert play("q", pool, memo, k=k) == won
    assert memo.calls == calls
