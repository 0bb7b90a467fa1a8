"""Paired tests for two runs over the same questions, and groupings of questions.

Paired tests detect smaller differences than a comparison of two intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from kgqa.evaluation.metrics.measures import resampled_means
from kgqa.evaluation.runs.records import Record
from kgqa.words import normalise

MORE_TOPICS = 3


@dataclass(frozen=True, slots=True)
class McNemar:
    """Over n questions: right in the first run only, in the second only, and the exact two-sided p of that split."""

    n: int
    only_first: int
    only_second: int
    p: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of second - first over n questions, its 95% interval, and the two-sided bootstrap p of no difference.

    All are nan for n = 0, interval and p for n = 1.
    """

    value: float
    n: int
    low: float
    high: float
    p: float


def mcnemar(first: Mapping[str, float], second: Mapping[str, float]) -> McNemar:
    """Apply the exact McNemar test to two runs, on the questions that both have (McNemar 1947, binomial form).

    Args:
        first, second: 1 for right and 0 for wrong, by question.

    Raises:
        ValueError: another value; use `difference` for metrics between 0 and 1.
    """
    shared = first.keys() & second.keys()
    if wrong := {value for run in (first, second) for value in (run[ident] for ident in shared)} - {0.0, 1.0}:
        raise ValueError(f"McNemar's test takes 0 and 1, not {min(wrong)}; use the paired bootstrap")
    only_first = sum(first[ident] > second[ident] for ident in shared)
    only_second = sum(second[ident] > first[ident] for ident in shared)
    return McNemar(len(shared), only_first, only_second, _two_sided(only_first, only_second))


def difference(first: Mapping[str, float], second: Mapping[str, float], *, seed: int = 0) -> Difference:
    """Apply the paired bootstrap to the difference of two runs, on the questions that both have.

    Efron and Tibshirani 1993, chapters 13 and 16. Resamples of a few similar differences understate the uncertainty,
    so p is at least 2 / 2**n, the smallest value of a sign-flip test on the n questions that differ.

    Args:
        first, second: a metric from 0 to 1, by question.
    """
    data = np.sort(np.array([second[ident] - first[ident] for ident in first.keys() & second.keys()], dtype=float))
    if not data.size:
        return Difference(math.nan, 0, math.nan, math.nan, math.nan)
    value = float(data.mean())
    if data.size == 1:
        return Difference(value, 1, math.nan, math.nan, math.nan)
    means = resampled_means(data, np.random.default_rng(seed))
    low, high = np.quantile(means, (0.025, 0.975))
    # share of resamples under the null hypothesis that differ as much, the data included
    beyond = int(np.count_nonzero(np.abs(means - value) >= abs(value) - 1e-12))
    p = max((beyond + 1) / (means.size + 1), min(1.0, 2.0 ** (1 - int(np.count_nonzero(data)))))
    return Difference(value, data.size, float(min(low, value)), float(max(high, value)), p)


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """A metric of two runs: means over the shared questions, the difference, and McNemar's test for 0/1 metrics."""

    metric: str
    first: float
    second: float
    difference: Difference
    mcnemar: McNemar | None


def compare_runs(
    first: Mapping[str, Mapping[str, float]], second: Mapping[str, Mapping[str, float]], *, seed: int = 0
) -> list[MetricComparison]:
    """Compare every metric that all shared questions have in both runs, in the order of the first run.

    Args:
        first, second: scores by question, from `scores_by_question`.
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
    """Return a key of id and text, because ids are mere positions in many files."""
    return f"{record.id}\n{normalise(record.text)}"


def scores_by_question(records: Iterable[Record]) -> dict[str, Mapping[str, float]]:
    """Map `question_key` to the scores of each scored question."""
    return {question_key(record): dict(record.scores) for record in records if record.scores}


Grouping = Callable[[Record], str]


def _topic_count(record: Record) -> str:
    count = len(record.topics)
    return str(count) if count < MORE_TOPICS else f"{MORE_TOPICS} or more"


GROUPINGS: Mapping[str, Grouping] = {
    "dataset": lambda record: record.dataset,
    "hops": lambda record: "" if record.hops is None else str(record.hops),
    "kind": lambda record: record.kind,
    "level": lambda record: record.level,
    "topics": _topic_count,
}
"""Groupings of questions; the name of a group is empty if the data set does not give it."""


def _two_sided(one: int, other: int) -> float:
    """Compute the chance that a fair coin tossed one + other times is at least as uneven."""
    total, fewer = one + other, min(one, other)
    if not total:
        return 1.0
    term = tail = 1
    for successes in range(1, fewer + 1):
        term = term * (total - successes + 1) // successes
        tail += term
    return float(min(1.0, 2 * tail / 2**total))  # integers until here, because 2 ** -5000 is no float
