"""Hit@1, precision, recall, F1 and exact match on sets of answers, and their means with intervals.

The answers to a question are the ends of one path and have no order. Therefore Hit@1 is the probability that an answer
drawn at random is right, that is, the share of right answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any
from typing import Literal as OneOf

import numpy as np

from kgqa.evaluation.datasets.questions import GoldAnswer

Z95 = 1.959964
RESAMPLES = 2000
DISTINCT = 256
Interval = OneOf["bootstrap", "normal"]


@dataclass(frozen=True, slots=True)
class Score:
    """The metrics of one question, each from 0 to 1; `em` is either 1 or 0."""

    precision: float
    recall: float
    f1: float
    em: float


def reciprocal_rank(answers: int, right: int) -> float:
    """Compute the expected reciprocal rank of the first right answer, if the answers are put in random order.

    Args:
        answers: number of all answers.
        right: number of right answers; the result is 0 without any.
    """
    total, wrong_so_far = 0.0, 1.0
    for place in range(1, answers - right + 2) if right else ():
        chance = right / (answers - place + 1)
        total += wrong_so_far * chance / place
        wrong_so_far *= 1 - chance
    return total


def score(answers: AbstractSet[Any], gold: AbstractSet[Any]) -> Score:
    """Compare unordered answers with the gold answers; without answers every metric is 0.

    Raises:
        ValueError: there are no gold answers.
    """
    if not gold:
        raise ValueError("A question without gold answers cannot be scored.")
    right = len(answers & gold)
    precision = right / len(answers) if answers else 0.0
    return Score(
        precision=precision,
        recall=right / len(gold),
        f1=2 * right / (len(answers) + len(gold)),
        em=float(answers == gold),
    )


def gold_seen(gold: Iterable[GoldAnswer], grounding: str, *, aliases: bool = False) -> list[GoldAnswer]:
    """Prepare gold answers for comparison with answers that have this grounding.

    For answers from a text or a language model's memory, the ids of gold answers are removed, because such answers
    have only names.

    Args:
        grounding: `grounding` of the answer object.
        aliases: use the first alias as the name of a gold answer without a name.
    """
    return [_by_name(each, aliases) if grounding in ("model", "text") else each for each in gold]


def _by_name(gold: GoldAnswer, aliases: bool) -> GoldAnswer:
    names = (gold.name, *(gold.aliases if aliases else ()))
    name = next((each for each in names if each.strip()), "")
    return replace(gold, id="", name=name) if name else gold


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of n values with its 95% interval (`low`, `high`).

    For n = 0, all values are nan; for n = 1, the interval is nan.
    """

    value: float
    n: int
    low: float
    high: float

    def as_json(self) -> dict[str, float | int | None]:
        """Convert to plain JSON data; nan becomes None."""
        values = {"value": self.value, "low": self.low, "high": self.high}
        return {name: value if math.isfinite(value) else None for name, value in values.items()} | {"n": self.n}


def mean(values: Sequence[float], *, interval: Interval = "bootstrap", seed: int = 0) -> Mean:
    """Compute the mean of values from 0 to 1.

    Args:
        interval: `bootstrap`: percentiles of the means of `RESAMPLES` resamples; `normal`: the mean plus or minus
            1.96 standard errors, cut off at 0 and 1. If all values are equal, both intervals have width 0 for any n.
        seed: seed of the bootstrap.
    """
    data = np.sort(np.asarray(values, dtype=float))  # the order of the questions must not matter
    if not data.size:
        return Mean(math.nan, 0, math.nan, math.nan)
    centre = float(data.mean())
    if data.size == 1:
        return Mean(centre, 1, math.nan, math.nan)
    if interval == "normal":
        error = Z95 * float(data.std()) / math.sqrt(data.size)
        return Mean(centre, data.size, max(0.0, centre - error), min(1.0, centre + error))
    means = resampled_means(data, np.random.default_rng(seed))
    low, high = np.quantile(means, (0.025, 0.975))
    return Mean(centre, data.size, float(min(low, centre)), float(max(high, centre)))


def resampled_means(data: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Compute the means of `RESAMPLES` resamples of the data, with replacement, each as long as the data."""
    values, counts = np.unique(data, return_counts=True)
    if values.size <= DISTINCT:
        # drawing how often each value occurs has the same distribution as drawing each question, but is faster
        return np.asarray(generator.multinomial(data.size, counts / data.size, RESAMPLES) @ values / data.size)
    # one resample at a time to save memory, as n may be tens of thousands
    return np.array([data[generator.integers(0, data.size, data.size)].mean() for _ in range(RESAMPLES)])
