"""Walks along a path as rows, each with the fields of its nodes: what is known of a mediator and of the answer.

Conditions are found among the fields: a mediator between a series and an actor has the fields "actor" and "character".
The types of an end are fields, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Named, RelationPath, Step, Value
from kgqa.words import normalise, type_words

MAX_WALKS = 60
MAX_VALUES = 8
"""Most values of a field that are read per node."""
MAX_NAMED = 400
"""Most nodes whose names are looked up for the fields of one path."""

FieldKey = tuple[int, tuple[Step, ...]]
"""The index of a node in a walk, and the way from the node to the field's values."""


@dataclass(frozen=True, slots=True)
class Field:
    """One property of a node in a walk.

    `at`: the node's index in the walk; 0 is the topic. `steps`: the way from the node to the values, one step, or two
    through a mediator. `values`: the values, at most `MAX_VALUES`.
    """

    at: int
    steps: tuple[Step, ...]
    values: tuple[Named, ...]

    @property
    def key(self) -> FieldKey:
        """Which property it is; the same in all rows of a path."""
        return self.at, self.steps


@dataclass(frozen=True, slots=True)
class Row:
    """A walk along a path, from the topic to an end, and the fields of its mediators and its end."""

    walk: tuple[Named, ...]
    fields: tuple[Field, ...]

    @property
    def end(self) -> Named:
        """The last node of the walk."""
        return self.walk[-1]


@dataclass(frozen=True, slots=True)
class PathRows:
    """Rows of one path. `complete`: whether these are all walks along the path."""

    candidate: Candidate
    rows: tuple[Row, ...]
    complete: bool

    @property
    def ends(self) -> tuple[Value, ...]:
        """The distinct ends of the rows."""
        return tuple(dict.fromkeys(row.end.value for row in self.rows))


def read_rows(graph: KnowledgeGraph, candidate: Candidate, *, limit: int = MAX_WALKS) -> PathRows:
    """Read some walks along a path and the fields of their nodes, in about six queries.

    Fields of mediators are read in both directions, those of ends outward only, also through a mediator. The relations
    of the path itself and ways back to its topic are left out.

    Args:
        limit: maximum number of walks.

    Raises:
        StoreError: the graph failed.
    """
    path = candidate.path
    walks = graph.walks_along(path, **candidate.limits, limit=limit + 1)
    complete, walks = len(walks) <= limit, walks[:limit]
    inner = [at for at in range(1, len(path)) if graph.leads_to_mediator(path.steps[at - 1])]
    known = _known_steps(graph, path)
    mediators = _entities(walk[at] for walk in walks for at in inner)
    ends = _entities(walk[-1] for walk in walks)
    edges = _fields(graph, mediators, ends)
    names = _names(graph, walks, edges)
    rows = []
    for walk in walks:
        shown = [*((at, walk[at]) for at in inner), (len(path), walk[-1])]
        fields = []
        for at, node in shown:
            for steps, values in edges.get(node, {}).items():
                back = steps[:1] in known[at]
                if back and (at < len(path) or len(steps) > 1):
                    continue
                others = [names[v] for v in values if v in names and v not in (path.topic, walk[at - 1])]
                if others:
                    fields.append(Field(at, steps, tuple(others[:MAX_VALUES])))
        rows.append(Row(tuple(names.get(node) or Named(node, "", "") for node in walk), tuple(fields)))
    return PathRows(candidate, tuple(rows), complete)


def _known_steps(graph: KnowledgeGraph, path: RelationPath) -> dict[int, set[tuple[Step, ...]]]:
    """Return, by index of a node, the steps along which the path arrives at the node and leaves it."""
    known: dict[int, set[tuple[Step, ...]]] = defaultdict(set)
    for at, step in enumerate(path.steps, start=1):
        known[at] |= {(turned,) for turned in _same(graph, step.reversed())}
        known[at - 1] |= {(same,) for same in _same(graph, step)}
    return known


def _same(graph: KnowledgeGraph, step: Step) -> set[Step]:
    """Return a step and the step along the inverse relation, which has the same meaning."""
    inverse = graph.inverse(step.relation)
    return {step} | ({Step(inverse, "in" if step.direction == "out" else "out")} if inverse else set())


def _entities(nodes: Iterable[Value]) -> list[Entity]:
    return [node for node in dict.fromkeys(nodes) if isinstance(node, Entity)]


Edges = dict[Value, dict[tuple[Step, ...], list[Value]]]


def _fields(graph: KnowledgeGraph, mediators: list[Entity], ends: list[Entity]) -> Edges:
    found: Edges = defaultdict(lambda: defaultdict(list))
    inward = [(node, step, value) for node, step, value in graph.edges_of(mediators, "in")] if mediators else []
    beyond: dict[Value, list[tuple[Entity, Step]]] = defaultdict(list)
    wanted = set(ends)
    for node, step, value in [*graph.edges_of([*mediators, *ends]), *inward]:
        if graph.is_noise(step.relation) and not (step.relation in graph.schema.types and node in wanted):
            continue
        if graph.mediators.extent(step) == "none":
            found[node][(step,)].append(value)
        elif node in wanted and graph.leads_to_mediator(step) and len(beyond) < MAX_NAMED:
            beyond[value].append((node, step))
    for mediator, step, value in graph.edges_of(_entities(beyond)) if beyond else ():
        if graph.mediators.extent(step) == "none" and not graph.is_noise(step.relation):
            for node, first in beyond[mediator]:
                if value != node and value not in found[node][first, step]:
                    found[node][first, step].append(value)
    return found


def _names(graph: KnowledgeGraph, walks: list[tuple[Value, ...]], edges: Edges) -> dict[Value, Named]:
    """Return the nodes and values with their names; values that have only an opaque id are left out."""
    nodes = list(dict.fromkeys(node for walk in walks for node in walk))
    values = dict.fromkeys(v for fields in edges.values() for each in fields.values() for v in each[:MAX_VALUES])
    named = graph.named([*nodes, *list(values)[:MAX_NAMED]])
    opaque = bool(graph.schema.id_base)
    found = {each.value: each for each in named if normalise(each.name) and not (opaque and each.name == each.id)}
    types = {v for fields in edges.values() for steps, each in fields.items() if _is_type(graph, steps) for v in each}
    return found | {
        each: Named(each, graph.schema.short_id(each.iri), type_words(each.iri, graph.schema))
        for each in types - found.keys()
        if isinstance(each, Entity)
    }


def _is_type(graph: KnowledgeGraph, steps: tuple[Step, ...]) -> bool:
    return len(steps) == 1 and steps[0].relation in graph.schema.types
