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


def condition_words(graph: ExportableGraph, condition: Condition, node: str = "") -> str:
    """Return a condition in words, such as “government position held from” of ?e1 is in or before 1962.

    Args:
        node: the variable of the condition's node in the query, such as ?e1; empty to leave the node out.
    """
    test, steps = condition.test, condition.steps
    if not steps:
        words = _value_words(test) if isinstance(test, Comparison) else f"is {_entity(graph, test)}"
        words = words.replace("is ", "is not ", 1) if condition.negated else words
        return f"{node} {words}".strip()
    relation = _relations(graph, steps)
    named = f"{relation} of {node}" if node else relation
    if isinstance(test, Comparison):
        text = f"{named} {_value_words(test)}"
    elif test is None:
        return f"there is {'no ' if condition.negated else ''}{named}"
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
    relation = _relations(graph, operation.steps or path[: operation.at][-1:])
    topics = " and ".join(_entity(graph, topic) for topic in operation.topics)
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


def all_words(
    graph: ExportableGraph, conditions: Sequence[Condition], operation: Operation | None, path: Sequence[Step]
) -> tuple[tuple[str, ...], str]:
    """Return the conditions on a path with these steps and the operation in words; "" for no operation."""
    words = tuple(condition_words(graph, each, node_variable(each.at, len(path))) for each in conditions)
    return words, operation_words(graph, operation, path) if operation else ""


def node_variable(at: int, length: int) -> str:
    """Return the variable of a node in the exported query of a path of this length: ?e1, ..., ?answer."""
    return "?answer" if at == length else f"?e{at}"


def query_words(graph: ExportableGraph, candidate: Candidate, walk: PathPattern | None) -> list[str]:
    """Return what an exported query asks for: a first line, numbered conditions, and a last line for an extreme.

    Args:
        walk: the pattern of the path; None if an operation compares topics.
    """
    operation = candidate.operation
    computed = operation_words(graph, operation, candidate.path.steps) if operation else ""
    if walk is None:
        return [computed]
    extreme = operation is None or operation.kind in operation.returns_ends
    head = "Find every ?answer" if extreme else computed.rstrip(".?")
    lines = [f"{number}. {text}" for number, text in enumerate(_walk_words(graph, walk, candidate.conditions), 1)]
    return [f"{head} such that", *lines, *([computed] if extreme and computed else [])]


def _walk_words(graph: ExportableGraph, walk: PathPattern, conditions: Sequence[Condition] = ()) -> list[str]:
    chosen = dict(walk.restricted)
    lines: list[str] = []
    for at, (subject, relation, object_) in enumerate(walk.edges, start=1):
        here = _node(graph, walk.nodes[at])
        named = short_words(relation.iri, graph.schema, graph.tables.relation_labels)
        others = [_node(graph, other) for node, other in walk.different if node == walk.nodes[at]]
        where = f", where {here} is not {' or '.join(others)}" if others else ""
        lines.append(f"{_node(graph, subject)} has “{clean(named)}”: {_node(graph, object_)}{where}")
        if entities := chosen.get(at):
            one = "" if len(entities) == 1 else "one of: "
            lines.append(f"{here} is {one}{', '.join(_entity(graph, e) for e in entities)}, selected by a model")
        lines += [line for place, join in walk.joins if place == at for line in _walk_words(graph, join)]
        lines += [condition_words(graph, each, here) for each in conditions if each.at == at]
    if walk.not_mediator:
        lines.append(f"{_node(graph, walk.end)} is not a mediator")
    return lines


def _value_words(test: Comparison) -> str:
    value = test.value.value
    if test.scale in ("text", "number"):
        return f"{COMPARED[test.operator]} {value if test.scale == 'number' else f'“{clean(value)}”'}"
    preposition = "on" if test.scale == "day" else "in"
    return f"{_IN_TIME[test.operator].format(preposition)} {value}"


def _relations(graph: ExportableGraph, steps: Sequence[Step]) -> str:
    words = (short_words(step.relation, graph.schema, graph.tables.relation_labels) for step in reversed(steps))
    return " of ".join(f"“{clean(each)}”" for each in words)


def _node(graph: ExportableGraph, node: Node) -> str:
    return _entity(graph, node) if isinstance(node, Entity) else f"?{node.name}"


def _entity(graph: ExportableGraph, entity: Entity | None) -> str:
    if entity is None:
        return "anything"
    label, short = graph.labels([entity]).get(entity), clean(graph.schema.short_id(entity.iri))
    return f"{clean(label)} ({short})" if label else short
