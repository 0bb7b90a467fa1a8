"""The official scorers of WebQSP, CWQ and GrailQA on their own terms, computed with our comparison of answers.

Answers and gold answers are sets of anything that compares by equality: ids as their files have them, or the keys of
`scores.reading_keys`. Where these terms differ from ours docs/metrics.md says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.keys import alias_keys, gold_keys, text_key
from kgqa.evaluation.metrics.measures import gold_seen, score

Answers = AbstractSet[Any]


@dataclass(frozen=True, slots=True)
class WebqspScores:
    """Averages over questions; `f1` the average of F1, `f1_of_averages` the F1 of the average precision and recall;
    `accuracy` the share of questions with F1 1. All nan of no question.
    """

    n: int
    precision: float
    recall: float
    f1: float
    f1_of_averages: float
    accuracy: float


def webqsp_scores(questions: Iterable[tuple[Answers, Sequence[Answers]]]) -> WebqspScores:
    """WebQSP (Yih et al. 2016, the scorer in its archive): of each question the parse with the best F1 counts.

    Without answers precision is 1, and recall 0 unless the parse has none either; where only the parse has none,
    precision is 0 and recall 1. Questions without a parse are left out.

    Args:
        questions: the answers of each question, and the gold answers of each of its parses.
    """
    rows = [
        max((_webqsp_row(answers, gold) for gold in parses), key=lambda row: row[2])
        for answers, parses in questions
        if parses
    ]
    precision, recall, f1 = (_average([row[place] for row in rows]) for place in range(3))
    both = precision + recall
    return WebqspScores(
        n=len(rows),
        precision=precision,
        recall=recall,
        f1=f1,
        f1_of_averages=2 * precision * recall / both if both else both,
        accuracy=_average([float(row[2] == 1.0) for row in rows]),
    )


def cwq_precision_at_1(questions: Iterable[tuple[str, Iterable[GoldAnswer]]]) -> float:
    """ComplexWebQuestions (Talmor and Berant 2018, section 5): the share of questions whose first answer is the name
    or an alias of some gold answer. The official script also takes spellings that are near; equality decides here.
    """
    return _average([float(_is_named(said, gold)) for said, gold in questions])


@dataclass(frozen=True, slots=True)
class GrailqaScores:
    """Averages over the questions of a level: `em` of the answers being the gold answers, `f1` of the sets."""

    n: int
    em: float
    f1: float


def grailqa_scores(questions: Iterable[tuple[Answers, Answers, str]]) -> dict[str, GrailqaScores]:
    """GrailQA (Gu et al. 2021, section 6): by level of generalisation, and `overall`.

    Its EM compares logical forms; methods that give none are compared by their answers, as here.

    Args:
        questions: answers, gold answers, level (`i.i.d.`, `compositional`, `zero-shot`, or as the file has it).
    """
    rows: dict[str, list[tuple[float, float]]] = {"overall": []}
    for answers, gold, level in questions:
        found = score(answers, gold) if gold else None
        row = (found.em, found.f1) if found else (float(not answers),) * 2
        for name in ("overall", *([level] if level else [])):
            rows.setdefault(name, []).append(row)
    return {
        name: GrailqaScores(len(part), _average([em for em, _ in part]), _average([f1 for _, f1 in part]))
        for name, part in rows.items()
    }


def _webqsp_row(answers: Answers, gold: Answers) -> tuple[float, float, float]:
    if not gold:
        return (0.0, 1.0, 0.0) if answers else (1.0, 1.0, 1.0)
    found = score(answers, gold)
    return (found.precision if answers else 1.0, found.recall, found.f1)


def _is_named(said: str, gold: Iterable[GoldAnswer]) -> bool:
    seen = gold_seen(gold, "model", aliases=True)
    names = [GoldAnswer("", answer.name, aliases=answer.aliases) for answer in seen if answer.name.strip()]
    known = {*gold_keys(names), *alias_keys(names)}
    return bool(said.strip()) and text_key(said) in known


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
