"""GRBench (Jin et al. 2024, Graph Chain-of-Thought): lines with `qid`, `question`, `answer` and maybe `level`."""

from __future__ import annotations

import json

from kgqa.evaluation.datasets import fields
from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion


def question_of(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record to a question.

    A string is one answer, even if it contains commas, because names may contain commas. In a list, each item is an
    answer.
    """
    value = record.get("answer")
    items = value if isinstance(value, list) else [] if value is None else [value]
    answers = fields.answers_of([GoldAnswer("", _text(item)) for item in items])
    return GoldQuestion(
        text=fields.needed(record, "question"),
        id=fields.text_of(record, "qid") or str(number),
        dataset=dataset,
        number=number,
        answers=answers,
        support="" if answers else fields.NO_GOLD,
        level=fields.text_of(record, "level"),
        row=record,
    )


def _text(item: object) -> str:
    """Convert an answer (string, number or boolean) to text."""
    if isinstance(item, str):
        return item.strip()
    if isinstance(item, (bool, int, float)):
        return json.dumps(item)
    raise ValueError('"answer" must be a text, a number or a list of these')
