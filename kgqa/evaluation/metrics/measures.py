"""Hit@1, precision, recall, F1 and exact match on sets of answers, and their means with intervals.

The answers to a question are the ends of one path and have no order. Therefore Hit@1 is the probability that an answer
drawn at random is right, that is, the share of right answers.
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
    """The metrics of one question, each from 0 to 1; `em` is either 1 or 0."""

    hit: float
    precision: float
    recall: float
    f1: float
    em: float


def hit_at_1(tied: AbstractSet[Any], gold: AbstractSet[Any]) -> float:
    """Compute the probability that one of the unordered answers, drawn at random, is right; 0 without answers."""
    return len(tied & gold) / len(tied) if tied else 0.0


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
        hit=hit_at_1(answers, gold),
        precision=precision,
        recall=right / len(gold),
        f1=2 * right / (len(answers) + len(gold)),
        em=float(answers == gold),
    )


def score_answer(answer: Answer, gold: Collection[GoldAnswer]) -> Score:
    """Score an Answer against gold answers by id, value or name (see `keys`).

    Answers from a text or a language model's memory have no ids. Such answers are compared by name; therefore more of
    them count as right.
    """
    wanted: frozenset[Key] = gold_keys(gold_seen(gold, answer.grounding))
    return score(answer_keys(answer.answers, wanted), wanted)


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


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one question: its status and score.

    `hops`: None if unknown; `seconds`: wall time; `loss`: where the right answer was lost, empty if not analysed.
    """

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
    """Means and counts over n outcomes.

    `means`: each metric of `METRICS`; `reproduced`: share of answered questions for which a second run of the query
    returns exactly the same answers (nan if no question was answered); `statuses`, `losses`: number of outcomes with
    each value; `seconds`: mean wall time per question.
    """

    n: int
    means: Mapping[str, Mean]
    reproduced: float
    statuses: Mapping[str, int]
    losses: Mapping[str, int]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Convert to plain JSON data: `n`, the mean of each metric, `intervals` by metric, and the remaining fields."""
        found: dict[str, Any] = {"n": self.n, **{name: m.value for name, m in self.means.items()}}
        found["intervals"] = {name: [m.low, m.high] for name, m in self.means.items()}
        found |= {"reproduced": self.reproduced, "statuses": dict(self.statuses), "seconds": self.seconds}
        return found | ({"losses": dict(self.losses)} if self.losses else {})


def summarise(outcomes: Sequence[Outcome], *, interval: Interval = "bootstrap") -> Summary:
    """Compute the means of outcomes, and count statuses and losses, the most frequent first."""
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
    """Map the name of each group to its outcomes, sorted by name."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(group(outcome), []).append(outcome)
    return dict(sorted(found.items()))


def dataset_and_hop(outcome: Outcome) -> str:
    """Return a group name such as `webqsp_test, 2 hops`, without the hops if they are unknown."""
    if outcome.hops is None:
        return outcome.dataset
    return f"{outcome.dataset}, {outcome.hops} hop{'s' if outcome.hops > 1 else ''}"


def _counted(items: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(items).items(), key=lambda pair: (-pair[1], pair[0])))
