"""GrailQA 1.0 (Gu et al. 2021): one JSON array with levels of generalisation and graph queries.

The topic entities are the entity nodes of the graph query. The public test file has no answers and no graph queries.
"""

from __future__ import annotations

from kgqa.evaluation.datasets import fields
from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion


def question_of(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record of the data set, or of a copy with the same keys, to a question.

    `level` is i.i.d., compositional or zero-shot; `kind` is the function in the query (count, argmax, >=, none, ...).
    """
    query = record.get("graph_query") or {}
    if not isinstance(query, dict):
        raise ValueError('"graph_query" must be an object')
    nodes = {
        ident: fields.text_of(node, "friendly_name")
        for node in fields.objects_of(query, "nodes")
        if fields.text_of(node, "node_type") == "entity" and (ident := fields.text_of(node, "id"))
    }
    answers = fields.answers_of([_answer(item) for item in fields.objects_of(record, "answer")])
    sparql = fields.text_of(record, "sparql_query")
    return GoldQuestion(
        text=fields.needed(record, "question"),
        id=fields.ident(record, "qid"),
        dataset=dataset,
        number=number,
        topics=tuple(nodes),
        topic_names=fields.distinct([name for name in nodes.values() if name]),
        answers=answers,
        support="" if answers else fields.NO_GOLD,
        sparql=(sparql,) if sparql else (),
        kind=fields.text_of(record, "function"),
        level=fields.text_of(record, "level"),
        row=fields.row_with(record, sparql, tuple(nodes)),
    )


def _answer(item: Record) -> GoldAnswer:
    argument = fields.text_of(item, "answer_argument")
    if fields.text_of(item, "answer_type") == "Value":
        return fields.typed_value(argument)
    return fields.entity_or_value(argument, fields.text_of(item, "entity_name"))
