"""Adds names to gold answers that have only an id, because answers from a model's memory are compared by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from kgqa.errors import SchemaError
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity


def with_names(questions: Sequence[GoldQuestion], graph: KnowledgeGraph) -> list[GoldQuestion]:
    """Add names from the graph to the gold answers that have no name, and return the questions.

    Raises:
        StoreError: the graph cannot be queried.
    """
    lacking: dict[str, Entity] = {}
    for question in questions:
        for gold in chain(question.answers, *question.parses):
            if gold.id and not gold.name.strip() and not gold.datatype:
                try:
                    lacking[gold.id] = Entity(graph.schema.iri(gold.id))
                except SchemaError:
                    continue  # the id is not valid in this graph
    if not lacking:
        return list(questions)
    labels = graph.labels(lacking.values())
    names = {ident: label for ident, entity in lacking.items() if (label := labels.get(entity))}

    def filled(reading: Sequence[GoldAnswer]) -> tuple[GoldAnswer, ...]:
        return tuple(
            replace(gold, name=names[gold.id]) if gold.id in names and not gold.name.strip() else gold
            for gold in reading
        )

    return [
        replace(each, answers=filled(each.answers), parses=tuple(filled(reading) for reading in each.parses))
        for each in questions
    ]
