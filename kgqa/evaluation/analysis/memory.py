"""How much of a score comes from a model's memory: runs on a true and on a fictional graph, compared.

On a fictional graph (see `kgqa.evaluation.fictional`) no true answer is right, so what a method loses there came from
the model's memory and not from the graph (Tournament on Path, section 6.2.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kgqa.evaluation.analysis.comparison import compare_runs, scores_by_question
from kgqa.evaluation.runs.records import Record


@dataclass(frozen=True, slots=True)
class MemoryGap:
    """A metric over the n questions that both runs have: means on the true and on the fictional graph.

    `difference`: true - fictional, with its 95% interval and the two-sided p of no difference (paired bootstrap).
    """

    true: float
    fictional: float
    difference: float
    low: float
    high: float
    p: float
    n: int


def memory_of(true: Iterable[Record], fictional: Iterable[Record], *, seed: int = 0) -> dict[str, MemoryGap]:
    """Compare every metric on the questions that both runs have, by id and text; empty if there are none.

    Questions without an answer in the fictional graph are in one run only and do not count.

    Args:
        true, fictional: the records of a run on each graph.
        seed: seed of the bootstrap.
    """
    found = {}
    for each in compare_runs(scores_by_question(fictional), scores_by_question(true), seed=seed):
        gap = each.difference
        found[each.metric] = MemoryGap(each.second, each.first, gap.value, gap.low, gap.high, gap.p, gap.n)
    return found
