"""Relation paths as SPARQL graph patterns: edges, and filters on the walks along them.

Exploration, the ends of a path and the exported query use the same pattern, and therefore agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kgqa.graph.query.templates import Variable
from kgqa.model import Entity, Join, Literal, RelationPath, Step, Value
from kgqa.model.conditions import XSD, Comparison, Condition
from kgqa.settings.table import WalkRule

Node = Entity | Variable
DOUBLE, INTEGER = Entity(XSD + "double"), Entity(XSD + "integer")
CASTS = {"number": DOUBLE, "year": INTEGER, "month": INTEGER, "day": INTEGER, "date": INTEGER}
Restrictions = tuple[tuple[int, tuple[Entity, ...]], ...]
"""Pairs of a node's index in a path (1: the node after the topic) and the only entities that this node may be."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A triple pattern."""

    subject: Node
    relation: Entity
    object: Node


@dataclass(frozen=True, slots=True)
class TypeTest:
    """A test that a node does not have a type. `predicate` links a node to its types."""

    predicate: Entity
    type: Entity


@dataclass(frozen=True, slots=True)
class MarkTest:
    """A test that no type of a node has the property `marker` with this value.

    `predicate` links a node to its types.
    """

    predicate: Entity
    marker: Entity
    value: Value


@dataclass(frozen=True, slots=True)
class NodeTest:
    """A condition on a node: the edges to the tested value, and a filter on it.

    Attributes:
        edges: triple patterns from the node to the tested value; the last ends in the entity that is asked for.
        tested: the tested value.
        negated: whether there must be no such value.
        operator, scale, value: the comparison; empty if there is none. A month or day is a number, such as 196705.
        cast: the datatype to which texts are converted.
    """

    edges: tuple[Edge, ...]
    tested: Node
    negated: bool = False
    operator: str = ""
    scale: str = ""
    value: Value | None = None
    cast: Entity | None = None


