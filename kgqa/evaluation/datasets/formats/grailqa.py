"""GrailQA 1.0 (Gu et al. 2021): one JSON array with levels of generalisation and graph queries.

The topic entities are the nodes of the graph query that are entities. The public test file has questions only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kgqa.evaluation.datasets import reading
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from kgqa.evaluation.datasets.reading import Record


def read(file: Path, dataset: str = "grailqa") -> Iterator[GoldQuestion]:
    """The questions of a file of GrailQA: `level` is i.i.d., compositional or zero-shot, `kind` the function (count,
    argmax, >=, none, ...).

    Raises:
        QuestionFileError: it cannot be read, or a record is none of this format.
    """
    return reading.questions_in(file, dataset, lambda record, number: question_of(record, number, dataset))


def question_of(record: Record, number: int, dataset: str) -> GoldQuestion:
    """One record of the data set, or of a copy that keeps its keys."""
    query = record.get("graph_query") or {}
    if not isinstance(query, dict):
        raise ValueError('"graph_query" must be an object')
    nodes = {
        ident: reading.text_of(node, "friendly_name")
        for node in reading.objects_of(query, "nodes")
        if reading.text_of(node, "node_type") == "entity" and (ident := reading.text_of(node, "id"))
    }
    answers = reading.answers_of([_answer(item) for item in reading.objects_of(record, "answer")])
    sparql = reading.text_of(record, "sparql_query")
    return GoldQuestion(
        text=reading.needed(record, "question"),
        id=reading.ident(record, "qid"),
        dataset=dataset,
        number=number,
        topics=tuple(nodes),
        topic_names=reading.distinct([name for name in nodes.values() if name]),
        answers=answers,
        support="" if answers else reading.NO_GOLD,
        sparql=(sparql,) if sparql else (),
        kind=reading.text_of(record, "function"),
        level=reading.text_of(record, "level"),
        row=reading.row_with(record, sparql, tuple(nodes)),
    )


def _answer(item: Record) -> GoldAnswer:
    argument = reading.text_of(item, "answer_argument")
    if reading.text_of(item, "answer_type") == "Value":
        return reading.typed_value(argument)
    return reading.entity_or_value(argument, reading.text_of(item, "entity_name"))
