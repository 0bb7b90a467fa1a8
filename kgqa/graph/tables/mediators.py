"""Mediators: nodes that only connect others (a marriage, a performance), and the relations that lead to them.

The rules of the schema decide which nodes are mediators: by a type that is marked as a mediator type, the range or
domain of a relation, the prefix of an IRI, or the namespace of a relation. Whether a node has a name does not matter,
except for the types of `named_types` that count as mediator types of the schema. A list of the schema
(`listed_mediators`) decides on types and relations about which the graph declares nothing.

The edges that end in mediators are counted once for a whole graph; an edit changes the counts by what it touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Literal as OneOf

from kgqa.graph.query.patterns import Node, term_list
from kgqa.graph.query.templates import Variable, render_term
from kgqa.graph.store import Row, count_value
from kgqa.graph.tables.changes import Changes
from kgqa.graph.tables.declarations import SIDES, Declarations, Select, listed_mediators
from kgqa.graph.tables.labels import BATCH, values_of
from kgqa.model import Direction, Entity, Literal, Step, Value
from kgqa.net.threads import ThreadPool
from kgqa.schema import Schema

Edges = dict[str, tuple[int, int, int]]
"""By relation: the number of its edges, of those whose object is a mediator, and of those whose subject is one.

A node is a mediator here by its type or by the prefix of its IRI."""
Extent = OneOf["all", "some", "none"]


def count_edges(schema: Schema, declared: Declarations, read: Select, *, threads: int = 1) -> Edges:
    """Count the edges of each relation of a graph, with `threads` queries at a time.

    Raises the same errors as `GraphTables.read`.
    """
    rules = {
        "prefixes": [Literal(prefix) for prefix in schema.mediator_iri_prefixes],
        "types": [Entity(type_) for type_ in schema.mediator_types],
        "type_predicates": [Entity(predicate) for predicate in schema.types],
        "marker": Entity(schema.mediator_marked_by[0]) if schema.mediator_marked_by else None,
        "marks": declared.marks,
    }

    def count(node: str) -> dict[str, int]:
        if not node:
            return _numbers(read("relation_counts", what="The relations"))
        return _numbers(
            read("mediator_edges", what="The mediators", node=Variable(node), is_object=node == "object", **rules)
        )

    nodes = ["object", "subject", ""] if declared.mediator_types or schema.mediator_iri_prefixes else [""]
    *mediators, totals = ThreadPool(threads - 1, name="kgqa-tables").map(count, nodes)
    out, into = mediators or ({}, {})
    return {name: (edges, out.get(name, 0), into.get(name, 0)) for name, edges in totals.items()}


def _numbers(rows: Iterable[Row]) -> dict[str, int]:
    return {relation.iri: count_value(count) for relation, count in rows if isinstance(relation, Entity)}


def follow_edges(edges: Edges, changes: Changes, *, schema: Schema, types: AbstractSet[str], select: Select) -> Edges:
    """Return the counts after some changes of the graph. `types` are the mediator types, which are still the same."""
    delta: Counter[tuple[str, int]] = Counter()
    before, after = _mediators(changes, schema, types, select)
    for triples, sign in ((changes.added, 1), (changes.removed, -1)):
        for triple in triples:
            delta[triple.relation, 0] += sign
            for place, node in enumerate((triple.object, triple.subject), 1):
                delta[triple.relation, place] += sign if node in before else 0
    # a node that became a mediator, or is none any more, counts with all its edges
    for turned, sign in ((after - before, 1), (before - after, -1)):
        nodes = sorted(turned, key=str)
        for start in range(0, len(nodes), BATCH):
            for place, side in enumerate(SIDES, 1):
                rows = select("relation_totals", entities=nodes[start : start + BATCH], out=side == "in")
                delta.update({(name, place): sign * count for name, count in _numbers(rows).items()})
    new = dict(edges)
    for name in {name for name, _ in delta}:
        total, out, into = (count + delta[name, place] for place, count in enumerate(edges.get(name, (0, 0, 0))))
        new[name] = (total, out, into)
        if total <= 0:
            del new[name]
    return new


def _mediators(
    changes: Changes, schema: Schema, types: AbstractSet[str], select: Select
) -> tuple[set[Value], set[Value]]:
    """Return the mediators among the nodes of the changes, before and after."""
    ends = [node for triple in changes.triples for node in (triple.subject, triple.object)]
    nodes = {node for node in ends if isinstance(node, Entity)}
    prefixed: set[Value] = {node for node in nodes if node.iri.startswith(schema.mediator_iri_prefixes)}
    if not types:
        return prefixed, prefixed
    now = set(values_of(sorted(nodes, key=str), schema.types, select=select))
    added, removed = (
        {(triple.subject, Entity(triple.relation), triple.object) for triple in triples}
        for triples in (changes.added, changes.removed)
    )
    statements = [statement for statement in (now - added) | removed if statement[1].iri in schema.types]
    before, after = (
        prefixed | {node for node, _, type_ in of if isinstance(type_, Entity) and type_.iri in types}
        for of in (statements, now)
    )
    return before, after


@dataclass(frozen=True)
class MediatorTable:
    """For each relation and direction, whether all, some or none of the nodes at its end are mediators.

    `schema`: the schema of the graph, with the types without names as mediator types.
    """

    schema: Schema
    declared: Declarations
    edges: Edges

    def extent(self, step: Step) -> Extent:
        """Return whether all, some or none of the nodes that a step leads to are mediators."""
        if self._ruled(step.relation, step.direction):
            return "all"
        edges, *mediators = self.edges.get(step.relation, (0, 0, 0))
        count = mediators[SIDES.index(step.direction)]
        return "none" if not count else "all" if count == edges else "some"

    def _ruled(self, relation: str, side: Direction) -> bool:
        """Return whether a declaration, a namespace, the name of a relation or the schema's list decides."""
        schema, types = self.schema, self.declared.types[side].get(relation, ())
        if types and not self._types.isdisjoint(types):
            return True
        if relation.startswith(schema.mediator_object_of if side == "out" else schema.mediator_subject_of):
            return True
        listed = listed_mediators(schema)
        if side == "out":
            return not types and relation in listed.relations
        domain = schema.domain_in_name(relation)
        return domain in self.declared.mediator_types or (not types and domain in self._types)

    @cached_property
    def _types(self) -> frozenset[str]:
        return self.declared.mediator_types | (listed_mediators(self.schema).types - self.declared.other_types)

    @property
    def leads(self) -> dict[Direction, dict[str, Extent]]:
        """By direction, the relations that lead to mediators, with the extent."""
        found: dict[Direction, dict[str, Extent]] = {}
        for side in SIDES:
            declared = {name for name, types in self.declared.types[side].items() if not self._types.isdisjoint(types)}
            extents = {name: self.extent(Step(name, side)) for name in declared.union(self.edges)}
            found[side] = {name: extent for name, extent in extents.items() if extent != "none"}
        return found


def mediator_filters(node: Node, table: MediatorTable) -> tuple[str, ...]:
    """Return the filters that remove mediators from the ends of a relation that also leads to other nodes."""
    end, schema = render_term(node), table.schema
    lines = [
        f"  FILTER(!STRSTARTS(STR({end}), {render_term(Literal(prefix))}))" for prefix in schema.mediator_iri_prefixes
    ]
    types = list(map(Entity, schema.types))
    without = [term_list([type_, Entity(each)]) for type_ in types for each in schema.mediator_types]
    if schema.mediator_marked_by:
        marker = Entity(schema.mediator_marked_by[0])
        marks = [term_list([marker, mark]) for mark in table.declared.marks]
        without += [f" {render_term(type_)} ?mark . ?mark{mark}" for type_ in types for mark in marks]
    lines += [f"  FILTER NOT EXISTS {{ {end}{rest} . }}" for rest in without]
    return tuple(lines)
