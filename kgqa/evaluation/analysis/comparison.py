"""Paired tests for two runs over the same questions, and groupings of questions.

A paired test detects smaller differences than comparing the intervals of two means does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from kgqa.evaluation.metrics.measures import resampled_means
from kgqa.evaluation.runs.records import Record
from kgqa.text.words import normalise

MORE_TOPICS = 3


@dataclass(frozen=True, slots=True)
class McNemar:
    """The result of McNemar's test on n questions.

    `only_first`, `only_second`: number of questions that only the first (second) run answers right; `p`: the exact
    two-sided p-value.
    """

    n: int
    only_first: int
    only_second: int
    p: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean difference (second run - first run) over n questions, with its 95% interval and two-sided bootstrap p.

    For n = 0, all values are nan; for n = 1, interval and p are nan.
    """

    value: float
    n: int
    low: float
    high: float
    p: float


def mcnemar(first: Mapping[str, float], second: Mapping[str, float]) -> McNemar:
    """Apply the exact McNemar test to the questions that two runs share (McNemar 1947, binomial form).

    Args:
        first, second: map each question to 1 (right) or 0 (wrong).

    Raises:
        ValueError: a value is neither 0 nor 1; for such metrics use `difference`.
    """
    shared = first.keys() & second.keys()
    if wrong := {value for run in (first, second) for value in (run[ident] for ident in shared)} - {0.0, 1.0}:
        raise ValueError(
            f"McNemar's test needs the values 0 and 1, not {min(wrong)}. Use `difference` for this metric."
        )
    only_first = sum(first[ident] > second[ident] for ident in shared)
    only_second = sum(second[ident] > first[ident] for ident in shared)
    return McNemar(len(shared), only_first, only_second, _two_sided(only_first, only_second))


def difference(first: Mapping[str, float], second: Mapping[str, float], *, seed: int = 0) -> Difference:
    """Apply the paired bootstrap to the difference between two runs, on their shared questions.

    See Efron and Tibshirani 1993, chapters 13 and 16. With few questions, the bootstrap understates the uncertainty.
    Therefore p is at least 2 / 2**n, the smallest p of a sign-flip test on the n questions whose scores differ.

    Args:
        first, second: map each question to a metric from 0 to 1.
    """
    data = np.sort(np.array([second[ident] - first[ident] for ident in first.keys() & second.keys()], dtype=float))
    if not data.size:
        return Difference(math.nan, 0, math.nan, math.nan, math.nan)
    value = float(data.mean())
    if data.size == 1:
        return Difference(value, 1, math.nan, math.nan, math.nan)
    means = resampled_means(data, np.random.default_rng(seed))
    low, high = np.quantile(means, (0.025, 0.975))
    # share of resamples under the null hypothesis with at least this difference; the data count as one resample
    beyond = int(np.count_nonzero(np.abs(means - value) >= abs(value) - 1e-12))
    p = max((beyond + 1) / (means.size + 1), min(1.0, 2.0 ** (1 - int(np.count_nonzero(data)))))
    return Difference(value, data.size, float(min(low, value)), float(max(high, value)), p)


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """A metric of two runs: both means over the shared questions, and their difference.

    `mcnemar`: McNemar's test, None unless the metric is 0 or 1 for every question.
    """

    metric: str
    first: float
    second: float
    difference: Difference
    mcnemar: McNemar | None


def compare_runs(
    first: Mapping[str, Mapping[str, float]], second: Mapping[str, Mapping[str, float]], *, seed: int = 0
) -> list[MetricComparison]:
    """Compare two runs in every metric that all shared questions have, in the order of the first run.

    Args:
        first, second: results of `scores_by_question`.
    """
    shared = [ident for ident in first if ident in second and first[ident] and second[ident]]
    if not shared:
        return []
    metrics = [m for m in first[shared[0]] if all(m in run[ident] for run in (first, second) for ident in shared)]
    found = []
    for metric in metrics:
        one, other = ({ident: run[ident][metric] for ident in shared} for run in (first, second))
        verdict = {*one.values(), *other.values()} <= {0.0, 1.0}
        test = mcnemar(one, other) if verdict else None
        first_mean, second_mean = (sum(run.values()) / len(shared) for run in (one, other))
        found.append(MetricComparison(metric, first_mean, second_mean, difference(one, other, seed=seed), test))
    return found


def question_key(record: Record) -> str:
    """Identify a question by its id and text, because in many files the id is only the position."""
    return f"{record.id}\n{normalise(record.text)}"


def scores_by_question(records: Iterable[Record]) -> dict[str, Mapping[str, float]]:
    """Map the `question_key` of each scored question to its scores."""
    return {question_key(record): dict(record.scores) for record in records if record.scores}


Grouping = Callable[[Record], str]


def _score_bin(confidence: object) -> str:
    """Return the range of an answer's score; Hit@1 by score is the calibration table of a run."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        return ""
    low = min(int(5 * confidence), 4)
    return f"{20 * low} to {20 * low + 20}%"


GROUPINGS: Mapping[str, Grouping] = {
    "dataset": lambda record: record.dataset,
    "hops": lambda record: "" if record.hops is None else str(record.hops),
    "kind": lambda record: record.kind,
    "level": lambda record: record.level,
    "score": lambda record: _score_bin(record.answer.get("confidence")) if record.status == "answered" else "",
    "topics": lambda record: str(n) if (n := len(record.topics)) < MORE_TOPICS else f"{MORE_TOPICS} or more",
}
"""Functions that return the name of a question's group; the name is empty if the data set lacks the property."""


def _two_sided(one: int, other: int) -> float:
    """Compute the probability that `one + other` tosses of a fair coin split at least as unevenly."""
    total, fewer = one + other, min(one, other)
    if not total:
        return 1.0
    term = tail = 1
    for successes in range(1, fewer + 1):
        term = term * (total - successes + 1) // successes
        tail += term
    return float(min(1.0, 2 * tail / 2**total))  # integers before the division: 2 ** -5000 underflows as a float
