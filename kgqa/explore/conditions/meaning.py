"""Conditions and operations in words, for the trace and for notes to people."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.conditions import Comparison, Condition, Operation
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity, Step
from kgqa.words import short_words

_KINDS = {"count": "number of answers", "exists": "yes or no"}


def condition_words(graph: KnowledgeGraph, condition: Condition) -> str:
    """Return a condition in words, such as "government position held from <= 1962"."""
    way = _way(graph, condition.steps) or "answer"
    if condition.test is None:
        return f"no {way}" if condition.negated else f"any {way}"
    if isinstance(condition.test, Comparison):
        text = f"{way} {condition.test.operator} {condition.test.value.value}"
    else:
        (named,) = graph.named([condition.test])
        text = f"{way} = {named.name}"
    return f"not {text}" if condition.negated else text


def operation_words(graph: KnowledgeGraph, operation: Operation) -> str:
    """Return an operation in words, such as "most mountain elevation"."""
    way = _way(graph, operation.steps)
    if operation.kind in _KINDS:
        return _KINDS[operation.kind]
    if operation.counted:
        way = f"different values of {way}" if way else "different ways to the answer"
    rank = f" (number {operation.rank})" if operation.rank > 1 else ""
    compared = [named.name for named in graph.named([each for each in operation.topics if isinstance(each, Entity)])]
    return f"{operation.kind} {way}{rank}" + (f" of {' and '.join(compared)}" if compared else "")


def _way(graph: KnowledgeGraph, steps: Sequence[Step]) -> str:
    return " · ".join(short_words(step.relation, graph.schema, graph.relation_labels) for step in steps)
