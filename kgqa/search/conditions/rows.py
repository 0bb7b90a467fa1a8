"""Walks along a path as rows, each with the fields of its nodes: what is known of a mediator and of the answer.

Conditions are found among the fields: a mediator between a series and an actor has the fields "actor" and "character".
The types of an end are fields, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Named, RelationPath, Step, Value
from kgqa.search.tolerance import TOLERATED, without_failures
from kgqa.text.words import normalise, type_words
from kgqa.trace.trace import Trace

MAX_WALKS = 40
MAX_VALUES = 8
"""Most values of a field that are read per node."""
MAX_NAMED = 200
"""Most values whose names are looked up."""
MAX_BEYOND = 200
"""Most mediators beside the walks whose fields are read."""

Edges = dict[Value, dict[tuple[Step, ...], list[Value]]]
"""The values of each property of each node."""
FieldKey = tuple[int, tuple[Step, ...]]
"""The index of a node in a walk, and the way from the node to the field's values."""


@dataclass(frozen=True, slots=True)
class Row:
    """A walk along a path, from the topic to an end, and the fields of its mediators and its end.

    `fields`: the values of each property of a node, at most `MAX_VALUES`; the same key in all rows of a path.
    """

    walk: tuple[Named, ...]
    fields: Mapping[FieldKey, tuple[Named, ...]]

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

    def values(self) -> dict[tuple[FieldKey, Named], set[int]]:
        """Return the values of the fields, each with the numbers of the rows that have it."""
        found: dict[tuple[FieldKey, Named], set[int]] = defaultdict(set)
        for number, row in enumerate(self.rows):
            for key, values in row.fields.items():
                for value in values:
                    found[key, value].add(number)
        return found


def read_rows(
    graph: KnowledgeGraph, candidates: Sequence[Candidate], trace: Trace, *, limit: int = MAX_WALKS
) -> list[PathRows]:
    """Read some walks along each path and the fields of their nodes: some six queries for all paths.

    Fields of mediators are read in both directions, those of other nodes outward only, also through a mediator. The
    relations of the path itself and ways back to its topic are left out.

    Args:
        trace: records paths whose walks cannot be read; they are left out.
        limit: maximum number of walks per path.

    Raises:
        StoreError: the graph failed.
    """
    walks_of = graph.paths.walks(candidates, limit=limit + 1, tolerated=TOLERATED)
    every: list[tuple[Candidate, list[tuple[Value, ...]]]] = without_failures(
        candidates, walks_of, trace, worded=lambda each: each.words
    )
    mediators: set[Value] = set()
    nodes: dict[Value, None] = {}
    for candidate, walks in every:
        for at, step in enumerate(candidate.path.steps, start=1):
            reached = dict.fromkeys(walk[at] for walk in walks[:limit])
            nodes |= reached
            mediators |= reached.keys() if graph.tables.leads_to_mediator(step) else set()
    edges = _fields(graph, nodes, mediators)
    names = _names(graph, nodes, edges)
    return [
        PathRows(
            candidate,
            tuple(_row(graph, candidate.path, walk, edges, names) for walk in walks[:limit]),
            len(walks) <= limit,
        )
        for candidate, walks in every
    ]


def _row(
    graph: KnowledgeGraph, path: RelationPath, walk: Sequence[Value], edges: Edges, names: Mapping[Value, Named]
) -> Row:
    fields = {}
    for at, node in enumerate(walk[1:], start=1):
        is_mediator = graph.tables.leads_to_mediator(path.steps[at - 1])
        passed = passed_steps(graph, path, at)
        own = edges.get(node, {})
        outward = {value for steps, values in own.items() if steps[0].direction == "out" for value in values}
        for steps, values in own.items():
            # a mediator at the end may lead to others along the relation of the topic: the spouses of a marriage
            is_passed = steps[0] in passed and (len(steps) > 1 or (is_mediator and at < len(path)))
            is_inverse = is_mediator and steps[0].direction == "in" and outward.issuperset(values)
            others = tuple(names[v] for v in values if v in names and v != walk[at - 1])
            if others and not is_passed and not is_inverse:
                fields[at, steps] = others[:MAX_VALUES]
    return Row(tuple(names.get(node) or Named(node, "", "") for node in walk), fields)


def passed_steps(graph: KnowledgeGraph, path: RelationPath, at: int) -> set[Step]:
    """Return the steps along which a path arrives at a node and leaves it, also those along the inverse relations."""
    steps = [path.steps[at - 1].reversed(), *path.steps[at : at + 1]]
    inverses = graph.tables.inverses
    turned = (Step(inverses[s.relation], s.reversed().direction) for s in steps if s.relation in inverses)
    return {*steps, *turned}


def _entities(nodes: Iterable[Value]) -> list[Entity]:
    return [node for node in dict.fromkeys(nodes) if isinstance(node, Entity)]


def _fields(graph: KnowledgeGraph, nodes: Iterable[Value], mediators: Container[Value]) -> Edges:
    found: Edges = defaultdict(lambda: defaultdict(list))
    entities = _entities(nodes)
    links = [node for node in entities if node in mediators]
    beyond: dict[Value, list[tuple[Entity, Step]]] = defaultdict(list)
    for node, step, value in [*graph.paths.edges(entities), *graph.paths.edges(links, "in")]:
        if graph.tables.is_noise(step.relation) and (step.relation not in graph.schema.types or node in mediators):
            continue
        if not graph.tables.leads_to_mediator(step):
            found[node][(step,)].append(value)
        elif node not in mediators and len(beyond) < MAX_BEYOND:
            beyond[value].append((node, step))
    for mediator, step, value in graph.paths.edges(_entities(beyond)):
        if not graph.tables.leads_to_mediator(step) and not graph.tables.is_noise(step.relation):
            for node, first in beyond[mediator]:
                if value != node and value not in found[node][first, step]:
                    found[node][first, step].append(value)
    for fields in found.values():
        for values in fields.values():
            values.sort(key=str)  # the engine's order may differ, and only some of the values are kept
    return found


def _names(graph: KnowledgeGraph, nodes: Iterable[Value], edges: Edges) -> dict[Value, Named]:
    """Return the nodes and values with their names; values that have only an opaque id are left out."""
    values = dict.fromkeys(v for fields in edges.values() for each in fields.values() for v in each[:MAX_VALUES])
    named = graph.named(
        [*nodes, *_entities(values)[:MAX_NAMED], *(value for value in values if not isinstance(value, Entity))]
    )
    opaque = bool(graph.schema.id_base)
    found = {each.value: each for each in named if normalise(each.name) and not (opaque and each.name == each.id)}
    typing = [(Step(relation),) for relation in graph.schema.types]
    types = _entities(value for fields in edges.values() for steps in typing for value in fields.get(steps, ()))
    return found | {
        each: Named(each, graph.schema.short_id(each.iri), type_words(each.iri, graph.schema))
        for each in types
        if each not in found
    }
