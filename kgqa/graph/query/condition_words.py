"""Conditions and operations in the words with which `explain` explains their queries, without parsing a query."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.graph.query.export import ExportableGraph
from kgqa.graph.query.operation_words import (
    AVERAGE,
    COMPARED,
    COUNT,
    DIFFERENCE,
    EXISTS,
    RANKS,
    SUM,
    TAKEN,
    extreme_words,
    number_words,
    time_words,
)
from kgqa.model import Entity, Step
from kgqa.model.conditions import Comparison, Condition, Operation
from kgqa.text.words import clean, short_words


def condition_words(graph: ExportableGraph, condition: Condition, node: str = "") -> str:
    """Return a condition in words, such as “government position held from” of ?e1 is in or before 1962.

    Args:
        node: the variable of the condition's node in the query, such as ?e1; empty to leave the node out.
    """
    test, steps = condition.test, condition.steps
    if not steps:
        words = _value_words(graph, test) if isinstance(test, Comparison) else f"is {_entity(graph, test)}"
        words = words.replace("is ", "is not ", 1) if condition.negated else words
        return f"{node} {words}".strip()
    relation = " of ".join(_relation(graph, step) for step in reversed(steps))
    named = f"{relation} of {node}" if node else relation
    if isinstance(test, Comparison):
        text = f"{named} {_value_words(graph, test)}"
    elif test is None:
        if condition.negated:
            return f"there is no {named}"
        text = f"there is {relation}" + (f" of {node}" if node else "")
    elif len(steps) == 1 and steps[0].direction == "in":
        text = f"{_entity(graph, test)} has {relation}: {node or 'it'}"
    else:
        text = f"{node} has {relation}: {_entity(graph, test)}".strip()
    return f"it is not true that {text}" if condition.negated else text


def operation_words(graph: ExportableGraph, operation: Operation, path: Sequence[Step]) -> str:
    """Return an operation in words, such as: Of these, take the one with the most “river length”, ...

    Args:
        path: the steps of the path. An operation without steps is on the nodes of the path, and is worded by the step
            that leads to them.
    """
    steps = operation.steps or path[: operation.at][-1:]
    relation = " of ".join(_relation(graph, step) for step in reversed(steps))
    topics = " and ".join(_entity(graph, topic) for topic in operation.topics)
    if operation.kind in operation.returns_ends:
        which = extreme_words(operation.kind, operation.scale, operation.counted)
        return f"Of {topics or 'these'}, " + TAKEN.format(RANKS[operation.rank - 1], which, relation)
    if operation.kind == "difference":
        return f"{DIFFERENCE} {relation} of {topics}."
    return {
        "count": f"{COUNT} ?answer.",
        "exists": f"{EXISTS}?",
        "sum": f"{SUM} {relation}.",
        "average": f"{AVERAGE} {relation}.",
    }[operation.kind]


def node_variable(at: int, length: int) -> str:
    """Return the variable of a node in the exported query of a path of this length: ?e1, ..., ?answer."""
    return "?answer" if at == length else f"?e{at}"


def all_words(
    graph: ExportableGraph, conditions: Sequence[Condition], operation: Operation | None, path: Sequence[Step]
) -> tuple[tuple[str, ...], str]:
    """Return the conditions on a path with these steps and the operation in words; "" for no operation."""
    words = tuple(condition_words(graph, each, node_variable(each.at, len(path))) for each in conditions)
    return words, operation_words(graph, operation, path) if operation else ""


def _value_words(graph: ExportableGraph, test: Comparison) -> str:
    value = test.value.value
    if test.scale == "text":
        return f"{COMPARED[test.operator]} “{clean(value)}”"
    return f"is {number_words(test.operator, value) if test.scale == 'number' else time_words(test.operator, value)}"


def _relation(graph: ExportableGraph, step: Step) -> str:
    return f"“{clean(short_words(step.relation, graph.schema, graph.tables.relation_labels))}”"


def _entity(graph: ExportableGraph, entity: Entity | None) -> str:
    if entity is None:
        return "anything"
    label, short = graph.labels([entity]).get(entity), clean(graph.schema.short_id(entity.iri))
    return f"{clean(label)} ({short})" if label else short
