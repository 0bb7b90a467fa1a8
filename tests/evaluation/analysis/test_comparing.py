"""Comparison of two runs over the same questions."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.evaluation.analysis.comparison import (
    GROUPINGS,
    compare_runs,
    difference,
    mcnemar,
    question_key,
    scores_by_question,
)
from kgqa.evaluation.runs.records import Record


def run(values) -> dict[str, float]:
    return {f"q{place}": float(value) for place, value in enumerate(values)}


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [
        (0, 0, 1.0),
        (1, 1, 1.0),
        (0, 1, 1.0),  # 2 * 1/2
        (0, 5, 2 / 32),
        (5, 0, 2 / 32),
        (1, 9, 2 * 11 / 1024),
        (2, 8, 2 * 56 / 1024),
    ],
)
def test_mcnemar_exact(only_first, only_second, p):
    first = [1] * only_first + [0] * only_second + [1] * 4 + [0] * 3
    second = [0] * only_first + [1] * only_second + [1] * 4 + [0] * 3
    found = mcnemar(run(first), run(second))
    assert (found.n, found.only_first, found.only_second) == (only_first + only_second + 7, only_first, only_second)
    assert found.p == pytest.approx(p)


def test_mcnemar_large_samples():
    assert mcnemar(run([1] * 3000 + [0] * 3000), run([0] * 3000 + [1] * 3000)).p == 1.0
    assert mcnemar(run([0] * 3000), run([1] * 3000)).p == pytest.approx(0, abs=1e-300)
    # the normal approximation of 600 against 500
    found = mcnemar(run([1] * 600 + [0] * 500), run([0] * 600 + [1] * 500))
    assert found.p == pytest.approx(math.erfc((100 - 1) / math.sqrt(1100) / math.sqrt(2)), rel=0.02)


def test_mcnemar_refuses_fractions():
    with pytest.raises(ValueError, match="0.5"):
        mcnemar(run([1, 0.5]), run([1, 1]))


def test_only_shared_questions_are_compared():
    assert mcnemar({"a": 1, "b": 0}, {"b": 1, "c": 1}).n == 1
    assert difference({"a": 1, "b": 0}, {"b": 0.25, "c": 1}).value == 0.25
    nothing = difference({"a": 1}, {"b": 1})
    assert nothing.n == 0 and math.isnan(nothing.value) and math.isnan(nothing.p)
    assert math.isnan(difference({"a": 1}, {"a": 0}).p)


def test_difference_interval_and_p():
    better = difference(run([0] * 100 + [1] * 100), run([0] * 60 + [1] * 140))
    assert better.value == 0.2 and better.n == 200
    assert better.low == pytest.approx(0.2 - 1.96 * 0.4 / math.sqrt(200), abs=0.01)  # s.d. of the differences: 0.4
    assert better.p < 0.01
    even = difference(run([0, 1] * 50), run([1, 0] * 50))
    assert even.value == 0 and even.p == 1 and even.low < 0 < even.high
    same_key = difference(run([0, 1] * 50), run([0, 1] * 50))
    assert (same_key.value, same_key.low, same_key.high, same_key.p) == (0, 0, 0, 1)


def test_paired_difference_is_more_sensitive_than_two_intervals():
    """The intervals of the two means overlap, the interval of the differences excludes 0."""
    found = difference(run([0.1] * 100 + [0.9] * 100), run([0.13] * 100 + [0.93] * 100))
    assert found.low == pytest.approx(0.03) and found.p < 0.01


values = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=2, max_size=40)


@given(values)
def test_comparison_is_symmetric(pairs):
    first, second = run(first_key for first_key, _ in pairs), run(other_key for _, other_key in pairs)
    forward, backward = mcnemar(first, second), mcnemar(second, first)
    assert forward.p == backward.p and forward.only_first == backward.only_second and 0 < forward.p <= 1
    difference_forward, difference_backward = difference(first, second), difference(second, first)
    assert difference_forward.value == -difference_backward.value and 0 < difference_forward.p <= 1
    assert difference_forward.low <= difference_forward.value <= difference_forward.high
    assert difference(first, second) == difference_forward
    assert difference_forward.value == pytest.approx((forward.only_second - forward.only_first) / len(pairs))


def test_compare_all_metrics():
    first = {"a": {"em": 1.0, "f1": 0.5, "x": 1.0}, "b": {"em": 0.0, "f1": 0.0}, "c": {"em": 1.0, "f1": 1.0}, "d": {}}
    second = {"a": {"em": 1.0, "f1": 1.0}, "b": {"em": 1.0, "f1": 0.5}, "d": {"em": 1.0}}
    em, f1 = compare_runs(first, second)
    assert (em.metric, em.first, em.second, em.difference.n) == ("em", 0.5, 1.0, 2)
    assert em.mcnemar is not None and em.mcnemar.only_second == 1
    assert (f1.metric, f1.first, f1.second, f1.mcnemar) == ("f1", 0.25, 0.75, None)
    assert compare_runs(first, {"z": {"em": 1.0}}) == compare_runs({}, {}) == []


def record(**more) -> Record:
    return Record(id="q", dataset="d", text="?", answer={"status": "answered"}, answers=(), **more)


def test_groupings():
    found = {
        name: of(record(hops=2, kind="comparative", level="zero-shot", topics=("a", "b")))
        for name, of in GROUPINGS.items()
    }
    assert found.pop("score") == ""
    assert found == {"dataset": "d", "hops": "2", "kind": "comparative", "level": "zero-shot", "topics": "2"}
    assert GROUPINGS["hops"](record()) == "" and GROUPINGS["topics"](record()) == "0"
    assert GROUPINGS["topics"](record(topics=("a", "b", "c", "d"))) == "3 or more"


def test_answers_are_grouped_by_their_score():
    scores = [0.01, 0.5, 0.99, 1.0, None]
    found = [
        GROUPINGS["score"](replace(record(), answer={"status": "answered", "confidence": score})) for score in scores
    ]
    assert found == ["0 to 20%", "40 to 60%", "80 to 100%", "80 to 100%", ""]
    declined = replace(record(), answer={"status": "no_answer", "confidence": 0.3})
    assert GROUPINGS["score"](declined) == ""


def test_scores_by_question():
    assert list(scores_by_question([record(scores={"em": 1.0}), record()]).values()) == [{"em": 1.0}]


def test_questions_match_by_id_and_text():
    records = [Record("0", "d", text, {"status": "answered"}, ()) for text in ("Who?", " who ", "Where?")]
    first_key, same_key, other_key = map(question_key, records)
    assert first_key == same_key != other_key != question_key(replace(records[2], id="1"))
    runs = [scores_by_question([replace(each, scores={"em": 1.0})]) for each in records]
    assert compare_runs(runs[0], runs[1])[0].difference.n == 1 and compare_runs(runs[0], runs[2]) == []


@pytest.mark.parametrize(
    ("differences", "p"), [([1, 1], 1 / 2), ([0.5, 0.5, 0, 0.5], 1 / 4), ([1] * 6, 1 / 32), ([1, 0], 1)]
)
def test_p_is_bounded_for_few_questions(differences, p):
    """If all differences are equal the resamples are too, but p is never below that of coin flips."""
    assert difference(run([0] * len(differences)), run(differences)).p >= p
    assert difference(run(differences), run([0] * len(differences))).p >= p
