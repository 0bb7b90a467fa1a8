"""Voting over several orders of the candidates, against position bias."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.rank.tournaments.chooser import NEITHER, EntityGroup
from kgqa.rank.tournaments.registry import tournament
from kgqa.rank.tournaments.voting import VotingChooser
from kgqa.testing.oracle import NoisyOracle
from tests.rank.tournaments.test_listwise import TOURNAMENTS, pool_of

POOL = pool_of(6)
A, B, C = POOL[:3]


class ScriptedChooser:
    """A chooser that returns scripted replies and records its input."""

    name = "a script"

    def __init__(self, *replies) -> None:
        self.replies = list(replies)
        self.shown = []

    def _next(self, question, items, k=None):
        self.shown.append(items)
        return [self.replies.pop(0) for _ in items]

    prefer = pick = pick_grouped = accept = _next


def test_votes_of_a_pair_alternate_its_order_in_one_batch():
    chooser = ScriptedChooser(*[0] * 6)
    VotingChooser(chooser).prefer("q", [(A, B), (B, C)])
    (shown,) = chooser.shown
    for pair, votes in (((A, B), shown[:3]), ((B, C), shown[3:])):
        assert votes[0] == votes[2] != votes[1]
        assert set(votes) == {pair, pair[::-1]}


@pytest.mark.parametrize(
    ("for_first", "expected"),
    [
        ([1, 1, 1], 1), ([1, -1, 1], 1), ([-1, 1, -1], -1), ([1, 0, 0], 1), ([0, -1, 0], -1), ([1, -1, 0], 0),
        ([0, 0, 0], 0), ([NEITHER, 1, NEITHER], NEITHER), ([NEITHER, 1, 0], 1),
    ],
)  # fmt: skip
def test_majority_of_usable_replies(for_first, expected):
    class LoyalChooser:
        """A chooser that votes for a candidate by script, whatever its position."""

        name = "loyal"

        def prefer(self, question, pairs):
            return [vote if first == A or vote not in (1, -1) else -vote for vote, (first, _) in zip(for_first, pairs)]

    assert VotingChooser(LoyalChooser()).prefer("q", [(A, B)]) == [expected]
    assert VotingChooser(LoyalChooser()).prefer("q", [(B, A)]) == [expected if expected == NEITHER else -expected]


def test_position_bias_is_removed():
    """Of 200 pairs, a chooser that always names the first gives each side about half (100 +- 21)."""
    pool = pool_of(400)
    pairs = list(zip(pool[:200], pool[200:]))
    biased = NoisyOracle(pool, bias=1)
    assert biased.prefer("q", pairs) == [1] * 200
    for votes in (1, 3):
        assert 79 <= VotingChooser(biased, votes).prefer("q", pairs).count(1) <= 121


def test_chunks_are_shown_in_three_orders_in_one_batch():
    chooser = ScriptedChooser([0], [0], [0], [], [], [])
    VotingChooser(chooser).pick("q", [POOL[:5], POOL[:2]], 1)
    assert chooser.shown == [
        [
            [POOL[i] for i in order]
            for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 3, 4, 0, 1], [0, 1], [1, 0], [1, 0])
        ]
    ]


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        # of chunk 0 1 2 3, its reverse 3 2 1 0 and its rotation 2 3 0 1; three are wanted, so places give 3, 2, 1
        (([0, 1, 2], [3, 2, 1], [2, 3, 0]), [0, 1, 2]),
        (([3, 1], [3, 2], [3, 2]), [1, 0]),  # votes 3 1, 0 1, 1 0: points 1: 2 + 2 + 3, 0: 3 + 2, 3: 3
        (([0], [], []), []),
        (([0], None, None), [0]),
        (([], [], []), []),
        ((None, None, None), None),
        (([0], [3], [2, 3, 0]), [0]),  # the median of the lengths 1, 1, 3
        (([0], [3, 2, 1], None), [0, 1, 2]),  # of two lengths the longer
        (([0], [0], [3]), [0]),  # one vote each for 0, 3 and 1: the earlier
    ],
)
def test_borda_counts(replies, expected):
    assert VotingChooser(ScriptedChooser(*replies)).pick("q", [POOL[:4]], 3) == [expected]


GROUPS = [EntityGroup("p", ("a", "b")), EntityGroup("q", ()), EntityGroup("r", ("c", "d", "e"))]


def test_grouped_entities_stay_with_their_path():
    chooser = ScriptedChooser([], [], [])
    VotingChooser(chooser).pick_grouped("q", [GROUPS], 2)
    backwards = [EntityGroup("r", ("e", "d", "c")), EntityGroup("q", ()), EntityGroup("p", ("b", "a"))]
    rotated = [EntityGroup("q", ()), EntityGroup("r", ("d", "e", "c")), EntityGroup("p", ("b", "a"))]
    assert chooser.shown == [[GROUPS, backwards, rotated]]


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        (("yes", "yes", "no"), "yes"), (("no", "unparsed", "no"), "no"), (("yes", "unparsed", "no"), "unparsed"),
        (("yes", "unparsed", "unparsed"), "unparsed"), (("unparsed",) * 3, "unparsed"),
    ],
)  # fmt: skip
def test_verdicts_need_a_majority(replies, expected):
    chooser = ScriptedChooser(*replies, "yes", "yes", "yes")
    assert VotingChooser(chooser).accept("q", [[A, B], [C]]) == [expected, "yes"]
    assert chooser.shown == [[[A, B], [B, A], [B, A], [C], [C], [C]]]
    assert VotingChooser(ScriptedChooser("yes"), 1).accept("q", [[A]]) == ["yes"]


@pytest.mark.parametrize("votes", [1, 3])
@pytest.mark.parametrize("play", [tournament(name).play for name in TOURNAMENTS], ids=TOURNAMENTS)
@given(
    size=st.integers(0, 20), k=st.integers(1, 4), p=st.sampled_from([0.6, 1.0]), silent=st.sampled_from([0.0, 0.5, 1.0])
)
def test_tournaments_with_votes(play, votes, size, k, p, silent):
    pool = pool_of(size)
    won = play("q", pool, VotingChooser(NoisyOracle(pool[::-1], p=p, silent=silent), votes), k=k)
    assert len(set(won)) == min(k, size) and set(won) <= set(pool)
    if silent == 1:
        assert won == pool[:k]
    elif silent == 0 and p == 1:
        assert won == pool[::-1][:k]
