"""The noisy oracle: error rates and reproducibility."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.rank.tournaments.chooser import EntityGroup
from kgqa.testing.oracle import NoisyOracle
from tests.rank.tournaments.test_listwise import pool_of

POOL = pool_of(10)
BEST, SECOND, LAST = POOL[0], POOL[1], POOL[9]
TRIALS = 4000


def share(hits: int) -> float:
    return hits / TRIALS


def within_four_errors(chance: float):
    """Return whether the value is within four standard errors."""
    return pytest.approx(chance, abs=4 * math.sqrt(max(chance * (1 - chance), 0.01) / TRIALS))


def test_no_noise_gives_the_truth():
    oracle = NoisyOracle(POOL)
    assert oracle.prefer("q", [(BEST, SECOND), (LAST, SECOND)]) == [1, -1]
    assert oracle.pick("q", [POOL[::-1], POOL[3:5]], 3) == [[9, 8, 7], [0, 1]]
    assert oracle.pick_grouped("q", [[EntityGroup("p", ("a", "b"))]], 2)[0] in ([0, 1], [1, 0])
    assert np.argsort(-oracle.score("q", POOL)).tolist() == list(range(10))
    assert oracle.accept("q", [POOL[:3], POOL[1:], []]) == ["yes", "no", "no"]
    assert NoisyOracle([("p", "b"), ("r", "c")]).pick_grouped(
        "q", [[EntityGroup("p", ("a", "b")), EntityGroup("r", ("c",))]], 3
    ) == [[1, 2, 0]]


@pytest.mark.parametrize("p", [0.5, 0.7, 0.95])
@pytest.mark.parametrize("others", ["order", "coin"])
def test_best_is_preferred_with_probability_p(p, others):
    oracle = NoisyOracle(POOL, p=p, others=others, seed=3)
    for other in (SECOND, LAST):
        assert share(oracle.prefer("q", [(BEST, other)] * TRIALS).count(1)) == within_four_errors(p)
        assert share(oracle.prefer("q", [(other, BEST)] * TRIALS).count(-1)) == within_four_errors(p)
        chunks = [[other, BEST]] * TRIALS
        assert share(oracle.pick("q", chunks, 1).count([1])) == within_four_errors(p)
        assert share(oracle.accept("q", [[other, BEST]] * TRIALS).count("yes")) == within_four_errors(p)
    scores = oracle.score("q", [BEST, SECOND] * TRIALS).reshape(TRIALS, 2)
    assert share((scores[:, 0] > scores[:, 1]).sum()) == within_four_errors(p)


def test_other_candidates():
    ordered, coin = (NoisyOracle(POOL, p=0.9, others=others) for others in ("order", "coin"))
    pairs = [(SECOND, LAST)] * TRIALS
    assert share(ordered.prefer("q", pairs).count(1)) == within_four_errors(0.9)
    assert share(coin.prefer("q", pairs).count(1)) == within_four_errors(0.5)


def test_unknown_candidate_is_worst():
    oracle = NoisyOracle(POOL[:2], p=0.9)
    assert share(oracle.prefer("q", [(POOL[5], SECOND)] * TRIALS).count(-1)) == within_four_errors(0.9)
    assert share(oracle.prefer("q", [(POOL[5], LAST)] * TRIALS).count(1)) == within_four_errors(0.5)


@pytest.mark.parametrize("p", [0.7, 0.9])
def test_best_of_thirty_is_among_three_picks(p):
    """The best of 30 is missed in 3 draws with probability 29 / (w + 29) x 28 / (w + 28) x 27 / (w + 27), w = p / (1 - p)."""
    pool, w = pool_of(30), p / (1 - p)
    oracle = NoisyOracle(pool, p=p, others="coin")
    hits = sum(0 in picked for picked in oracle.pick("q", [pool] * TRIALS, 3))
    assert share(hits) == within_four_errors(1 - math.prod(n / (w + n) for n in (29, 28, 27)))


@given(st.integers(0, 40), st.integers(1, 50), st.floats(0.5, 1), st.integers(0, 9), st.sampled_from(["order", "coin"]))
def test_picks_are_distinct_indices_of_the_chunk(size, k, p, seed, others):
    pool = pool_of(size)
    (picked,) = NoisyOracle(pool, p=p, seed=seed, others=others).pick("q", [pool], k)
    assert len(picked) == len(set(picked)) == min(k, size)
    assert set(picked) <= set(range(size))
    assert np.isfinite(NoisyOracle(pool, p=p, seed=seed, others=others).score("q", pool)).all()


def test_replies_are_reproducible_by_seed():
    def answers(seed):
        oracle = NoisyOracle(POOL, p=0.6, seed=seed)
        return (
            oracle.prefer("q", [(BEST, SECOND)] * 50),
            oracle.pick("q", [POOL] * 5, 3),
            oracle.score("q", POOL).tolist(),
        )

    assert answers(1) == answers(1)
    assert answers(1) != answers(2)


def test_bias_prefers_the_first():
    oracle = NoisyOracle(POOL, bias=0.5)
    assert share(oracle.prefer("q", [(LAST, BEST)] * TRIALS).count(1)) == within_four_errors(0.5)
    assert oracle.prefer("q", [(BEST, LAST)] * 20) == [1] * 20


def test_rate_of_missing_replies():
    oracle = NoisyOracle(POOL, silent=0.25)
    assert share(oracle.prefer("q", [(BEST, LAST)] * TRIALS).count(0)) == within_four_errors(0.25)
    assert share(oracle.pick("q", [POOL[:2]] * TRIALS, 1).count(None)) == within_four_errors(0.25)
    assert share(int(np.isnan(oracle.score("q", [BEST] * TRIALS)).sum())) == within_four_errors(0.25)
    assert share(oracle.accept("q", [POOL] * TRIALS).count("unparsed")) == within_four_errors(0.25)


def test_calls_are_counted():
    oracle = NoisyOracle(POOL)
    oracle.prefer("q", [(BEST, LAST)] * 4)
    oracle.pick("q", [POOL, POOL], 2)
    oracle.pick_grouped("q", [[EntityGroup("p", ("a",))]], 2)
    oracle.score("q", POOL, batch_size=3)
    oracle.score("q", POOL)
    oracle.accept("q", [POOL])
    oracle.prefer("q", []), oracle.pick("q", [], 2), oracle.score("q", []), oracle.accept("q", [])
    assert (oracle.calls, oracle.rounds) == (4 + 2 + 1 + 4 + 1 + 1, 6)


@pytest.mark.parametrize("wrong", [{"p": 0.4}, {"p": 1.1}, {"bias": -0.1}, {"silent": 2}, {"others": "chance"}])
def test_probabilities_out_of_range(wrong):
    with pytest.raises(ValueError):
        NoisyOracle(POOL, **wrong)
