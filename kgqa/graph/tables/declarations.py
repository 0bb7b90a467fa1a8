"""What a graph declares about its relations and types, and which of its nodes are mediators.

Mediators are nodes that only connect others (a marriage, a performance). The rules of the schema decide which nodes are
mediators: by a type that is marked as a mediator type, the range or domain of a relation, the prefix of an IRI, or the
namespace of a relation. Whether a node has a name does not matter, except for types none of whose nodes has one, where
the schema says so. A list of the schema (`listed_mediators`) decides on types and relations about which the graph
declares nothing.

The edges that end in mediators are counted once for a whole graph; an edit changes the counts by what it touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Literal as OneOf

import msgspec

from kgqa.graph.editing import Changes, batches
from kgqa.graph.query.text import Node, Variable, render_term, term_list
from kgqa.graph.store import Row, count_value
from kgqa.graph.tables.graph_reader import Select
from kgqa.graph.tables.labels import BATCH, values_around
from kgqa.model import Direction, Entity, Literal, Step, Value
from kgqa.net.threads import ThreadPool
from kgqa.schema import Schema

SIDES: tuple[Direction, Direction] = ("out", "in")


class Declarations(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """What a graph declares about its relations and types; all keys and values but `marks` are IRIs.

    Attributes:
        noise: The relations that the graph marks as noise, such as identifiers in other catalogues.
        inverses: Map from each relation to its reverse property; each declared pair is entered in both orders.
        types: By direction, a map from relations to the types of the nodes to which they lead: their ranges (`out`) or
            domains. A relation that is missing is not declared, rather than declared otherwise.
        marks: The values that mark a type as a mediator type, as they are written in the graph ("true" as a string, as
            a boolean, or both).
        mediator_types: The mediator types, those of the schema included.
        other_types: The types that the graph marks as other than mediator types.
    """

    noise: frozenset[str]
    inverses: dict[str, str]
    types: dict[Direction, dict[str, tuple[str, ...]]]
    marks: tuple[Value, ...]
    mediator_types: frozenset[str]
    other_types: frozenset[str]

    @cached_property
    def inverse_of(self) -> dict[str, list[str]]:
        """Map from each relation to the relations that declare it as their reverse."""
        reverse: dict[str, list[str]] = {}
        for left, right in self.inverses.items():
            reverse.setdefault(right, []).append(left)
        return reverse


def declaring_predicates(schema: Schema) -> tuple[str, ...]:
    """Return the predicates by which a graph declares things, apart from the one that marks noise."""
    marked = (schema.mediator_marked_by or ())[:1]
    return tuple(dict.fromkeys((*schema.inverse, *schema.range, *schema.domain, *marked)))


def read_declarations(schema: Schema, read: Select) -> Declarations:
    """Read the declarations of a graph. Raises the same errors as `GraphTables.read`."""
    predicates = list(map(Entity, declaring_predicates(schema)))
    statements: dict[str, list[tuple[str, Value]]] = {predicate.iri: [] for predicate in predicates}
    for subject, predicate, value in (
        read("declarations", what="Declarations", predicates=predicates) if predicates else ()
    ):
        if isinstance(subject, Entity) and isinstance(predicate, Entity) and value is not None:
            statements[predicate.iri].append((subject.iri, value))

    def pairs(*predicates: str) -> Iterator[tuple[str, str]]:
        # sorted, because the first of several types or inverses is used, and engines differ in their order
        for predicate in predicates:
            yield from sorted((name, node.iri) for name, node in statements[predicate] if isinstance(node, Entity))

    inverses: dict[str, str] = {}
    for left, right in pairs(*schema.inverse):
        if left != right:
            inverses.setdefault(left, right)
            inverses.setdefault(right, left)
    types: dict[Direction, dict[str, tuple[str, ...]]] = {side: {} for side in SIDES}
    for side, declaring in zip(SIDES, (schema.range, schema.domain)):
        for relation, type_ in pairs(*declaring):
            types[side][relation] = (*types[side].get(relation, ()), type_)
    # every thing of the graph may have some value of the predicate that marks noise, such as rdf:type
    noise = {name for node in declared_nodes(schema.noise_marked_by, read) for name in schema.named_by(node)}
    marks, others, mediators = dict[Value, None](), set[str](), set(schema.mediator_types)
    if schema.mediator_marked_by:
        marker, true = schema.mediator_marked_by
        for name, mark in sorted(statements[marker], key=str):
            if true in (getattr(mark, "value", None), getattr(mark, "iri", None)):
                mediators.add(name)
                marks[mark] = None
            else:
                others.add(name)
    return Declarations(
        frozenset(noise), inverses, types, tuple(marks), frozenset(mediators), frozenset(others - mediators)
    )


def declared_nodes(declaration: Sequence[str], read: Select) -> list[str]:
    """Return the nodes with any of these values of a predicate; `declaration` is (predicate, value, ...) or empty."""
    if not declaration:
        return []
    predicate, *kinds = map(Entity, declaration)
    rows = read("declared", what="The declared nodes", declared_by=predicate, kinds=kinds)
    return sorted(node.iri for (node,) in rows if isinstance(node, Entity))


@cache
def listed_mediators(name: str, base: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the mediator types of a kind of graph, and the relations whose range is one of these types.

    They are for slices of a well-known graph that lack the triples of its schema.

    Args:
        name: the name of the list, see `Schema.mediator_list`; empty for no list.
        base: what stands before the ids of the list to make full IRIs.
    """
    if not name:
        return frozenset(), frozenset()
    text = (files("kgqa") / "schemas" / f"{name}_mediators.txt").read_text(encoding="utf-8")
    ids = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    types, relations = (frozenset(base + each for each in part.split()) for part in ids.split("\n\n"))
    return types, relations


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
        for nodes in batches(sorted(turned, key=str), BATCH):
            for place, side in enumerate(SIDES, 1):
                rows = select("relation_totals", entities=nodes, out=side == "in")
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
    before, after = (
        prefixed | {node for node, _, type_ in typed if isinstance(type_, Entity) and type_.iri in types}
        for typed in values_around(changes, nodes, schema.types, select=select)
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
        if side == "out":
            return not types and relation in listed_mediators(schema.mediator_list, schema.id_base)[1]
        domain = schema.domain_in_name(relation)
        return domain in self.declared.mediator_types or (not types and domain in self._types)

    @cached_property
    def _types(self) -> frozenset[str]:
        listed, _ = listed_mediators(self.schema.mediator_list, self.schema.id_base)
        return self.declared.mediator_types | (listed - self.declared.other_types)

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


NamedTypes = dict[str, tuple[int, int]]
"""By type: the number of its nodes, and of those that have a name; without types that the schema takes for noise."""


def count_named_types(schema: Schema, read: Select) -> NamedTypes:
    """Count the nodes of each type, and those that have a name. Raises the same errors as `GraphTables.read`."""
    terms = {"type_predicates": list(map(Entity, schema.types)), "predicates": list(map(Entity, schema.label))}
    rows: Iterable[Row] = read("named_types", what="The names of types", **terms) if all(terms.values()) else []
    return {
        type_.iri: (count_value(nodes), count_value(named))
        for type_, nodes, named in rows
        if isinstance(type_, Entity) and not type_.iri.startswith(schema.noise_prefixes)
    }


def follow_named_types(counts: NamedTypes, changes: Changes, *, schema: Schema, select: Select) -> NamedTypes:
    """Return the counts after some changes of the graph."""
    predicates = (*schema.types, *schema.label)
    around = values_around(changes, changes.subjects(predicates), predicates, select=select)
    delta: Counter[tuple[str, int]] = Counter()
    for statements, sign in zip(around, (-1, 1)):
        named = {node for node, predicate, _ in statements if predicate.iri in schema.label}
        typed: set[tuple[Entity, Value]] = {(node, value) for node, by, value in statements if by.iri in schema.types}
        for node, type_ in typed:
            if isinstance(type_, Entity) and not type_.iri.startswith(schema.noise_prefixes):
                delta.update({(type_.iri, 0): sign, (type_.iri, 1): sign * (node in named)})
    new = dict(counts)
    for name in {name for name, _ in delta}:
        nodes_of, named_of = counts.get(name, (0, 0))
        new[name] = (nodes_of + delta[name, 0], named_of + delta[name, 1])
        if not new[name][0]:
            del new[name]
    return new


def types_without_names(counts: NamedTypes) -> frozenset[str]:
    """Return the types none of whose nodes has a name, if most nodes with a type have one.

    Such nodes connect others, such as an award with its winner and year. If a graph names few of its things, the
    missing name says nothing.
    """
    nodes, named = (sum(count[place] for count in counts.values()) for place in (0, 1))
    return frozenset(type_ for type_, count in counts.items() if not count[1]) if 2 * named > nodes else frozenset()
