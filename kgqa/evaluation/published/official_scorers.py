"""The official metrics of WebQSP, CWQ and GrailQA, computed with our comparison of answers.

Answers and gold answers are sets of ids from the files, or of keys from `scores.reading_keys`. docs/metrics.md lists
the differences from kgqa's own metrics.
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
    """The official WebQSP metrics over n questions; all are nan for n = 0.

    `f1`: mean F1 of the questions; `f1_of_averages`: F1 of the mean precision and mean recall; `accuracy`: share of
    questions with F1 = 1.
    """

    n: int
    precision: float
    recall: float
    f1: float
    f1_of_averages: float
    accuracy: float


def webqsp_scores(questions: Iterable[tuple[Answers, Sequence[Answers]]]) -> WebqspScores:
    """Compute the official metrics of WebQSP (Yih et al. 2016, the scorer in its archive).

    For each question, the parse with the best F1 counts. If nothing was answered, precision is 1, and recall is 1 for a
    parse without gold answers, else 0. If something was answered and the parse has no gold answers, precision is 0 and
    recall is 1. Questions without a parse are left out.

    Args:
        questions: for each question its answers, and the gold answers of each parse.
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
    """Compute precision@1 of ComplexWebQuestions (Talmor and Berant 2018, section 5).

    This is the share of questions whose first answer equals a name or alias of a gold answer. The official script also
    accepts similar spellings; this implementation does not.
    """
    return _average([float(_is_named(answer, gold)) for answer, gold in questions])


@dataclass(frozen=True, slots=True)
class GrailqaScores:
    """Means over the n questions of a level.

    `em`: share of questions whose answers equal the gold answers; `f1`: mean F1 of the two sets.
    """

    n: int
    em: float
    f1: float


def grailqa_scores(questions: Iterable[tuple[Answers, Answers, str]]) -> dict[str, GrailqaScores]:
    """Compute the metrics of GrailQA (Gu et al. 2021, section 6) for each level of generalisation and `overall`.

    The official EM compares logical forms; this EM compares sets of answers.

    Args:
        questions: for each question its answers, gold answers, and level (`i.i.d.`, `compositional`, `zero-shot`).
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


def _is_named(answer_text: str, gold: Iterable[GoldAnswer]) -> bool:
    seen = gold_seen(gold, "model", aliases=True)
    names = [GoldAnswer("", answer.name, aliases=answer.aliases) for answer in seen if answer.name.strip()]
    known = {*gold_keys(names), *alias_keys(names)}
    return bool(answer_text.strip()) and text_key(answer_text) in known


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
