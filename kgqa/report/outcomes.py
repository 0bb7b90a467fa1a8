"""Determines the outcome of a question for a report: the stage it was lost at, and its answers against the gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.keys import Key, answer_keys, gold_keys
from kgqa.evaluation.metrics.measures import gold_seen, score
from kgqa.evaluation.runs.records import Record
from kgqa.model import XSD_STRING, Entity, Literal, Named
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
    "budget": "budget exhausted",
    "failed": "failed",
    "unsupported": "unsupported question",
    "unknown": "unknown",
    "": "wrong (cause not analysed; rerun with --losses)",
    "no gold": "no gold answers",
}
"""The label of each `kgqa.evaluation.analysis.losses.Loss`; the empty one stands for a missing analysis."""
UNSCORED = "no gold"
"""The stage of questions without gold answers, which are excluded from shares."""
_HITS = ("hit@1", "hit", "hit_at_1")
MAX_ANSWERS = 200


def stage_of(record: Record) -> str:
    """Return the stage at which a question ended, a key of `STAGES`."""
    if not record.scores:
        return UNSCORED
    if record.loss:
        return record.loss if record.loss in STAGES else "unknown"
    if record.scores.get("em", record.scores.get("set_em")) == 1.0:
        return "right"
    stages = {"failed": "failed", "unsupported": "unsupported", "budget_exhausted": "budget"}
    return stages.get(record.status, "")


def hit_of(record: Record) -> float | None:
    """Return Hit@1, None if the question was not scored."""
    return next((number for name in _HITS if (number := number_of(record.scores.get(name))) is not None), None)


@dataclass(frozen=True, slots=True)
class ListedAnswer:
    """An answer or a gold answer on a page; `right`: it is both."""

    name: str
    id: str
    right: bool


@dataclass(frozen=True, slots=True)
class AnswersAndGold:
    """The answers given, and the gold answers of the best-matching reading.

    `given_more`, `gold_more`: numbers of answers that are not listed. `readings`: number of readings of the question.
    """

    given: tuple[ListedAnswer, ...]
    gold: tuple[ListedAnswer, ...]
    given_more: int
    gold_more: int
    readings: int


def answers_and_gold(record: Record) -> AnswersAndGold:
    """Compare the answers given with the gold answers, as the scores do.

    Answers from a model's memory are compared by name. Of several readings, the one with the best F1 counts.
    """
    answers = [_named(each) for each in objects_of(record.answer.get("answers"))]
    grounding = text_of(record.answer.get("grounding"))
    readings = [gold_seen(filter(_usable, gold), grounding) for gold in record.readings]
    place = max(range(len(readings)), key=lambda number: _fit(answers, readings[number]), default=None)
    seen, best = ([], ()) if place is None else (readings[place], record.readings[place])
    keys = gold_keys(seen)
    matched = answer_keys(answers, keys) & keys
    given = [
        ListedAnswer(each.name or each.id, each.id, bool(answer_keys([each], keys) & matched))
        for each in answers[:MAX_ANSWERS]
    ]
    gold = [
        ListedAnswer(
            each.name or each.id, each.id, _usable(each) and bool(gold_keys(gold_seen([each], grounding)) & matched)
        )
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
    """Score how well answers fit a reading, in the order in which `score_record` prefers readings."""
    keys: frozenset[Key] = gold_keys(gold)
    if not keys:
        return (-1.0,)
    found = score(answer_keys(answers, keys), keys)
    return found.f1, found.em, found.hit


def _usable(gold: GoldAnswer) -> bool:
    return isinstance(gold.id, str) and isinstance(gold.name, str) and bool(gold.id or gold.name)


def _named(item: Mapping[str, Any]) -> Named:
    """Convert an answer of an answer object to a `Named`."""
    name = text_of(item.get("name"))
    if isinstance(item.get("iri"), str):
        return Named(Entity(item["iri"]), text_of(item.get("id")), name)
    value = text_of(item.get("value")) or name
    language = text_of(item.get("language"))
    datatype = XSD_STRING if language else text_of(item.get("datatype")) or XSD_STRING
    return Named(Literal(value, datatype, language), "", name)


def usage_of(record: Record) -> Mapping[str, Any]:
    """Return the usage of a record's answer; empty if it is missing."""
    return object_of(record.answer.get("usage"))
