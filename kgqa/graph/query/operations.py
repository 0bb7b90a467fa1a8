"""Operations on the ends of a path as one query: counts, extremes, yes or no, sums, averages and differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from kgqa.graph.query.patterns import DOUBLE, INTEGER, Edge, Node, PathPattern, edges_along
from kgqa.graph.query.templates import Comment, Variable, render
from kgqa.model import Entity
from kgqa.model.conditions import XSD, Operation


@dataclass(frozen=True, slots=True)
class ValueBlock:
    """A pattern that gives the ends of a path and, for each, a value.

    Attributes:
        walk: the path; None if the ends are `topics`.
        topics: the compared entities.
        end: the end of the path.
        edges: triple patterns from the end to the value.
        value: the value, before it is converted.
        key: the variable of the converted value, or of the number of values.
        best: the variable of the largest or smallest key.
    """

    walk: PathPattern | None
    topics: tuple[Entity, ...]
    end: Node
    edges: tuple[Edge, ...]
    value: Node
    key: Variable
    best: Variable


def operation_query(
    operation: Operation, walk: PathPattern | None, *, view: Sequence[Entity], comments: Sequence[Comment]
) -> str:
    """Return the query whose result is the answer of an operation: an ASK query for `exists`, otherwise a SELECT query.

    Args:
        walk: the pattern of the path; None if the operation compares topics.

    Raises:
        ValueError: the operation is on a node that the path does not have.
    """
    end = Variable("answer") if walk is None else walk.end
    start = end
    if operation.at is not None:
        if walk is None or not 0 < operation.at < len(walk.nodes):
            raise ValueError("an operation is on a node that the path does not have")
        start = walk.nodes[operation.at]
        walk = replace(walk, kept=(start,))
    values = [Variable(f"value{index}") for index in range(1, len(operation.steps) + 1)]
    block = ValueBlock(
        walk,
        operation.topics,
        end,
        edges_along(start, operation.steps, values),
        values[-1] if values else start,
        Variable("key"),
        Variable("best"),
    )
    if operation.kind == "difference":
        first, second = operation.topics
        block = replace(block, edges=edges_along(first, operation.steps, values))
        blocks = [_renamed(replace(block, edges=edges_along(second, operation.steps, values)), "_2")]
    else:
        blocks = [_renamed(block, f"_{number}") for number in range(1, operation.rank + 1)]
    extreme = "number" if operation.scale == "number" else "date"
    scale = extreme if operation.kind in operation.returns_ends else "decimal"  # exact; doubles if too large
    return render(f"answer_{_TEMPLATES[operation.kind]}", view=view, comments=comments, block=block, blocks=blocks,
                  kind=operation.kind, scale=scale, counted=operation.counted, number=_CASTS[scale],
                  double=DOUBLE)  # fmt: skip


_CASTS = {"number": DOUBLE, "decimal": Entity(XSD + "decimal"), "date": INTEGER}
_TEMPLATES = {
    "count": "count", "exists": "exists", "most": "extreme", "least": "extreme",
    "sum": "total", "average": "total", "difference": "difference",
}  # fmt: skip


def _renamed(value: Any, suffix: str) -> Any:
    """Append a suffix to the name of every variable, so that a pattern can be used a second time in a query."""
    if isinstance(value, Variable):
        return replace(value, name=value.name + suffix)
    if isinstance(value, tuple):
        return type(value)(_renamed(each, suffix) for each in value)
    if isinstance(value, Comment):
        return None  # the first use has the comments
    if is_dataclass(value) and not isinstance(value, (type, Entity)):
        changed = {field.name: _renamed(getattr(value, field.name), suffix) for field in fields(value)}
        return replace(value, **changed)
    return value
