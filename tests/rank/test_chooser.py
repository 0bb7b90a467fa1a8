"""The offline chooser: scores and picks by words alone, and by embeddings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.rank.chooser import OfflineChooser

WORDS = ["sports team arena stadium", "sports team team mascot", "person place of birth", "country capital"]


@pytest.fixture
def pool(candidate):
    return [candidate(words) for words in WORDS]


@pytest.fixture(params=["words", "embeddings"])
def chooser(request):
    return OfflineChooser(request.getfixturevalue("encoder") if request.param == "embeddings" else None)


def test_it_says_who_decides(encoder):
    assert "BM25" in OfflineChooser(None).name
    assert "embeddings" in OfflineChooser(encoder).name


def test_the_best_has_the_highest_score(chooser, pool):
    scores = chooser.score("what is the mascot of the team?", pool)
    assert scores.shape == (4,)
    assert scores.dtype == np.float64
    assert scores.argmax() == 1
    assert np.isfinite(scores).all() and (np.abs(scores) <= 1.001).all()


def test_the_best_of_every_chunk_come_first(chooser, pool):
    picked = chooser.pick("which city is the capital of the country?", [pool[:2] + pool[3:], pool[1:], [pool[3]]], 2)
    assert [len(indices) for indices in picked] == [2, 2, 1]
    assert [indices[0] for indices in picked] == [2, 2, 0]


def test_indices_count_within_their_own_chunk(chooser, pool):
    chunks = [pool, pool[:1], pool[2:]]
    for indices, chunk in zip(chooser.pick("birth", chunks, 10), chunks, strict=True):
        assert sorted(indices) == list(range(len(chunk)))


def test_nothing_to_decide(chooser, pool):
    assert chooser.score("birth", []).shape == (0,)
    assert chooser.pick("birth", [], 3) == []
    assert chooser.pick("birth", [[], pool], 3)[0] == []


def test_ties_keep_the_order_of_the_pool(pool):
    assert OfflineChooser(None).pick("unheard of", [pool], 3) == [[0, 1, 2]]


def test_words_score_between_zero_and_one(pool):
    chooser = OfflineChooser(None)
    assert chooser.score("mascot", pool).tolist() == [0, 1, 0, 0]
    assert chooser.score("unheard of", pool).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("question", "best"), [("where was he born?", 2), ("which animal stands for the club?", 1), ("seat of government", 3)]
)
def test_embeddings_choose_what_shares_no_word(encoder, pool, question, best):
    assert OfflineChooser(encoder).pick(question, [pool], 1) == [[best]]


def test_a_candidate_scores_the_same_in_any_company(encoder, pool):
    chooser = OfflineChooser(encoder)
    together = chooser.score("mascot of the team", pool)
    alone = [chooser.score("mascot of the team", [each])[0] for each in pool]
    assert together == pytest.approx(alone, abs=1e-4)


_words = st.lists(st.sampled_from("team mascot capital birth film".split()), max_size=4).map(" ".join)


@given(_words, st.lists(st.lists(_words, max_size=5), max_size=4), st.integers(1, 6))
def test_picks_are_the_best_of_their_chunk_by_the_words_of_all(question, chunks, k):
    topic = Entity("http://ex.org/t")
    path = RelationPath(topic, (Step("http://ex.org/r"),))
    pools = [[Candidate(path, text) for text in chunk] for chunk in chunks]
    chooser = OfflineChooser(None)
    scores = iter(chooser.score(question, [candidate for pool in pools for candidate in pool]))
    for pool, indices in zip(pools, chooser.pick(question, pools, k), strict=True):
        part = [next(scores) for _ in pool]
        assert len(indices) == len(set(indices)) == min(k, len(pool))
        assert [part[i] for i in indices] == sorted(part, reverse=True)[:k]
