"""Measures, and means with intervals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.evaluation.metrics.measures import (
    Score,
    mean,
    score,
)

TABLE = [
    # answers, gold, precision, recall, F1, EM
    ("a", "a", 1, 1, 1, 1),
    ("", "a", 0, 0, 0, 0),
    ("b", "a", 0, 0, 0, 0),
    ("ab", "a", 1 / 2, 1, 2 / 3, 0),
    ("a", "ab", 1, 1 / 2, 2 / 3, 0),
    ("abcd", "bcde", 3 / 4, 3 / 4, 3 / 4, 0),
    ("abcde", "a", 1 / 5, 1, 1 / 3, 0),
    ("ba", "ab", 1, 1, 1, 1),
]


@pytest.mark.parametrize(("answers", "gold", "precision", "recall", "f1", "em"), TABLE)
def test_score(answers, gold, precision, recall, f1, em):
    assert score(set(answers), set(gold)) == Score(precision, recall, pytest.approx(f1), em)


def test_score_without_gold_is_an_error():
    with pytest.raises(ValueError, match="gold"):
        score({"a"}, set())


keys = st.frozensets(st.integers(0, 12))
some_keys = st.frozensets(st.integers(0, 12), min_size=1)


@given(keys, some_keys)
def test_score_bounds_and_identities(answers, gold):
    found = score(answers, gold)
    for value in (found.precision, found.recall, found.f1, found.em):
        assert 0 <= value <= 1
    assert (found.em == 1) == (found.f1 == 1) == (answers == gold)
    assert min(found.precision, found.recall) - 1e-12 <= found.f1 <= max(found.precision, found.recall) + 1e-12
    if found.precision + found.recall:
        harmonic = 2 * found.precision * found.recall / (found.precision + found.recall)
        assert found.f1 == pytest.approx(harmonic)


@given(some_keys, some_keys)
def test_swapping_answers_and_gold(first, second):
    forward, backward = score(first, second), score(second, first)
    assert forward.f1 == backward.f1 and forward.em == backward.em
    assert forward.precision == backward.recall and forward.recall == backward.precision


@given(keys, some_keys, st.permutations(range(13)))
def test_score_depends_on_set_overlap_only(answers, gold, renamed):
    assert score(answers, gold) == score({renamed[a] for a in answers}, {renamed[g] for g in gold})


@given(some_keys, some_keys, st.integers(13, 20))
def test_extra_wrong_answer_never_helps(answers, gold, wrong):
    before, after = score(answers, gold), score(answers | {wrong}, gold)
    assert after.precision <= before.precision and after.f1 <= before.f1 and after.recall == before.recall


# --- means


def test_normal_interval():
    found = mean([1.0] * 100 + [0.0] * 100, interval="normal")
    assert (found.value, found.n) == (0.5, 200)
    assert found.high - found.value == pytest.approx(1.959964 * 0.5 / math.sqrt(200))  # 6.9 points
    assert found.value - found.low == pytest.approx(found.high - found.value)


def test_normal_interval_is_bounded():
    found = mean([0.0] * 9 + [1.0], interval="normal")
    assert found.low == 0.0 and 0.1 < found.high < 0.3


def test_bootstrap_interval_is_close_to_normal():
    values = [1.0] * 300 + [0.5] * 200 + [0.0] * 500
    normal, bootstrap = mean(values, interval="normal"), mean(values)
    assert bootstrap.low == pytest.approx(normal.low, abs=0.005)
    assert bootstrap.high == pytest.approx(normal.high, abs=0.005)


def test_bootstrap_of_many_different_values():
    values = [number / 999 for number in range(1000)]
    normal, bootstrap = mean(values, interval="normal"), mean(values)
    assert (bootstrap.low, bootstrap.high) == pytest.approx((normal.low, normal.high), abs=0.005)
    assert mean(values) == bootstrap != mean(values, seed=1)


def test_mean_of_zero_or_one_values():
    nothing, first = mean([]), mean([0.25])
    assert nothing.n == 0 and math.isnan(nothing.value) and math.isnan(nothing.low)
    assert (first.value, first.n) == (0.25, 1) and math.isnan(first.low) and math.isnan(first.high)


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=40), st.randoms(use_true_random=False))
def test_interval_contains_the_mean_in_any_order(values, random):
    found = mean(values)
    assert 0 <= found.low <= found.value <= found.high <= 1
    shuffled = random.sample(values, len(values))
    assert mean(shuffled) == found
