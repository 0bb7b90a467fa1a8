"""Conditions, operations and whole exported queries in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kgqa.graph.query.patterns import Node, PathPattern
from kgqa.model import Candidate, Entity, Step
from kgqa.model.conditions import Comparison, Condition, Operation
from kgqa.schema import Schema
from kgqa.text.words import clean, short_words

COMPARED = {
    "=": "is", "!=": "is not", "<": "is less than", ">": "is greater than", "<=": "is at most", ">=": "is at least",
}  # fmt: skip
_IN_TIME = {"=": "is {}", "!=": "is not {}", "<": "is before", "<=": "is {} or before", ">": "is after",
            ">=": "is {} or after"}  # fmt: skip
_RANKS = ("", "second ", "third ", *(f"{number}th " for number in range(4, 11)))
_BEST = {"most": ("most", "latest", "most"), "least": ("least", "earliest", "fewest")}
"""The words for the best number, date and count."""


class ExportableGraph(Protocol):
    """The part of `KnowledgeGraph` that the export needs."""

    schema: Schema
    tables: Any
    paths: Any
    queries: Any

    def labels(self, entities: Sequence[Entity]) -> dict[Entity, str]: ...


def condition_words(graph: ExportableGraph, condition: Condition, length: int) -> str:
    """Return a condition in words, such as “government position held from” of ?e1 is in or before 1962.

    Args:
        length: the number of steps of the path; its last node is ?answer.
    """
    test, steps = condition.test, condition.steps
    node = "?answer" if condition.at == length else f"?e{condition.at}"
    relation = relations_words(graph, steps)
    if test is None:
        return f"there is {'no ' if condition.negated else ''}{relation} of {node}"
    if not steps:
        tested = _value_words(test) if isinstance(test, Comparison) else f"is {node_words(graph, test)}"
        return f"{node} {tested.replace('is ', 'is not ', 1) if condition.negated else tested}"
    if isinstance(test, Comparison):
        text = f"{relation} of {node} {_value_words(test)}"
    elif len(steps) == 1 and steps[0].direction == "in":
        text = f"{node_words(graph, test)} has {relation}: {node}"
    else:
        text = f"{node} has {relation}: {node_words(graph, test)}"
    return f"it is not true that {text}" if condition.negated else text


def operation_words(graph: ExportableGraph, operation: Operation, path: Sequence[Step]) -> str:
    """Return an operation in words, such as: Of these, take the one with the most “river length”, ...

    Args:
        path: the steps of the path. An operation without steps is on the nodes of the path, and is worded by the step
            that leads to them.
    """
    relation = relations_words(graph, operation.steps or path[: operation.at][-1:])
    topics = " and ".join(node_words(graph, topic) for topic in operation.topics)
    if operation.kind in operation.returns_ends:
        best = _BEST[operation.kind][2 if operation.counted else operation.scale == "day"]
        rank = _RANKS[operation.rank - 1]
        return f"Of {topics or 'these'}, take the one with the {rank}{best} {relation}, or those that are equal."
    return {
        "count": "Count every different ?answer.",
        "exists": "Is there anything?",
        "sum": f"Add up {relation}.",
        "average": f"Find the average of {relation}.",
        "difference": f"Find the difference between {relation} of {topics}.",
    }[operation.kind]


def all_words(graph: ExportableGraph, candidate: Candidate) -> tuple[tuple[str, ...], str]:
    """Return the conditions and the operation of a candidate in words; "" for no operation."""
    path, operation = candidate.path, candidate.operation
    words = tuple(condition_words(graph, each, len(path)) for each in candidate.conditions)
    return words, operation_words(graph, operation, path.steps) if operation else ""


def query_words(graph: ExportableGraph, candidate: Candidate, walk: PathPattern | None) -> list[str]:
    """Return what an exported query asks for: a first line, numbered conditions, and a last line for an extreme.

    Args:
        walk: the pattern of the path; None if an operation compares topics.
    """
    conditions, computed = all_words(graph, candidate)
    if walk is None:
        return [computed]
    details = [(at, _selection_words(graph, walk.nodes[at], chosen)) for at, chosen in candidate.restricted]
    details += [(at, line) for at, join in walk.joins for line in _walk_words(graph, join)]
    details += [(condition.at, words) for condition, words in zip(candidate.conditions, conditions)]
    lines = [f"{number}. {text}" for number, text in enumerate(_walk_words(graph, walk, details), 1)]
    if candidate.operation and candidate.operation.is_computed:
        return [f"{computed.rstrip('.?')} such that", *lines]
    return ["Find every ?answer such that", *lines, *([computed] if computed else [])]


def _selection_words(graph: ExportableGraph, node: Node, chosen: Sequence[Entity]) -> str:
    names = ", ".join(node_words(graph, each) for each in chosen)
    return f"{node_words(graph, node)} is {'one of: ' if len(chosen) > 1 else ''}{names}, selected by a model"


def _walk_words(graph: ExportableGraph, walk: PathPattern, details: Sequence[tuple[int, str]] = ()) -> list[str]:
    """Return one line for each edge, and the details of the node to which it leads."""
    lines = []
    for at, (subject, relation, object_) in enumerate(walk.edges, start=1):
        here = walk.nodes[at]
        others = " or ".join(node_words(graph, other) for node, other in walk.different if node == here)
        where = f", where {node_words(graph, here)} is not {others}" if others else ""
        named = relations_words(graph, [Step(relation.iri)])
        lines.append(f"{node_words(graph, subject)} has {named}: {node_words(graph, object_)}{where}")
        lines += [words for place, words in details if place == at]
    return [*lines, f"{node_words(graph, walk.end)} is not a mediator"] if walk.not_mediator else lines


def _value_words(test: Comparison) -> str:
    value = test.value.value
    if test.scale in ("text", "number"):
        return f"{COMPARED[test.operator]} {value if test.scale == 'number' else f'“{clean(value)}”'}"
    preposition = "on" if test.scale == "day" else "in"
    return f"{_IN_TIME[test.operator].format(preposition)} {value}"


def relations_words(graph: ExportableGraph, steps: Sequence[Step]) -> str:
    """Return the relations on the way to a value in words, such as “length” of “river mouth”."""
    words = (short_words(step.relation, graph.schema, graph.tables.relation_labels) for step in reversed(steps))
    return " of ".join(f"“{clean(each)}”" for each in words)


def node_words(graph: ExportableGraph, node: Node) -> str:
    """Return a variable, or an entity by its label and id."""
    if not isinstance(node, Entity):
        return f"?{node.name}"
    label, short = graph.labels([node]).get(node), clean(graph.schema.short_id(node.iri))
    return f"{clean(label)} ({short})" if label else short
