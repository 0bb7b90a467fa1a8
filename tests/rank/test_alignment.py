"""Alignment of words with hops, compared with all segmentations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.rank.alignment import NOT_ALIGNED, HopAligner

WORDS = ["alpha", "beta", "gamma", "delta"]
HOPS = ["one", "two", "three"]


def vectors(texts):
    """Return a fixed random unit vector for each text."""
    found = [np.random.default_rng(sum(map(ord, text)) * 7919 + len(text)).normal(size=8) for text in texts]
    return np.array([vector / np.linalg.norm(vector) for vector in found]) if found else np.empty((0, 8))


def by_hand(words, chain, *, all_words):
    """Return the best mean cosine over all segmentations of the words into one segment per hop."""
    best = -np.inf
    for used in [len(words)] if all_words else range(len(chain), len(words) + 1):
        for cuts in itertools.combinations(range(1, used), len(chain) - 1):
            places = [0, *cuts, used]
            stretches = [" ".join(words[i:j]) for i, j in itertools.pairwise(places)]
            if all(stretches):
                cosines = [float(vectors([s])[0] @ vectors([hop])[0]) for s, hop in zip(stretches, chain)]
                best = max(best, sum(cosines) / len(chain))
    return best if np.isfinite(best) else NOT_ALIGNED


@given(
    st.lists(st.sampled_from(WORDS), max_size=4),
    st.lists(st.lists(st.sampled_from(HOPS), min_size=1, max_size=3).map(tuple), min_size=1, max_size=3),
)
def test_alignment_is_the_best_segmentation(words, chains):
    aligner = HopAligner(words, encode_questions=vectors, encode=vectors)
    assert aligner.scores(chains) == pytest.approx([by_hand(words, chain, all_words=True) for chain in chains])
    assert aligner.promises(chains) == pytest.approx([by_hand(words, chain, all_words=False) for chain in chains])


def test_more_hops_than_words_and_no_hops():
    aligner = HopAligner(["alpha"], encode_questions=vectors, encode=vectors)
    assert list(aligner.scores([("one", "two"), ()])) == [NOT_ALIGNED, NOT_ALIGNED]
    assert list(HopAligner([], encode_questions=vectors, encode=vectors).scores([("one",)])) == [NOT_ALIGNED]
