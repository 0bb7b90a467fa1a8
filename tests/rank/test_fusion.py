"""Reciprocal rank fusion: ties, weights, and independence of the pool order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.rank.fusion import average_ranks, reciprocal_rank_fusion


def test_weighted_sum_with_ties_by_hand():
    lexical, semantic = np.array([0.0, 0.0]), np.array([0.2, 0.8])
    fused = reciprocal_rank_fusion([lexical, semantic], weights=[0.25, 2.0])
    assert fused == pytest.approx([0.25 / 61.5 + 2 / 62, 0.25 / 61.5 + 2 / 61])


score = st.integers(-3, 3).map(float) | st.floats(-10, 10)


@given(st.lists(score, max_size=12))
def test_rank_counts_better_items(scores):
    expected = [sum(o > s for o in scores) + (sum(o == s for o in scores) + 1) / 2 for s in scores]
    assert average_ranks(np.array(scores)) == pytest.approx(np.array(expected, dtype=float))


@given(st.lists(st.tuples(score, score), min_size=1, max_size=10), st.randoms())
def test_fusion_commutes_with_permutation(pairs, random):
    rankings = list(np.array(pairs).T)
    places = list(range(len(pairs)))
    random.shuffle(places)
    fused = reciprocal_rank_fusion(rankings, weights=[0.25, 1])
    shuffled = reciprocal_rank_fusion([scores[places] for scores in rankings], weights=[0.25, 1])
    assert shuffled == pytest.approx(fused[places])
