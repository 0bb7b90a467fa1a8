"""Listwise tournaments: by chunks, by scores and in one prompt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.plugins import plugin_names
from kgqa.rank.tournaments.listwise import chunked, pointwise, single
from kgqa.rank.tournaments.registry import tournament
from kgqa.testing.oracle import NoisyOracle
from kgqa.trace import MatchPlayed

TOURNAMENTS = plugin_names("tournament")


def pool_of(size: int) -> list[Candidate]:
    topic = Entity("http://ex.org/t")
    return [Candidate(RelationPath(topic, (Step(f"http://ex.org/r{i}"),)), f"r{i}") for i in range(size)]


class PerfectChooser:
    """A chooser that knows the true order and records its chunks."""

    name = "the truth"

    def __init__(self, truth: Sequence[Candidate]) -> None:
        self.rank = {candidate: index for index, candidate in enumerate(truth)}
        self.rounds: list[list[list[Candidate]]] = []

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int]]:
        self.rounds.append([list(chunk) for chunk in chunks])
        return [sorted(range(len(chunk)), key=lambda i: self.rank[chunk[i]])[:k] for chunk in chunks]

    def score(self, question: str, candidates: Sequence[Candidate]) -> np.ndarray:
        return -np.array([self.rank[candidate] for candidate in candidates], dtype=float)


class FixedChooser(PerfectChooser):
    """A chooser that returns scripted replies: those of the indices that are in a chunk, at most `k`."""

    def __init__(self, answers: Sequence[list[int] | None]) -> None:
        super().__init__(())
        self.answers = answers
        self.calls = 0

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int]]:
        self.rounds.append([list(chunk) for chunk in chunks])
        given_answers = []
        for chunk in chunks:
            answer = self.answers[self.calls % len(self.answers)] if self.answers else None
            given_answers.append(None if answer is None else [i for i in answer if i < len(chunk)][:k])
            self.calls += 1
        return given_answers


sizes = st.integers(1, 60)
chunk_sizes = st.integers(2, 12)


indices = st.lists(st.integers(0, 15), max_size=12, unique=True)


@settings(deadline=None)
@given(sizes, chunk_sizes, st.integers(1, 70), st.lists(indices, max_size=8))
def test_any_reply_gives_distinct_candidates_of_the_pool(size, chunk_size, k, answers):
    pool = pool_of(size)
    chooser = FixedChooser(answers)
    won = chunked("q", pool, chooser, k=k, chunk_size=chunk_size)
    assert len(won) <= min(k, size)
    assert len(set(won)) == len(won)
    assert set(won) <= set(pool)
    shown = [candidate for chunk in chooser.rounds[0] for candidate in chunk]
    assert len(shown) == size and set(shown) == set(pool)


@pytest.mark.parametrize("play", [chunked, single])
def test_empty_picks_stand(play):
    assert play("q", pool_of(40), FixedChooser([[]]), k=3) == []


def test_strongest_do_not_meet_in_the_first_round():
    pool = pool_of(30)
    chooser = PerfectChooser(pool)
    chunked("q", pool, chooser, k=3, chunk_size=10)
    first = chooser.rounds[0]
    assert len(first) == 3
    assert all(sum(candidate in pool[:3] for candidate in chunk) == 1 for chunk in first)


@pytest.mark.parametrize(("chunk_size", "chunks"), [(20, [2, 1]), (10, [3, 2, 1]), (5, [6, 4, 2, 2, 1]), (30, [1])])
def test_chunks_of_thirty_candidates(chunk_size, chunks):
    chooser = PerfectChooser(pool_of(30))
    chunked("q", pool_of(30), chooser, k=3, chunk_size=chunk_size)
    assert [len(batch) for batch in chooser.rounds] == chunks


def test_matches_are_traced():
    matches: list[MatchPlayed] = []
    pool = pool_of(20)
    won = chunked("q", pool, PerfectChooser(pool), k=2, chunk_size=10, record=matches.append)
    assert len(matches) == 3
    assert sorted(words for match in matches[:2] for words in match.candidates) == sorted(c.words for c in pool)
    assert matches[-1].picked == tuple(candidate.words for candidate in won)


class ConstantChooser:
    """A chooser with one fixed reply that counts its calls."""

    name = "a reply"

    def __init__(self, reply) -> None:
        self.reply = reply
        self.calls: list[tuple[int, int | None]] = []

    def pick(self, question, chunks, k):
        return [self.reply for _ in chunks]

    def prefer(self, question, pairs):
        return [self.reply for _ in pairs]

    def score(self, question, candidates, *, batch_size=None):
        self.calls.append((len(candidates), batch_size))
        return self.reply


every = pytest.mark.parametrize("play", [tournament(name).play for name in TOURNAMENTS], ids=TOURNAMENTS)


@every
@given(size=st.integers(0, 40), k=st.integers(1, 6), random=st.randoms(use_true_random=False))
def test_every_tournament_finds_the_best_and_counts_its_matches(play, size, k, random):
    pool, notes = pool_of(size), []
    truth = random.sample(pool, size)
    oracle = NoisyOracle(truth)
    won = play("q", pool, oracle, k=k, record=notes.append)
    assert won[:1] == truth[:1]
    assert len(won) == min(k, size)
    assert won == sorted(won, key=truth.index)
    assert len(notes) == oracle.calls


@every
def test_useless_replies_leave_the_first_by_prefilter(play):
    pool = pool_of(30)
    assert play("q", pool, NoisyOracle(pool[::-1], silent=1), k=3) == pool[:3]


scores = st.lists(st.sampled_from([0.0, 1.0, 1.0, -2.5, np.nan, np.inf, -np.inf]), max_size=20)


@given(st.integers(1, 15), st.integers(1, 20), scores)
def test_scores_sort_the_pool_and_missing_scores_keep_their_position(size, k, given_scores):
    pool = pool_of(size)
    given_scores = (given_scores + [np.nan] * size)[:size]
    won = pointwise("q", pool, ConstantChooser(np.array(given_scores)), k=k)
    by_hand = [value if np.isfinite(value) else None for value in given_scores]
    ranked = iter(sorted((i for i in range(size) if by_hand[i] is not None), key=lambda i: (-by_hand[i], i)))
    expected = [i if by_hand[i] is None else next(ranked) for i in range(size)]
    assert won == [pool[i] for i in expected[:k]]


def test_score_batches_are_traced():
    notes = []
    reply = np.array([0, 3, 0, 0, 0, 0, 9, np.nan])
    pointwise("q", pool_of(8), ConstantChooser(reply), k=2, record=notes.append)
    assert notes == [
        MatchPlayed(candidates=tuple(f"r{i}" for i in range(5)), picked=("r1",), scores=(0.0, 3.0, 0.0, 0.0, 0.0)),
        MatchPlayed(candidates=("r5", "r6", "r7"), picked=("r6",), scores=(0.0, 9.0, None)),
    ]
