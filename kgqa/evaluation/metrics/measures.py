"""Hit@1, precision, recall, F1 and exact match on sets of answers, and their means with intervals.

The answers of a question are the ends of one path and therefore tie. Hit@1 is the expected score of a fair draw among
them: the share that is right.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any
from typing import Literal as OneOf

import numpy as np

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.keys import Key, answer_keys, gold_keys
from kgqa.model import Answer, QueryClass, Status

Z95 = 1.959964
RESAMPLES = 2000
DISTINCT = 256
Interval = OneOf["bootstrap", "normal"]


@dataclass(frozen=True, slots=True)
class Score:
    """The metrics of one question, each from 0 to 1; `em` is 1 or 0."""

    hit: float
    precision: float
    recall: float
    f1: float
    em: float


def hit_at_1(tied: AbstractSet[Any], gold: AbstractSet[Any]) -> float:
    """Compute the chance that one of the tied answers, drawn fairly, is right; 0 without answers."""
    return len(tied & gold) / len(tied) if tied else 0.0


def reciprocal_rank(answers: int, right: int) -> float:
    """Compute the expected reciprocal rank of the first right answer if `right` of `answers` tied ones are right.

    The order is a fair draw; 0 if none is right.
    """
    total, wrong_so_far = 0.0, 1.0
    for place in range(1, answers - right + 2) if right else ():
        chance = right / (answers - place + 1)
        total += wrong_so_far * chance / place
        wrong_so_far *= 1 - chance
    return total


def score(answers: AbstractSet[Any], gold: AbstractSet[Any]) -> Score:
    """Compare a set of tied answers with the gold answers. Without answers every metric is 0.

    Raises:
        ValueError: there are no gold answers.
    """
    if not gold:
        raise ValueError("a question without gold answers cannot be scored")
    right = len(answers & gold)
    precision = right / len(answers) if answers else 0.0
    return Score(
        hit=hit_at_1(answers, gold),
        precision=precision,
        recall=right / len(gold),
        f1=2 * right / (len(answers) + len(gold)),
        em=float(answers == gold),
    )


def score_answer(answer: Answer, gold: Collection[GoldAnswer]) -> Score:
    """Score an Answer against gold answers, by id, value or name (see `keys`).

    Answers from a model's memory have no ids and are compared by name, which is more lenient.
    """
    wanted: frozenset[Key] = gold_keys(gold_seen(gold, answer.grounding))
    return score(answer_keys(answer.answers, wanted), wanted)


def gold_seen(gold: Iterable[GoldAnswer], grounding: str, *, aliases: bool = False) -> list[GoldAnswer]:
    """Return gold answers in the form for answers of this grounding: without ids for those of a model.

    Args:
        aliases: a gold answer without a name gets its first alias as name.
    """
    return [_by_name(each, aliases) if grounding == "model" else each for each in gold]


def _by_name(gold: GoldAnswer, aliases: bool) -> GoldAnswer:
    names = (gold.name, *(gold.aliases if aliases else ()))
    name = next((each for each in names if each.strip()), "")
    return replace(gold, id="", name=name) if name else gold


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean of n values with its 95% interval; all nan for n = 0, the interval nan for n = 1."""

    value: float
    n: int
    low: float
    high: float


def mean(values: Sequence[float], *, interval: Interval = "bootstrap", seed: int = 0) -> Mean:
    """Compute the mean of values from 0 to 1.

    Args:
        interval: `bootstrap`: percentiles of the means of `RESAMPLES` resamples; `normal`: 1.96 standard errors
            to both sides, within 0 and 1. If all values are equal both shrink to that value, for any n.
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
        # the counts of each value are multinomial: the same distribution, without a draw per question
        return np.asarray(generator.multinomial(data.size, counts / data.size, RESAMPLES) @ values / data.size)
    # one resample at a time: n may be tens of thousands
    return np.array([data[generator.integers(0, data.size, data.size)].mean() for _ in range(RESAMPLES)])


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question that was asked, with its score; `hops`: None if unknown; `loss`: empty if not analysed."""

    id: str
    dataset: str
    hops: int | None
    status: Status
    query_class: QueryClass
    score: Score
    seconds: float
    loss: str = ""


METRICS: Mapping[str, Callable[[Outcome], float]] = {
    "hit@1": lambda outcome: outcome.score.hit,
    "precision": lambda outcome: outcome.score.precision,
    "recall": lambda outcome: outcome.score.recall,
    "f1": lambda outcome: outcome.score.f1,
    "em": lambda outcome: outcome.score.em,
}


@dataclass(frozen=True, slots=True)
class Summary:
    """Means over n outcomes.

    `reproduced`: share of answered questions whose query returns exactly the answers when it is run again, nan if none
    was answered; `seconds`: mean wall time per question.
    """

    n: int
    means: Mapping[str, Mean]
    reproduced: float
    statuses: Mapping[str, int]
    losses: Mapping[str, int]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return plain data: `n`, each metric as a number, `intervals` by metric, and the other fields."""
        found: dict[str, Any] = {"n": self.n, **{name: m.value for name, m in self.means.items()}}
        found["intervals"] = {name: [m.low, m.high] for name, m in self.means.items()}
        found |= {"reproduced": self.reproduced, "statuses": dict(self.statuses), "seconds": self.seconds}
        return found | ({"losses": dict(self.losses)} if self.losses else {})


def summarise(outcomes: Sequence[Outcome], *, interval: Interval = "bootstrap") -> Summary:
    """Summarise outcomes; statuses and losses are sorted by frequency."""
    answered = [outcome for outcome in outcomes if outcome.status == "answered"]
    exact = sum(outcome.query_class == "exact" for outcome in answered)
    return Summary(
        n=len(outcomes),
        means={name: mean([of(o) for o in outcomes], interval=interval) for name, of in METRICS.items()},
        reproduced=exact / len(answered) if answered else math.nan,
        statuses=_counted(outcome.status for outcome in outcomes),
        losses=_counted(outcome.loss for outcome in outcomes if outcome.loss),
        seconds=sum(o.seconds for o in outcomes) / len(outcomes) if outcomes else math.nan,
    )


def by_group(outcomes: Iterable[Outcome], group: Callable[[Outcome], str]) -> dict[str, list[Outcome]]:
    """Group outcomes by name, in the order of the names."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(group(outcome), []).append(outcome)
    return dict(sorted(found.items()))


def dataset_and_hop(outcome: Outcome) -> str:
    """Return `webqsp_test, 2 hops`, or the data set alone if the hops are unknown."""
    if outcome.hops is None:
        return outcome.dataset
    return f"{outcome.dataset}, {outcome.hops} hop{'s' if outcome.hops > 1 else ''}"


def _counted(items: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(items).items(), key=lambda pair: (-pair[1], pair[0])))
