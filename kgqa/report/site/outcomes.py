"""How a question ended, for a report: the stage at which the right answer was lost, and which answers are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.keys import Key, answer_keys, gold_keys
from kgqa.evaluation.metrics.measures import gold_seen, score
from kgqa.evaluation.metrics.scores import named_answers
from kgqa.evaluation.runs.records import Record
from kgqa.model import Named
from kgqa.report.lenient_json import number_of, object_of, objects_of, text_of

STAGES = {
    "right": "right",
    "linking": "not linked",
    "no path": "no path of the allowed depth",
    "not expanded": "not expanded",
    "prefilter": "cut by the prefilter",
    "tournament": "lost in the tournament",
    "joining": "paths not joined",
    "depth": "stopped too early or late",
    "last comparison": "lost in the final comparison",
    "rejected": "right path rejected",
    "read": "answers not read, or incomplete",
    "not retrieved": "supporting passage not retrieved",
    "not kept": "supporting passage not kept",
    "misread": "no right answer from the right passages",
    "not accepted": "right answer not accepted",
    "budget": "budget exhausted",
    "failed": "failed",
    "unsupported": "unsupported question",
    "unknown": "unknown",
    "": "wrong (cause not analysed; rerun with --losses)",
    "no gold": "no gold answers",
}
"""Labels of the stages by `kgqa.evaluation.analysis.losses.Loss`; the key "" means that the cause was not analysed."""
UNSCORED = "no gold"
"""The stage of questions without gold answers. Such questions do not count in the shares of stages."""
OUTCOMES = {
    "right": "right",
    "partly": "partly right",
    "wrong": "wrong",
    "none": "no answer",
    "failed": "failed",
    UNSCORED: "no gold answers",
}
"""Labels of the outcomes of a question: whether its answers are all and only the gold answers, some of them, none."""
SIGNS = {"right": "✓", "partly": "◐", "wrong": "✗", "none": "○", "failed": "!", UNSCORED: "·"}
"""A sign for each outcome, so that no outcome is told by its colour alone."""
_HITS = ("hit@1", "hit", "hit_at_1")
MAX_ANSWERS = 200


def stage_of(record: Record) -> str:
    """Return the stage at which a question ended, a key of `STAGES`."""
    if not record.scores:
        return UNSCORED
    if record.loss:
        return record.loss if record.loss in STAGES else "unknown"
    if exact_match(record) == 1.0:
        return "right"
    stages = {"failed": "failed", "unsupported": "unsupported", "budget_exhausted": "budget"}
    return stages.get(record.status, "")


def outcome_of(record: Record) -> str:
    """Return how right the answers of a question are, a key of `OUTCOMES`."""
    if not record.scores:
        return UNSCORED
    if exact_match(record) == 1.0:
        return "right"
    if record.failure or record.status == "failed":
        return "failed"
    if hit_of(record) or number_of(record.scores.get("f1")):
        return "partly"
    return "wrong" if objects_of(record.answer.get("answers")) else "none"


def exact_match(record: Record) -> float | None:
    """Return 1 if the answers are exactly the gold answers, else 0; None if the question was not scored."""
    return number_of(record.scores.get("em", record.scores.get("set_em")))


def hit_of(record: Record) -> float | None:
    """Return the question's Hit@1, or None if the question was not scored."""
    return next((number for name in _HITS if (number := number_of(record.scores.get(name))) is not None), None)


@dataclass(frozen=True, slots=True)
class ListedAnswer:
    """An answer or a gold answer on a page; `right`: whether an answer equals a gold answer."""

    name: str
    id: str
    right: bool


@dataclass(frozen=True, slots=True)
class AnswersAndGold:
    """The answers of a question, and the gold answers of the interpretation that fits them best.

    `given`, `gold`: at most `MAX_ANSWERS` of each. `given_more`, `gold_more`: numbers of further answers that are not
    listed. `readings`: number of ways in which the data set interprets the question, such as the parses of WebQSP.
    """

    given: tuple[ListedAnswer, ...]
    gold: tuple[ListedAnswer, ...]
    given_more: int
    gold_more: int
    readings: int


def answers_and_gold(record: Record) -> AnswersAndGold:
    """Compare a record's answers with its gold answers, in the same way as the scores.

    Answers that a language model gave from its own knowledge are compared by name. If the data set interprets the
    question in several ways, the gold answers of the interpretation with the best F1 are used.
    """
    answers = named_answers({"answers": objects_of(record.answer.get("answers"))})
    grounding = text_of(record.answer.get("grounding"))
    readings = [gold_seen([each for each in gold if each.id or each.name], grounding) for gold in record.readings]
    place = max(range(len(readings)), key=lambda number: _fit(answers, readings[number]), default=None)
    seen, best = ([], ()) if place is None else (readings[place], record.readings[place])
    keys = gold_keys(seen)
    matched = answer_keys(answers, keys) & keys
    given = [
        ListedAnswer(each.name or each.id, each.id, bool(answer_keys([each], keys) & matched))
        for each in answers[:MAX_ANSWERS]
    ]
    gold = [
        ListedAnswer(each.name or each.id, each.id, bool(gold_keys(gold_seen([each], grounding)) & matched))
        for each in best[:MAX_ANSWERS]
    ]
    return AnswersAndGold(
        tuple(given),
        tuple(gold),
        max(0, len(answers) - MAX_ANSWERS),
        max(0, len(best) - MAX_ANSWERS),
        len(record.readings),
    )


def _fit(answers: Sequence[Named], gold: Sequence[GoldAnswer]) -> tuple[float, ...]:
    """Return F1, exact match and precision of answers, to find the interpretation that fits best."""
    keys: frozenset[Key] = gold_keys(gold)
    if not keys:
        return (-1.0,)
    found = score(answer_keys(answers, keys), keys)
    return found.f1, found.em, found.precision


def usage_of(record: Record) -> Mapping[str, Any]:
    """Return the usage of a record's answer; an empty mapping if the answer contains no usage."""
    return object_of(record.answer.get("usage"))
