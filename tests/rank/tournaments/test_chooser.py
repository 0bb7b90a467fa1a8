"""Choosers without a language model: by words, embeddings, custom scores and chance."""

from __future__ import annotations

import numpy as np
import pytest

from kgqa.rank.tournaments.chooser import (
    EntityGroup,
    RandomChooser,
    ScoringChooser,
    text_similarity,
)

WORDS = ["sports team arena stadium", "sports team team mascot", "person place of birth", "country capital"]


class OfflineChooser(ScoringChooser):
    """A chooser that scores candidates by the similarity of their words or embeddings."""

    def __init__(self, encoder, *, accept_at=1e-6) -> None:
        similarity = text_similarity(encoder)
        super().__init__(
            lambda question, candidates: similarity(question, [candidate.words for candidate in candidates]),
            "similarity of embeddings" if encoder else "similarity of words (BM25)",
            texts=similarity,
            accept_at=accept_at,
        )


@pytest.fixture
def pool(candidate):
    return [candidate(words) for words in WORDS]


@pytest.fixture(params=["words", "embeddings"])
def chooser(request):
    return OfflineChooser(request.getfixturevalue("encoder") if request.param == "embeddings" else None)


def test_best_candidate_has_the_highest_score(chooser, pool):
    scores = chooser.score("what is the mascot of the team?", pool)
    assert scores.shape == (4,)
    assert scores.dtype == np.float64
    assert scores.argmax() == 1
    assert np.isfinite(scores).all() and (np.abs(scores) <= 1.001).all()


def test_best_of_every_chunk_come_first(chooser, pool):
    picked = chooser.pick("which city is the capital of the country?", [pool[:2] + pool[3:], pool[1:], [pool[3]]], 2)
    assert [len(indices) for indices in picked] == [2, 2, 1]
    assert [indices[0] for indices in picked] == [2, 2, 0]


def by_length(question, candidates):
    """Score by length; words that begin with a question mark have no score."""
    return np.array([np.nan if c.words.startswith("?") else len(c.words) for c in candidates])


@pytest.fixture
def lengths():
    return ScoringChooser(
        by_length, "length", texts=lambda question, texts: np.array([len(t) for t in texts]), accept_at=3
    )


def test_higher_score_is_preferred(lengths, candidate):
    short, long, other, none = map(candidate, ("a", "bbb", "c", "?"))
    pairs = [(long, short), (short, long), (short, other), (short, none), (none, long), (long, long)]
    assert lengths.prefer("q", pairs) == [1, -1, 0, 0, 0, 0]
    assert lengths.prefer("q", []) == []
    assert lengths.name == "length"


def test_entities_are_picked_across_groups(lengths):
    chunks = [
        [EntityGroup("p", ("a", "bbb")), EntityGroup("prefix", ("cc",))],
        [EntityGroup("p", ())],
        [],
        [EntityGroup("p", ("a", "b"))],
    ]
    assert lengths.pick_grouped("q", chunks, 2) == [[2, 1], [], [], [0, 1]]
    assert lengths.pick_grouped("q", [], 2) == []


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        (["a", "bbb"], "yes"),
        (["bbbb"], "yes"),
        (["a", "bb"], "no"),
        ([], "no"),
        (["?"], "unparsed"),
        (["?", "a"], "no"),
    ],
)
def test_evidence_is_judged_by_its_best_path(lengths, candidate, words, verdict):
    evidence = [candidate(each) for each in words]
    assert lengths.accept("q", [evidence, [candidate("?")], evidence]) == [verdict, "unparsed", verdict]


def test_random_choice_does_not_depend_on_question_order(pool):
    one, other = RandomChooser(7), RandomChooser(7)
    other.score("something else", pool)
    assert one.pick("q", [pool, pool[2:]], 4) == other.pick("q", [pool, pool[2:]], 4)
    assert one.prefer("q", [(pool[0], pool[1])]) == [-each for each in other.prefer("q", [(pool[1], pool[0])])]
    assert one.score("q", pool[1:]).tolist() == other.score("q", pool)[1:].tolist()
    groups = [[EntityGroup("p", ("a", "b", "c"))]]
    assert one.pick_grouped("q", groups, 3) == other.pick_grouped("q", groups, 3)
    assert one.accept("q", [pool, []]) == ["yes", "no"]


def test_random_choice_depends_on_seed_question_and_candidate(pool):
    drawn = [
        *RandomChooser(1).score("q", pool),
        *RandomChooser(2).score("q", pool),
        *RandomChooser(1).score("another", pool),
    ]
    assert len(set(drawn)) == 12
    assert all(0 <= each < 1 for each in drawn)
