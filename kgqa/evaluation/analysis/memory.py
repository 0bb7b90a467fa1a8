"""How much of a score is memory: the same questions asked of a true graph and of a fictional one, side by side.

On the fictional graph (see `kgqa.evaluation.fictional`) no true answer is right, so what a method loses there it had
from the model's memory and not from the graph (Tournament on Path, section 6.2.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kgqa.evaluation.analysis.comparison import compare_runs, scores_by_question
from kgqa.evaluation.runs.records import Record


@dataclass(frozen=True, slots=True)
class Memory:
    """One metric over the n questions that both runs have: the mean on the true and on the fictional graph, and what the
    first is higher by, with its 95% interval and the two-sided p of no difference (paired bootstrap).
    """

    true: float
    fictional: float
    difference: float
    low: float
    high: float
    p: float
    n: int


def memory_of(true: Iterable[Record], fictional: Iterable[Record], *, seed: int = 0) -> dict[str, Memory]:
    """Every metric that both runs have on all questions they share, by id and text. Questions that only one run has, such
    as those the fictional graph has no answer to, do not count. Empty where nothing is shared.

    Args:
        true, fictional: the records of a run on each graph.
        seed: of the bootstrap.
    """
    found = {}
    for each in compare_runs(scores_by_question(fictional), scores_by_question(true), seed=seed):
        gap = each.difference
        found[each.metric] = Memory(each.second, each.first, gap.value, gap.low, gap.high, gap.p, gap.n)
    return found
