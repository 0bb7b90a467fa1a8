"""What became of one question, as a report tells it: right or wrong, at which stage it was lost, gold beside given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.keys import Key, answer_keys, gold_keys
from kgqa.evaluation.metrics.measures import gold_seen, score
from kgqa.evaluation.runs.records import Record
from kgqa.model import XSD_STRING, Entity, Literal, Named
from kgqa.report.loose import number_of, object_of, objects_of, text_of

STAGES = {
    "right": "right",
    "linking": "not linked",
    "no path": "no path of the allowed depth",
    "not expanded": "not expanded",
    "prefilter": "cut by the prefilter",
    "tournament": "lost in the tournament",
    "joining": "paths not joined",
    "depth": "stopped too early or late",
    "last comparison": "lost in the last comparison",
    "rejected": "rejected",
    "read": "not read off, or not whole",
    "budget": "budget spent",
    "failed": "failed",
    "unsupported": "declined",
    "unknown": "not known",
    "": "wrong (cause not analysed; rerun with --losses)",
    "no gold": "no gold answers",
}
"""What each `kgqa.evaluation.analysis.losses.Loss` is called; the empty one where nobody looked for it."""
UNSCORED = "no gold"
"""The stage of questions that nobody can call right or wrong: they count in no share."""
_HITS = ("hit@1", "hit", "hit_at_1")
MAX_ANSWERS = 200


def stage_of(record: Record) -> str:
    """A key of `STAGES`."""
    if not record.scores:
        return UNSCORED
    if record.loss:
        return record.loss if record.loss in STAGES else "unknown"
    if record.scores.get("em", record.scores.get("set_em")) == 1.0:
        return "right"
    told = {"failed": "failed", "unsupported": "unsupported", "budget_exhausted": "budget"}
    return told.get(record.status, "")


def hit_of(record: Record) -> float | None:
    """Hit@1, None where it was not scored."""
    return next((number for name in _HITS if (number := number_of(record.scores.get(name))) is not None), None)


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer or a gold answer on a page; `right`: on both sides."""

    name: str
    id: str
    right: bool


@dataclass(frozen=True, slots=True)
class Sides:
    """The answers that were given and the gold ones of the reading that counted; `given_more`, `gold_more`: how many
    of each are not here; `readings`: how many readings the question has.
    """

    given: tuple[Shown, ...]
    gold: tuple[Shown, ...]
    given_more: int
    gold_more: int
    readings: int


def sides_of(record: Record) -> Sides:
    """Gold answers beside those given, compared as the scores do: what a model said of itself by name, and of several
    readings the one with the best F1.
    """
    answers = [_named(each) for each in objects_of(record.answer.get("answers"))]
    grounding = text_of(record.answer.get("grounding"))
    readings = [gold_seen(filter(_usable, gold), grounding) for gold in record.readings]
    place = max(range(len(readings)), key=lambda number: _fit(answers, readings[number]), default=None)
    seen, best = ([], ()) if place is None else (readings[place], record.readings[place])
    keys = gold_keys(seen)
    matched = answer_keys(answers, keys) & keys
    given = [
        Shown(each.name or each.id, each.id, bool(answer_keys([each], keys) & matched))
        for each in answers[:MAX_ANSWERS]
    ]
    gold = [
        Shown(each.name or each.id, each.id, _usable(each) and bool(gold_keys(gold_seen([each], grounding)) & matched))
        for each in best[:MAX_ANSWERS]
    ]
    return Sides(
        tuple(given),
        tuple(gold),
        max(0, len(answers) - MAX_ANSWERS),
        max(0, len(best) - MAX_ANSWERS),
        len(record.readings),
    )


def _fit(answers: Sequence[Named], gold: Sequence[GoldAnswer]) -> tuple[float, ...]:
    """How well answers fit a reading, in the order in which `score_record` chooses one."""
    keys: frozenset[Key] = gold_keys(gold)
    if not keys:
        return (-1.0,)
    found = score(answer_keys(answers, keys), keys)
    return found.f1, found.em, found.hit


def _usable(gold: GoldAnswer) -> bool:
    return isinstance(gold.id, str) and isinstance(gold.name, str) and bool(gold.id or gold.name)


def _named(item: Mapping[str, Any]) -> Named:
    """An answer of an answer object as the model has it."""
    name = text_of(item.get("name"))
    if isinstance(item.get("iri"), str):
        return Named(Entity(item["iri"]), text_of(item.get("id")), name)
    value = text_of(item.get("value")) or name
    language = text_of(item.get("language"))
    datatype = XSD_STRING if language else text_of(item.get("datatype")) or XSD_STRING
    return Named(Literal(value, datatype, language), "", name)


def usage_of(record: Record) -> Mapping[str, Any]:
    return object_of(record.answer.get("usage"))