@dataclass(frozen=True, slots=True)
class PathPattern:
    """The pattern of a relation path.

    Attributes:
        nodes: the nodes from the topic to the end.
        edges: one triple pattern per step.
        different: pairs of nodes that must differ.
        restricted: the only entities that some inner nodes may be.
        joins: patterns of other paths, each with the index of the node where that path must end.
        tests: conditions, each with the index of its node.
        kept: inner nodes that the query needs beside the end.
        not_prefixed: IRI prefixes of mediators; nodes with these prefixes are not ends of the path.
        not_typed: tests that keep nodes of mediator types out of the ends.
        not_marked: tests that keep nodes whose type is marked as a mediator type out of the ends.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    different: tuple[tuple[Node, Node], ...] = ()
    restricted: Restrictions = ()
    joins: tuple[tuple[int, PathPattern], ...] = ()
    tests: tuple[tuple[int, NodeTest], ...] = ()
    kept: tuple[Node, ...] = ()
    not_prefixed: tuple[Literal, ...] = ()
    not_typed: tuple[TypeTest, ...] = ()
    not_marked: tuple[MarkTest, ...] = ()

    @property
    def end(self) -> Node:
        """The last node."""
        return self.nodes[-1]


def returns(step: Step, previous: Step, inverse: Callable[[str], str | None]) -> bool:
    """Return whether `step` can go back over the edge of `previous`.

    A step goes back by the same relation in the opposite direction, or by the inverse relation in the same direction.
    """
    if step.direction != previous.direction:
        return step.relation == previous.relation
    return inverse(previous.relation) == step.relation or inverse(step.relation) == previous.relation


def path_pattern(
    path: RelationPath,
    rule: WalkRule,
    *,
    inverse: Callable[[str], str | None],
    final: bool = True,
    end: Node | None = None,
    prefix: str = "e",
) -> PathPattern:
    """Build the pattern of a path under a walk rule.

    - `free`: any walk.
    - `topic-not-end`: the last node is not the topic (only if `final`).
    - `topic-never`: no node after the first is the topic.
    - `no-return`: a step that can go back over the previous edge must not lead back to the node before that edge.

    Args:
        inverse: returns the reverse property of a relation, or None.
        final: whether the last node is an answer (True) or an inner node (False).
        end: the last node; None for a new variable.
        prefix: the prefix of the variables of inner nodes.
    """
    count = len(path.steps)
    names: list[Node] = [path.topic]
    names += [Variable(f"{prefix}{index}") for index in range(1, count)]
    if count:
        names.append(end or Variable("answer" if final else f"{prefix}{count}"))
    different: list[tuple[Node, Node]] = []
    if rule == "topic-never":
        different = [(node, path.topic) for node in names[1:]]
    elif rule == "topic-not-end" and final and count:
        different = [(names[-1], path.topic)]
    elif rule == "no-return":
        different = [
            (names[index + 2], names[index])
            for index in range(count - 1)
            if returns(path.steps[index + 1], path.steps[index], inverse)
        ]
    return PathPattern(tuple(names), edges_along(path.topic, path.steps, names[1:]), tuple(different))


def joined_pattern(
    path: RelationPath,
    joins: Sequence[Join],
    restricted: Restrictions,
    rule: WalkRule,
    *,
    inverse: Callable[[str], str | None],
    conditions: Sequence[Condition] = (),
) -> PathPattern:
    """Build the pattern of a path whose nodes are restricted, meet other paths, and fulfil conditions.

    Raises:
        ValueError: the path of a join has no steps, or a join or condition is not at a node after the topic.
    """
    walk = path_pattern(path, rule, inverse=inverse)
    if any(not 0 < join.at <= len(path) or not join.path.steps for join in joins):
        raise ValueError("a join needs a path with at least one step, and a node after the topic")
    met = [
        (join.at, path_pattern(join.path, rule, inverse=inverse, end=walk.nodes[join.at], prefix=f"j{number}_"))
        for number, join in enumerate(joins, start=1)
    ]
    if not (met or restricted or conditions):
        return walk
    return replace(walk, joins=tuple(met), restricted=restricted, tests=node_tests(conditions, walk.nodes))


def node_tests(conditions: Sequence[Condition], nodes: Sequence[Node]) -> tuple[tuple[int, NodeTest], ...]:
    """Return the conditions as tests of the nodes of a walk, each with the index of its node.

    Raises:
        ValueError: the walk has no node at the place of a condition.
    """
    found = []
    for number, condition in enumerate(conditions, start=1):
        if condition.at >= len(nodes):
            raise ValueError("a condition is on a node that the path does not have")
        values: list[Node] = [Variable(f"c{number}_{index}") for index in range(1, len(condition.steps) + 1)]
        start, test = nodes[condition.at], condition.test
        if isinstance(test, Entity) and values:
            values[-1] = test
        tested = values[-1] if values else start
        edges = edges_along(start, condition.steps, values)
        if isinstance(test, Comparison):
            scale, shown = _compared(test)
            each = NodeTest(edges, tested, condition.negated, test.operator, scale, Literal(shown), CASTS.get(scale))
        elif isinstance(test, Entity) and not values:
            each = NodeTest((), tested, operator="!=" if condition.negated else "=", scale="entity", value=test)
        else:
            each = NodeTest(edges, tested, condition.negated)
        found.append((condition.at, each))
    return tuple(found)


def _compared(test: Comparison) -> tuple[str, str]:
    """Return the scale on which a query compares, and the text of the number or text that values are compared with."""
    if test.scale not in ("month", "day"):
        return test.scale, test.value.value
    number = _digits(test.value)
    if test.operator in ("=", "!="):
        return test.scale, str(number)
    if test.scale == "month":
        number = 100 * number + (99 if test.operator in ("<=", ">") else 0)  # the end or the beginning of the month
    return "date", str(number)


def _digits(date: Literal) -> int:
    """Return a month or day as a number in the order of time: the year, and two digits each for month and day."""
    year, *rest = date.value[1:].split("-")  # the first character may be a minus
    return int(date.value[0] + year) * (100 if len(rest) == 1 else 10000) + int("".join(rest))


def edges_along(start: Node, steps: Sequence[Step], nodes: Sequence[Node]) -> tuple[Edge, ...]:
    """Return one triple pattern for each step, from `start` through `nodes`."""
    return tuple(
        Edge(here, Entity(step.relation), there)
        if step.direction == "out"
        else Edge(there, Entity(step.relation), here)
        for step, here, there in zip(steps, (start, *nodes), nodes)
    )
