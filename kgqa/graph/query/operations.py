"""Operations on the ends of a path as one query: counts, extremes, yes or no, sums, averages and differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from kgqa.graph.query.pattern_text import comparison_key, edges_text, is_comparable, nested_text, values_clause
from kgqa.graph.query.patterns import DOUBLE, INTEGER, Edge, Node, PathPattern, edges_along
from kgqa.graph.query.templates import Comment, Part, Variable, render, render_term
from kgqa.model import Entity
from kgqa.model.conditions import XSD, Operation


@dataclass(frozen=True, slots=True)
class ValueBlock:
    """A pattern that gives the ends of a path and, for each, a value. The properties are its parts as SPARQL text.

    Attributes:
        walk: the path; None if the ends are `topics`.
        topics: the compared entities.
        end: the end of the path.
        steps: triple patterns from the end to the value.
        value: the value, before it is converted.
        scale: how values are converted; see `comparison_key`. Empty if they are counted.
        key: the variable of the converted value, or of the number of values.
        best: the variable of the largest or smallest key.
    """

    walk: PathPattern | None
    topics: tuple[Entity, ...]
    end: Node
    steps: tuple[Edge, ...]
    value: Node
    scale: str
    key: Variable
    best: Variable

    @property
    def pattern(self) -> Part:
        """The pattern of the ends and their values."""
        ends = nested_text(self.walk) if self.walk else f"  {values_clause(self.end, self.topics)}"
        return Part(f"{ends}\n{self.edges}")

    @property
    def edges(self) -> Part:
        """The pattern from an end to its value."""
        return edges_text(self.steps)

    @property
    def converted(self) -> Part:
        """The expression of the value as a number."""
        return comparison_key(self.value, self.scale, _CASTS[self.scale])

    @property
    def is_comparable(self) -> Part:
        """The expression for whether the value can be converted."""
        return is_comparable(self.value, self.scale)

    @property
    def keyed(self) -> Part:
        """The subquery of the ends and their keys."""
        end, key = render_term(self.end), render_term(self.key)
        if self.scale:
            filter_line = f"\n  FILTER({self.is_comparable})"
            selected, grouped = f"DISTINCT {end} ({self.converted} AS {key})", ""
        else:
            filter_line = ""
            selected, grouped = f"{end} (COUNT(DISTINCT {render_term(self.value)}) AS {key})", f" GROUP BY {end}"
        tail = f"}}{grouped} }}"
        return Part(f"  {{ SELECT {selected} WHERE {{\n{self.pattern}{filter_line}\n  {tail}")


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
    scale = "decimal"  # exact; doubles if too large
    if operation.kind in operation.returns_ends:
        scale = "" if operation.counted else "number" if operation.scale == "number" else "date"
    block = ValueBlock(
        walk,
        operation.topics,
        end,
        edges_along(start, operation.steps, values),
        values[-1] if values else start,
        scale,
        Variable("key"),
        Variable("best"),
    )
    if operation.kind == "difference":
        first, second = operation.topics
        block = replace(block, steps=edges_along(first, operation.steps, values))
        blocks = [_renamed(replace(block, steps=edges_along(second, operation.steps, values)), "_2")]
    else:
        blocks = [_renamed(block, f"_{number}") for number in range(1, operation.rank + 1)]
    return render(f"answer_{_TEMPLATES[operation.kind]}", view=view, comments=comments, block=block, blocks=blocks,
                  kind=operation.kind, double=DOUBLE)  # fmt: skip


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
