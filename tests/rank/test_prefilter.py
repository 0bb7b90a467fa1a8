"""The prefilter: the best of a pool, best first, with BM25 alone and with embeddings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.model import Candidate, Entity, RelationPath, Step
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


def test_bm25_alone_puts_the_match_first(pool):
    assert words_of(lexical("what is the mascot of the team?", pool, 2)) == [
        "sports team team mascot",
        "sports team arena stadium",
    ]


def test_ties_keep_the_order_of_the_pool(pool):
    assert lexical("unheard of", pool, 3) == pool[:3]


@pytest.mark.parametrize(("keep", "left"), [(1, 1), (8, 8), (100, 8)])
def test_as_many_as_asked_for_or_all(pool, keep, left):
    kept = lexical("film", pool, keep)
    assert len(kept) == len(set(kept)) == left


def test_an_empty_pool():
    assert lexical("film", [], 5) == []


def test_an_empty_pool_with_embeddings(encoder):
    assert prefilter("film", [], keep=5, encoder=encoder, lexical_weight=0.25) == []


_words = st.lists(st.sampled_from("team mascot capital birth film".split()), max_size=4).map(" ".join)


@given(_words, st.lists(_words, max_size=10), st.integers(1, 12))
def test_what_is_kept_is_no_worse_than_what_is_cut(question, texts, keep):
    topic = Entity("http://ex.org/t")
    pool = [Candidate(RelationPath(topic, (Step(f"http://ex.org/{i}"),)), text) for i, text in enumerate(texts)]
    scores = dict(zip(pool, bm25(question, texts)))
    kept = lexical(question, pool, keep)
    assert len(kept) == min(keep, len(pool)) and set(kept) <= set(pool)
    assert [scores[c] for c in kept] == sorted((scores[c] for c in kept), reverse=True)
    assert all(scores[cut] <= scores[kept[-1]] for cut in set(pool) - set(kept))


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
def test_embeddings_find_what_shares_no_word(pool, encoder, question, best):
    kept = prefilter(question, pool, keep=3, encoder=encoder, lexical_weight=0.25)
    assert best in words_of(kept)


def test_both_rankings_are_fused(pool, encoder):
    question = "what money does a person use?"
    texts = words_of(pool)
    semantic = encoder.encode(texts) @ encoder.encode_once([question])[0]
    orders = set()
    for weight in (0.0, 0.25, 1.0):
        fused = reciprocal_rank_fusion([bm25(question, texts), semantic], weights=[weight, 1.0])
        kept = prefilter(question, pool, keep=8, encoder=encoder, lexical_weight=weight)
        assert [fused[pool.index(each)] for each in kept] == sorted(fused, reverse=True)
        orders.add(tuple(words_of(kept)))
    assert len(orders) == 3


def test_the_lexical_weight_says_who_decides(pool, encoder):
    question = "what money does a person use?"

    def best(weight: float) -> str:
        return prefilter(question, pool, keep=1, encoder=encoder, lexical_weight=weight)[0].words

    assert best(0.0) == "country currency used"
    assert best(1000.0) == lexical(question, pool, 1)[0].words == "person profession"
