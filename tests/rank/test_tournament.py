"""The chunked tournament: the best candidate survives, and nothing is lost or invented whatever a chooser answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.rank.chooser import Chooser
from kgqa.rank.tournament import chunked


def pool_of(size: int) -> list[Candidate]:
    topic = Entity("http://ex.org/t")
    return [Candidate(RelationPath(topic, (Step(f"http://ex.org/r{i}"),)), f"r{i}") for i in range(size)]


class PerfectChooser:
    """Knows the true order, and remembers the chunks it was shown."""

    name = "the truth"

    def __init__(self, truth: Sequence[Candidate]) -> None:
        self.place = {candidate: place for place, candidate in enumerate(truth)}
        self.rounds: list[list[list[Candidate]]] = []

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int]]:
        self.rounds.append([list(chunk) for chunk in chunks])
        return [sorted(range(len(chunk)), key=lambda i: self.place[chunk[i]])[:k] for chunk in chunks]

    def score(self, question: str, candidates: Sequence[Candidate]) -> np.ndarray:
        return -np.array([self.place[candidate] for candidate in candidates], dtype=float)


class FixedChooser(PerfectChooser):
    """Gives the next of some answers for each chunk, sense or nonsense."""

    def __init__(self, answers: Sequence[list[int]]) -> None:
        super().__init__(())
        self.answers = answers
        self.asked = 0

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int]]:
        self.rounds.append([list(chunk) for chunk in chunks])
        given_answers = []
        for _ in chunks:
            given_answers.append(self.answers[self.asked % len(self.answers)] if self.answers else [])
            self.asked += 1
        return given_answers


sizes = st.integers(1, 60)
chunk_sizes = st.integers(2, 12)


@settings(deadline=None)
@given(sizes, chunk_sizes, st.integers(1, 6), st.randoms())
def test_the_true_winner_always_wins(size, chunk_size, k, random):
    pool = pool_of(size)
    truth = list(pool)
    random.shuffle(truth)
    chooser: Chooser = PerfectChooser(truth)
    won = chunked("q", pool, chooser, k=k, chunk_size=chunk_size)
    assert won[0] == truth[0]
    assert won == sorted(won, key=truth.index)


def test_the_best_of_a_pool_that_fits_one_chunk_are_chosen_outright():
    pool = pool_of(5)
    chooser = PerfectChooser(pool[::-1])
    assert chunked("q", pool, chooser, k=3, chunk_size=5) == pool[::-1][:3]
    assert len(chooser.rounds) == 1


indices = st.lists(st.integers(-3, 15), max_size=12)


@settings(deadline=None)
@given(sizes, chunk_sizes, st.integers(1, 70), st.lists(indices, max_size=8))
def test_nothing_is_invented_or_doubled_whatever_the_chooser_answers(size, chunk_size, k, answers):
    pool = pool_of(size)
    chooser = FixedChooser(answers)
    won = chunked("q", pool, chooser, k=k, chunk_size=chunk_size)
    assert 1 <= len(won) <= min(k, size)
    assert len(set(won)) == len(won)
    assert set(won) <= set(pool)
    shown = [candidate for chunk in chooser.rounds[0] for candidate in chunk]
    assert len(shown) == size and set(shown) == set(pool)


@settings(deadline=None)
@given(sizes, chunk_sizes, st.lists(indices, max_size=8))
@example(4, 3, [])
@example(3, 2, [])
@example(11, 10, [])
@example(60, 7, [[0, 1, 2, 3, 4, 5, 6]])
def test_a_chunk_is_never_the_whole_pool_unless_it_fits(size, chunk_size, answers):
    chooser = FixedChooser(answers)
    chunked("q", pool_of(size), chooser, k=3, chunk_size=chunk_size)
    for chunks in chooser.rounds:
        assert all(1 <= len(chunk) <= max(chunk_size, 2 * 3) for chunk in chunks)
    assert len(chooser.rounds[-1]) == 1
    shrinking = [sum(map(len, chunks)) for chunks in chooser.rounds]
    assert shrinking == sorted(set(shrinking), reverse=True)


def test_a_silent_chooser_leaves_the_prefilter_order():
    pool = pool_of(5)
    assert chunked("q", pool, FixedChooser([]), k=3, chunk_size=5) == pool[:3]


def test_a_silent_chooser_still_lets_the_strongest_through():
    pool = pool_of(40)
    assert chunked("q", pool, FixedChooser([]), k=3, chunk_size=10) == pool[:3]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([2, 0], [2, 0]),
        ([3], [3]),
        ([1, 1, 1, 0], [1, 0]),
        ([9, -1, 2], [2]),
        ([-1], [0, 1, 2]),
        ([], [0, 1, 2]),
        ([3, 2, 1, 0], [3, 2, 1]),
    ],
)
def test_how_one_answer_is_read(answer, expected):
    pool = pool_of(4)
    assert chunked("q", pool, FixedChooser([answer]), k=3, chunk_size=4) == [pool[i] for i in expected]


def test_a_chooser_that_answers_for_too_few_chunks_loses_nobody():
    class Short(FixedChooser):
        def pick(self, question, chunks, k):
            return super().pick(question, chunks, k)[:-1]

    pool = pool_of(40)
    chooser = Short([[0, 1]])
    chunked("q", pool, chooser, k=3, chunk_size=10)
    second = {candidate for chunk in chooser.rounds[1] for candidate in chunk}
    for chunk in chooser.rounds[0]:
        assert second & set(chunk)


def test_the_strongest_by_prefilter_do_not_meet_in_the_first_round():
    pool = pool_of(30)
    chooser = PerfectChooser(pool)
    chunked("q", pool, chooser, k=3, chunk_size=10)
    first = chooser.rounds[0]
    assert len(first) == 3
    assert all(sum(candidate in pool[:3] for candidate in chunk) == 1 for chunk in first)


def test_half_of_every_chunk_goes_on():
    chooser = PerfectChooser(pool_of(40))
    chunked("q", pool_of(40), chooser, k=3, chunk_size=10)
    assert [sum(map(len, chunks)) for chunks in chooser.rounds] == [40, 20, 10]


def test_every_round_is_one_batch():
    chooser = PerfectChooser(pool_of(40))
    chunked("q", pool_of(40), chooser, k=3, chunk_size=10)
    assert [len(chunks) for chunks in chooser.rounds] == [4, 2, 1]


def test_more_winners_than_candidates():
    pool = pool_of(4)
    assert chunked("q", pool, PerfectChooser(pool[::-1]), k=10, chunk_size=10) == pool[::-1]


@pytest.mark.parametrize("chunk_size", [4, 10])
@pytest.mark.parametrize("size", [4, 5, 6, 11, 12, 20, 30, 45])
def test_as_many_winners_as_were_asked_for_though_rounds_halve(size, chunk_size):
    """A round must not leave fewer than `k` candidates to a chooser that answers in full."""
    pool = pool_of(size)
    assert len(chunked("q", pool, PerfectChooser(pool), k=3, chunk_size=chunk_size)) == 3


def test_an_empty_pool():
    assert chunked("q", [], FixedChooser([]), k=3) == []


@pytest.mark.parametrize(("k", "chunk_size"), [(0, 10), (-1, 10), (3, 1), (3, 0)])
def test_a_tournament_that_cannot_be_played(k, chunk_size):
    with pytest.raises(ValueError):
        chunked("q", pool_of(3), FixedChooser([]), k=k, chunk_size=chunk_size)


def test_every_match_is_noted():
    matches = []
    pool = pool_of(20)
    won = chunked("q", pool, PerfectChooser(pool), k=2, chunk_size=10, note=lambda kind, **d: matches.append((kind, d)))
    assert [kind for kind, _ in matches] == ["match"] * 3
    assert sorted(words for _, d in matches[:2] for words in d["candidates"]) == sorted(c.words for c in pool)
    assert matches[-1][1]["picked"] == [candidate.words for candidate in won]
