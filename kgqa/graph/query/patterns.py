"""A relation path as a SPARQL graph pattern: its edges, and the filters its walks must pass.

The same pattern serves exploration, ends and the exported query, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from kgqa.graph.query.templates import Comment, Variable
from kgqa.model import Entity, Literal, RelationPath, Step, Value
from kgqa.schema import WalkRule

Node = Entity | Variable
Restrictions = tuple[tuple[int, tuple[Entity, ...]], ...]
"""For nodes of a path (1 is the node after the topic) the only entities that they may be."""


@dataclass(frozen=True, slots=True)
class Edge:
    subject: Node
    relation: Entity
    object: Node
    comment: Comment | None = None


@dataclass(frozen=True, slots=True)
class TypeTest:
    predicate: Entity
    type: Entity


@dataclass(frozen=True, slots=True)
class MarkTest:
    predicate: Entity
    marker: Entity
    value: Value


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop of a pattern: its edge, the tests its node must pass, the entities it is restricted to (none: any),
    the walks that must lead to it as well, and the nodes that later hops need.
    """

    edge: Edge
    different: tuple[tuple[Node, Node], ...]
    values: tuple[Entity, ...]
    joins: tuple[PathPattern, ...]
    keep: tuple[Node, ...]


@dataclass(frozen=True)
class PathPattern:
    """A pattern. `nodes` runs from the topic to the end; `different` holds pairs that must not be equal;
    `restricted` the only entities that some inner nodes may be, by the node's place; `joins` walks from other topics
    that must lead to the node at a place as well; the last three keep mediators out of the ends where a
    relation leads to both mediators and entities.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    different: tuple[tuple[Node, Node], ...] = ()
    restricted: Restrictions = ()
    joins: tuple[tuple[int, PathPattern], ...] = ()
    not_prefixed: tuple[Literal, ...] = ()
    not_typed: tuple[TypeTest, ...] = ()
    not_marked: tuple[MarkTest, ...] = ()

    @property
    def end(self) -> Node:
        return self.nodes[-1]

    @cached_property
    def levels(self) -> tuple[Hop, ...]:
        """The pattern hop by hop, for queries that make each hop's nodes distinct before they go on: on hubs
        the number of walks grows with every hop, that of distinct nodes does not.
        """
        levels = []
        values = dict(self.restricted)
        for index, edge in enumerate(self.edges, start=1):
            later = self.nodes[index + 1 :]
            needed = {right for left, right in self.different if left in later}
            keep = [node for node in self.nodes[1:index] if node in needed]
            tests = tuple(pair for pair in self.different if pair[0] == self.nodes[index])
            joins = tuple(walk for place, walk in self.joins if place == index)
            levels.append(Hop(edge, tests, values.get(index, ()), joins, (*keep, self.nodes[index])))
        return tuple(levels)

    @cached_property
    def subqueries(self) -> tuple[Hop, ...]:
        """The levels that need a sub-query, outermost first, which is the order of opening them. The last needs
        none, nor does the first: what one relation of the topic leads to is distinct as it is.
        """
        return tuple(reversed(self.levels[1:-1]))


def returns(step: Step, previous: Step, inverse: Callable[[str], str | None]) -> bool:
    """Whether `step` can go back over the edge that `previous` came by: the same relation the other way, or
    the inverse relation the same way.
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
    end: Variable | None = None,
    prefix: str = "e",
) -> PathPattern:
    """The pattern of a path under a walk rule, node by node:

    - `free`: any walk;
    - `topic-not-end`: the last node is not the topic (only if `final`: an inner node may be);
    - `topic-never`: no node after the first is the topic;
    - `no-return`: a step that can go back over the edge just taken must lead to another node.

    Args:
        end: the variable of the last node, where it is not a name of its own.
        prefix: what the names of the inner nodes begin with.
    """
    count = len(path.steps)
    names: list[Node] = [path.topic]
    names += [Variable(f"{prefix}{index}") for index in range(1, count)]
    if count:
        names.append(end or Variable("answer" if final else f"{prefix}{count}"))
    edges = []
    for index, step in enumerate(path.steps):
        here, there = names[index], names[index + 1]
        subject, object_ = (here, there) if step.direction == "out" else (there, here)
        edges.append(Edge(subject, Entity(step.relation), object_))
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
    return PathPattern(tuple(names), tuple(edges), tuple(different))
