"""Compares runs on a true and on a fictional graph, to measure how much of a score comes from a model's memory.

On a fictional graph (see `kgqa.evaluation.fictional`), true answers count as wrong. Therefore the points that a method
loses there came from the model's memory and not from the graph (Tournament on Path, section 6.2.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kgqa.evaluation.analysis.comparison import compare_runs, scores_by_question
from kgqa.evaluation.runs.records import Record


@dataclass(frozen=True, slots=True)
class MemoryGap:
    """The means of a metric on the true and on the fictional graph, over the n questions that both runs share.

    `difference`: true - fictional; `low`, `high`: the 95% interval of the difference; `p`: the two-sided p of the
    paired bootstrap.
    """

    true: float
    fictional: float
    difference: float
    low: float
    high: float
    p: float
    n: int


def memory_of(true: Iterable[Record], fictional: Iterable[Record], *, seed: int = 0) -> dict[str, MemoryGap]:
    """Compare every metric on the questions with the same id and text in both runs; empty if there are none.

    Questions without an answer in the fictional graph are left out, because only the run on the true graph has them.

    Args:
        true, fictional: the records of the run on the true graph and of the run on the fictional graph.
        seed: seed of the bootstrap.
    """
    found = {}
    for each in compare_runs(scores_by_question(fictional), scores_by_question(true), seed=seed):
        gap = each.difference
        found[each.metric] = MemoryGap(each.second, each.first, gap.value, gap.low, gap.high, gap.p, gap.n)
    return found
