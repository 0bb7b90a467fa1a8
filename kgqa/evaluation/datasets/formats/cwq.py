"""ComplexWebQuestions 1.1 (Talmor and Berant 2018): one JSON array, answers with Freebase ids and aliases.

The published test file has no answers; copies of it that have (`..._test_wans.json`) are read the same way. The
topic entities, which the files do not give, are the entities of the gold query that are no types.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kgqa.evaluation.datasets import reading
from kgqa.evaluation.datasets.queries import freebase_topics
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from kgqa.evaluation.datasets.reading import Record


def read(file: Path, dataset: str = "cwq") -> Iterator[GoldQuestion]:
    """The questions of a file of ComplexWebQuestions.

    Raises:
        QuestionFileError: it cannot be read, or a record is none of this format.
    """
    return reading.questions_in(file, dataset, lambda record, number: _question(record, number, dataset))


def _question(record: Record, number: int, dataset: str) -> GoldQuestion:
    sparql = reading.text_of(record, "sparql")
    topics = freebase_topics(sparql)
    answers = reading.answers_of([_answer(item) for item in reading.objects_of(record, "answers")])
    return GoldQuestion(
        text=reading.needed(record, "question"),
        id=reading.ident(record, "ID"),
        dataset=dataset,
        number=number,
        topics=topics,
        answers=answers,
        support="" if answers else reading.NO_GOLD,
        sparql=(sparql,) if sparql else (),
        kind=reading.text_of(record, "compositionality_type"),
        row=reading.row_with(record, sparql, topics),
    )


def _answer(item: Record) -> GoldAnswer:
    """By id; the answers that are dates or numbers have their value for an id."""
    aliases = reading.texts_of(item, "aliases")
    return reading.entity_or_value(reading.text_of(item, "answer_id"), reading.text_of(item, "answer"), aliases)
