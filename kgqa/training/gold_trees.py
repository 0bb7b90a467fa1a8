"""The triples of a gold query as a tree of variables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.model import Entity, Literal, Step
from kgqa.model.conditions import Comparison
from kgqa.training.gold_groups import Untranslatable, is_variable


@dataclass(frozen=True, slots=True)
class Branch:
    """What hangs on a node: an edge to another node, and the branches on that node."""

    edge: tuple[Step, Any]
    rest: tuple[Branch, ...] = ()

    @property
    def node(self) -> Any:
        return self.edge[1]

    def __contains__(self, node: Any) -> bool:
        return node == self.node or any(node in branch for branch in self.rest)

    def way_to(self, node: Any) -> tuple[Step, ...]:
        """Return the steps to a node of the branch, on which nothing else may hang."""
        if node == self.node:
            if self.rest:
                raise Untranslatable("several conditions on a node beside the path")
            return (self.edge[0],)
        if len(self.rest) > 1:
            raise Untranslatable("several conditions on a node beside the path")
        return (self.edge[0], *self.rest[0].way_to(node))


class Tree:
    """The triples of a query as a graph; every use of an entity or literal is a node of its own.

    Attributes:
        entities: IRIs of the entities next to variables.
        size: number of triples.

    Raises:
        Untranslatable: a triple has no variable, so it belongs to no path.
    """

    def __init__(self, edges: Sequence[tuple[Any, Step, Any]], fixed: dict[Any, str]) -> None:
        from rdflib import URIRef

        self.entity = URIRef
        self._edges: dict[Any, list[tuple[Step, Any]]] = {}
        self.entities: list[str] = []
        self._starts: list[tuple[str, Step, Any]] = []
        self._pairs = 0
        self.size = 0
        placed = ((_placed(s, fixed, URIRef), step, _placed(o, fixed, URIRef)) for s, step, o in edges)
        for subject, step, value in dict.fromkeys(placed):
            self.size += 1
            if not is_variable(subject) and not is_variable(value):
                raise Untranslatable("fact without a variable")
            pair = is_variable(subject) + is_variable(value)
            self._pairs += pair == 2
            for here, there, way in ((subject, value, step), (value, subject, step.reversed())):
                if is_variable(here):
                    self._edges.setdefault(here, []).append((way, there))
                elif isinstance(here, URIRef) and is_variable(there):
                    self.entities.append(str(here))
                    self._starts.append((str(here), way, there))

    def check(self, answer: Any) -> None:
        """Raise `Untranslatable` if the variables form no tree, or the answer is not in it."""
        if answer not in self._edges:
            raise Untranslatable("no path to the answer")
        if len(self.connected(answer)) < len(self._edges):
            raise Untranslatable("unconnected parts")
        if self._pairs >= len(self._edges):
            raise Untranslatable("cycle")

    def connected(self, variable: Any) -> set[Any]:
        """Return the variables that are connected with a variable, itself included."""
        seen, left = {variable}, [variable]
        while left:
            for _, there in self._edges.get(left.pop(), ()):
                if is_variable(there) and there not in seen:
                    seen.add(there)
                    left.append(there)
        return seen

    def starts(self, topic: str) -> list[tuple[Step, Any]]:
        """Return the edges from an entity."""
        return [(step, node) for entity, step, node in self._starts if entity == topic]

    def path(self, start: tuple[Step, Any], goal: Any) -> tuple[tuple[Step, ...], list[Any]]:
        """Return the steps along a first edge and on to a node, and the nodes on the way."""
        left: list[tuple[tuple[Step, ...], list[Any]]] = [((start[0],), [start[1]])]
        while left:
            steps, nodes = left.pop()
            if nodes[-1] == goal:
                return steps, nodes
            left += [
                ((*steps, step), [*nodes, there])
                for step, there in self._edges[nodes[-1]]
                if is_variable(there) and there not in nodes
            ]
        raise Untranslatable("no path to the answer")

    def branches(self, node: Any, came_from: Any = None) -> list[Branch]:
        """Return what hangs on a node, except the way to `came_from`."""
        return [
            Branch((step, there), tuple(self.branches(there, node)) if is_variable(there) else ())
            for step, there in self._edges.get(node, ())
            if there is not came_from and there != came_from
        ]


def _placed(term: Any, fixed: dict[Any, str], entity: Callable[[str], Any]) -> Any:
    return entity(fixed[term]) if term in fixed else term


def chains(
    branch: Branch,
    comparisons: Mapping[Any, Sequence[Comparison]],
    values: Mapping[Any, str],
    others: Collection[Any],
) -> Iterator[tuple[tuple[Step, ...], Entity | Comparison | None]]:
    """Yield the way along a branch without forks and each test of the value at its end; None if any value will do.

    Args:
        values: the entity that a variable must be.
        others: variables with other conditions.
    """
    way: tuple[Step, ...] = (branch.edge[0],)
    while branch.rest:
        if len(branch.rest) > 1 or branch.node in {*comparisons, *values, *others}:
            raise Untranslatable("several conditions on a node beside the path")
        branch = branch.rest[0]
        way = (*way, branch.edge[0])
    node = branch.node
    if node in others:
        raise Untranslatable("several conditions on a node beside the path")
    if not is_variable(node):
        yield way, Entity(str(node)) if type(node).__name__ == "URIRef" else Comparison("=", Literal(str(node)))
    else:
        tests = [*comparisons.get(node, ()), *([Entity(values[node])] if node in values else ())]
        yield from ((way, test) for test in tests or [None])
