"""BM25: values by hand, limits, and comparison with a naive implementation and rank_bm25."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from kgqa.rank.lexical import bm25, stem, terms

POOL = ["team mascot", "team arena stadium", "place of birth"]


def test_scores_by_hand():
    # terms: [team mascot], [team arena stadium], [place birth]; mean length 7/3; both query terms in N = 3 texts
    scores = bm25("the mascot of the team", POOL)
    idf_team = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    idf_mascot = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    short = 1.5 * (0.25 + 0.75 * 2 / (7 / 3))
    long = 1.5 * (0.25 + 0.75 * 3 / (7 / 3))
    assert scores.dtype == np.float64
    assert scores == pytest.approx(
        [(idf_team + idf_mascot) * 2.5 / (1 + short), idf_team * 2.5 / (1 + long), 0.0], rel=1e-12
    )


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("", []),
        ("team", []),
        ("", POOL),
        ("who is the one whose", [*POOL]),
        ("???", POOL),
        ("unheard", POOL),
        ("team", [""]),
        ("team", ["", "of the"]),
    ],
)
def test_no_common_terms_score_zero(query, texts):
    scores = bm25(query, texts)
    assert scores.shape == (len(texts),)
    assert not scores.any()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sports.sports_team.team_mascot", ["sport", "sport", "team", "team", "mascot"]),
        ("teamMascot", ["team", "mascot"]),
        ("Which city is the capital of Japan?", ["city", "capital", "japan"]),
        ("people born in 1984", ["people", "born", "1984"]),
        ("P36", ["p", "36"]),
        ("Zürich's 東京", ["zürich", "s", "東京"]),
        ("", []),
        ("--- of the ---", []),
    ],
)
def test_terms(text, expected):
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("word", "stemmed"),
    [
        ("cities", "city"),
        ("classes", "class"),
        ("class", "class"),
        ("countries", "country"),
        ("directed", "direct"),
        ("directing", "direct"),
        ("directs", "direct"),
        ("boxes", "box"),
        ("churches", "church"),
        ("languages", "language"),
        ("teams", "team"),
        ("gas", "gas"),
        ("bed", "bed"),
        ("king", "king"),
        ("東京", "東京"),
        ("", ""),
    ],
)
def test_stem(word, stemmed):
    assert stem(word) == stemmed


words = st.sampled_from("team mascot capital city of birth place film director teams directed".split())
sentences = st.lists(words, max_size=6).map(" ".join)


def naive_bm25(query: str, texts: list[str]) -> list[float]:
    """Compute BM25 as in the survey, term by term and text by text."""
    bags = [terms(text) for text in texts]
    mean = sum(len(bag) for bag in bags) / len(bags) if bags else 0
    scores = []
    for bag in bags:
        score = 0.0
        for term in sorted(set(terms(query))):
            frequency = bag.count(term)
            if frequency == 0:
                continue
            holding = sum(term in other for other in bags)
            idf = math.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
            score += idf * frequency * 2.5 / (frequency + 1.5 * (1 - 0.75 + 0.75 * len(bag) / mean))
        scores.append(score)
    return scores


@given(sentences, st.lists(sentences, max_size=8))
def test_scores_equal_the_naive_implementation(query, texts):
    ours, theirs = bm25(query, texts), naive_bm25(query, texts)
    assert ours == pytest.approx(theirs, abs=1e-9)
    order = np.argsort(-np.round(ours, 9), kind="stable")
    assert list(order) == sorted(range(len(texts)), key=lambda i: -round(theirs[i], 9))


# ---- the idf as published, and rank-bm25 ----


def rank_bm25(query: str, texts: list[str]) -> np.ndarray:
    return BM25Okapi([terms(text) for text in texts]).get_scores(list(dict.fromkeys(terms(query))))


@given(sentences, st.lists(sentences, min_size=3, max_size=12).filter(lambda texts: any(terms(text) for text in texts)))
def test_published_idf_equals_rank_bm25_on_random_texts(query, texts):
    assert bm25(query, texts, variant="okapi") == pytest.approx(rank_bm25(query, texts), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("texts", [[], [""], ["", "", "of the"], ["mascot"], ["mascot", "capital"], ["mascot"] * 2])
def test_known_differences_from_rank_bm25(texts):
    scores = bm25("mascot", texts, variant="okapi")
    assert scores.shape == (len(texts),)
    assert scores.tolist() == bm25("mascot", texts).tolist()
    assert ((scores > 0) == np.array([text == "mascot" for text in texts])).all()


# ---- splitting into terms ----


@given(st.text(max_size=20))
def test_long_text_has_the_same_terms(text):
    assert terms(f"{text} " * 30) == terms(text) * 30
