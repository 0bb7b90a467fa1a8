"""The prefilter: the best candidates of a pool by BM25, embeddings or both."""

from __future__ import annotations

import pytest

from kgqa.rank.fusion import reciprocal_rank_fusion
from kgqa.rank.lexical import bm25
from kgqa.rank.prefilter import prefilter

RELATIONS = [
    "sports team arena stadium",
    "sports team team mascot",
    "person place of birth",
    "person profession",
    "country capital",
    "film directed by",
    "film initial release date",
    "country currency used",
]


@pytest.fixture
def pool(candidate):
    return [candidate(words) for words in RELATIONS]


def words_of(candidates):
    return [each.words for each in candidates]


def lexical(question, candidates, keep):
    return prefilter(question, candidates, keep=keep, encoder=None, lexical_weight=1.0)


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("where was she born?", "person place of birth"),
        ("who made the movie?", "film directed by"),
        ("what money do people pay with there?", "country currency used"),
        ("what does he do for a living?", "person profession"),
        ("which animal stands for the club?", "sports team team mascot"),
    ],
)
def test_embeddings_match_without_common_words(pool, encoder, question, best):
    kept = prefilter(question, pool, keep=3, encoder=encoder, lexical_weight=0.25)
    assert best in words_of(kept)


def test_both_rankings_are_fused(pool, encoder):
    question = "what money does a person use?"
    texts = words_of(pool)
    semantic = encoder.encode(texts) @ encoder.encode_questions([question])[0]
    orders = set()
    for weight in (0.0, 0.25, 1.0):
        fused = reciprocal_rank_fusion([bm25(question, texts), semantic], weights=[weight, 1.0])
        kept = prefilter(question, pool, keep=8, encoder=encoder, lexical_weight=weight)
        assert [fused[pool.index(each)] for each in kept] == sorted(fused, reverse=True)
        orders.add(tuple(words_of(kept)))
    assert len(orders) == 3


# ---- other orders ----


@pytest.mark.parametrize("method", ["rrf", "sbert"])
def test_words_replace_missing_embeddings(pool, method):
    kept = prefilter("what is the mascot of the team?", pool, keep=8, encoder=None, method=method)
    assert kept == lexical("what is the mascot of the team?", pool, 8)


def test_prefilter_none_keeps_the_pool(pool, encoder):
    assert prefilter("birth", pool, keep=2, encoder=encoder, method="none") == pool
    assert prefilter("birth", [], keep=2, encoder=encoder, method="none") == []


def test_custom_scorer(pool):
    calls = []

    def by_length(question, candidates):
        calls.append((question, list(candidates)))
        return [float("nan") if "film" in each.words else len(each.words) for each in candidates]

    kept = prefilter("which?", pool, keep=8, encoder=None, method="trained", score=by_length)
    assert calls == [("which?", pool)]
    sizes = [len(each.words) for each in kept[:6]]
    assert sizes == sorted(sizes, reverse=True)
    assert kept[6:] == pool[5:7]  # without a score, in the order of the pool
    assert prefilter("which?", [], keep=3, encoder=None, method="trained", score=by_length) == []
    assert len(calls) == 1


def test_random_prefilter_is_reproducible(pool):
    def sample(pool, *, keep=5, question="q", seed=1):
        return prefilter(question, pool, keep=keep, encoder=None, method="random", seed=seed)

    assert sample(pool) == sample(pool) == sample(pool[::-1])
    assert sample(pool, keep=3) == sample(pool)[:3]
    assert set(sample(pool, keep=100)) == set(pool)
    orders = {tuple(sample(pool, keep=8, question=q, seed=s)) for q in "qrs" for s in range(3)}
    assert len(orders) == 9


def test_published_bm25_variant(pool):
    question = "what is the mascot of the team?"
    scores = bm25(question, words_of(pool), variant="okapi")
    kept = prefilter(question, pool, keep=8, encoder=None, method="bm25", lexical_variant="okapi")
    assert [scores[pool.index(each)] for each in kept] == sorted(scores, reverse=True)
    assert scores.tolist() != bm25(question, words_of(pool)).tolist()
