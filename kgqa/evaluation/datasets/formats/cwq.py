"""ComplexWebQuestions 1.1 (Talmor and Berant 2018): one JSON array, answers with Freebase ids and aliases.

The published test file has no answers; copies with answers (`..._test_wans.json`) are read in the same way. The files
have no topic entities; the entities in the gold query are used, except types.
"""

from __future__ import annotations

from kgqa.evaluation.datasets import fields
from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.query_topics import freebase_topics
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion


def question_of(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record to a question."""
    sparql = fields.text_of(record, "sparql")
    topics = freebase_topics(sparql)
    answers = fields.answers_of([_answer(item) for item in fields.objects_of(record, "answers")])
    return GoldQuestion(
        text=fields.needed(record, "question"),
        id=fields.ident(record, "ID"),
        dataset=dataset,
        number=number,
        topics=topics,
        answers=answers,
        support="" if answers else fields.NO_GOLD,
        sparql=(sparql,) if sparql else (),
        kind=fields.text_of(record, "compositionality_type"),
        row=fields.row_with(record, sparql, topics),
    )


def _answer(item: Record) -> GoldAnswer:
    """Build an answer; for dates and numbers, the id in the file is the value."""
    aliases = fields.texts_of(item, "aliases")
    return fields.entity_or_value(fields.text_of(item, "answer_id"), fields.text_of(item, "answer"), aliases)
