"""Mediators: nodes that only connect others (a marriage, a performance), and the relations that lead to them.

The rules of the schema decide which nodes are mediators: by a type that is marked as a mediator type, the range or
domain of a relation, the prefix of an IRI, or the namespace of a relation. Whether a node has a name does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any
from typing import Literal as OneOf

from kgqa.graph.query.patterns import MarkTest, TypeTest
from kgqa.graph.store import Rows
from kgqa.graph.tables.changes import Changes, Select
from kgqa.graph.tables.mediator_counts import NO_COUNTS, SIDES, Counts, count_mediators, follow_counts
from kgqa.model import Direction, Entity, Literal, Step, Value
from kgqa.model_json import from_json, to_json
from kgqa.schema import Schema

Extent = OneOf["all", "some", "none"]


@dataclass(frozen=True)
class MediatorTable:
    """For each relation and direction, whether all, some or none of the nodes at its end are mediators.

    Attributes:
        leads: By direction, the relations that lead to mediators.
        marks: The values that mark a type as a mediator type, as they are written in the graph ("true" as a string, as
            a boolean, or both).
        types: The mediator types.
        declared: By direction, the relations whose range (`out`) or domain is a mediator type.
        counts: See `count_mediators`.
    """

    schema: Schema
    marks: tuple[Value, ...] = ()
    types: frozenset[str] = frozenset()
    declared: Mapping[Direction, frozenset[str]] = field(default_factory=dict)
    counts: Counts = field(default_factory=lambda: NO_COUNTS)
    leads: Mapping[Direction, Mapping[str, Extent]] = field(default_factory=dict)

    def extent(self, step: Step) -> Extent:
        """Return whether all, some or none of the nodes that a step leads to are mediators."""
        known = self.leads[step.direction].get(step.relation)
        if known is None:
            # the graph is too large to list its relations
            return "all" if step.relation.startswith(self._prefixes(step.direction)) else "none"
        return known

    def _prefixes(self, side: Direction) -> tuple[str, ...]:
        return self.schema.mediator_object_of if side == "out" else self.schema.mediator_subject_of

    def applied(self, relations: Container[str], to: Iterable[str]) -> MediatorTable:
        """Return this table with the rules of the schema applied to some relations.

        Args:
            relations: all relations of the graph.
            to: the relations whose entries in `leads` are outdated.
        """
        leads = {side: dict(self.leads.get(side, {})) for side in SIDES}
        for relation, side in product(to, SIDES):
            extent = self._extent(relation, side, relation in relations)
            if extent:
                leads[side][relation] = extent
            else:
                leads[side].pop(relation, None)
        return replace(self, leads=leads)

    def _extent(self, relation: str, side: Direction, in_graph: bool) -> Extent | None:
        if relation in self.declared[side] or (in_graph and relation.startswith(self._prefixes(side))):
            return "all"
        if in_graph and side == "in" and self.types and self.schema.domain_in_name(relation) in self.types:
            return "all"
        mediators, nodes = self.counts[side].get(relation, (0, 0))
        return None if not mediators else "all" if mediators >= nodes else "some"


def mediator_table(
    schema: Schema, select: Select, relations: Collection[str], *, scan: Callable[..., Rows | None]
) -> MediatorTable:
    """Apply the schema's mediator rules to a graph.

    Args:
        select: renders a template of queries/ and runs the query.
        relations: all relations of the graph.
        scan: like `select`, for queries that read every triple; returns None if the graph is too large. Mediators are
            then found only by ranges, domains and namespaces of relations, not by their types and IRIs.

    Raises:
        StoreTimeout, PartialResult: a table of the graph could not be read in time, or not completely.
        StoreError: other errors of `Store.select`.
    """
    marks, types = _mediator_types(schema, select)
    counted = count_mediators(schema, marks, scan) if types or schema.mediator_iri_prefixes else None
    table = MediatorTable(schema, marks, types, _declared(schema, types, select), counted or NO_COUNTS)
    return table.applied(relations, _all_relations(table, relations))


def follow_mediators(
    table: MediatorTable, changes: Changes, *, select: Select, relations: Collection[str]
) -> MediatorTable | None:
    """Return the table after some changes of the graph; None if the mediator types may have changed.

    Args:
        select: renders a template of queries/ and runs the query.
        relations: all relations of the graph after the changes.
    """
    schema, old = table.schema, table
    if schema.mediator_marked_by and schema.mediator_marked_by[0] in changes.relations:
        return None
    if table.types and not changes.relations.isdisjoint(schema.range + schema.domain):
        table = replace(table, declared=_declared(schema, table.types, select))
    if table.types or schema.mediator_iri_prefixes:
        counts = follow_counts(table.counts, changes, schema=schema, types=table.types, select=select)
        table = replace(table, counts=counts)
    changed = set(changes.relations)
    for side in SIDES:
        changed |= table.declared[side] ^ old.declared[side]
        changed |= {name for name, _ in table.counts[side].items() ^ old.counts[side].items()}
    return table.applied(relations, changed)


def mediators_to_json(table: MediatorTable) -> dict[str, Any]:
    """Return a table as JSON data for the cache."""
    declared = {side: sorted(names) for side, names in table.declared.items()}
    return {
        "marks": to_json(table.marks),
        "types": sorted(table.types),
        "declared": declared,
        "counts": table.counts,
    }


def mediators_from_json(data: Any, schema: Schema, relations: Collection[str]) -> MediatorTable:
    """Return the table of `mediators_to_json`. Raises an exception if the data is damaged."""
    counts: dict[Direction, dict[str, tuple[int, int]]] = {
        side: {str(name): (int(mediators), int(nodes)) for name, (mediators, nodes) in data["counts"][side].items()}
        for side in SIDES
    }
    declared = {side: frozenset(map(str, data["declared"][side])) for side in SIDES}
    marks = from_json(tuple[Value, ...], data["marks"])
    table = MediatorTable(schema, marks, frozenset(map(str, data["types"])), declared, counts)
    return table.applied(relations, _all_relations(table, relations))


def _all_relations(table: MediatorTable, relations: Collection[str]) -> set[str]:
    return set(relations).union(*table.declared.values(), *table.counts.values())


def _declared(schema: Schema, types: AbstractSet[str], select: Select) -> dict[Direction, frozenset[str]]:
    """Return, by direction, the relations whose range or domain is one of these types."""
    return {
        side: frozenset(
            relation.iri
            for predicate in (predicates if types else ())
            for relation, type_ in select("predicate_pairs", predicate=Entity(predicate))
            if isinstance(relation, Entity) and isinstance(type_, Entity) and type_.iri in types
        )
        for side, predicates in zip(SIDES, (schema.range, schema.domain))
    }


def mediator_filters(schema: Schema, table: MediatorTable) -> dict[str, tuple[Any, ...]]:
    """Return the filters that remove mediators from the ends of a relation that also leads to other nodes."""
    tests: dict[str, tuple[Any, ...]] = {
        "not_prefixed": tuple(Literal(prefix) for prefix in schema.mediator_iri_prefixes),
        "not_typed": tuple(
            TypeTest(Entity(predicate), Entity(type_)) for predicate in schema.types for type_ in schema.mediator_types
        ),
    }
    if schema.mediator_marked_by:
        marker = Entity(schema.mediator_marked_by[0])
        tests["not_marked"] = tuple(
            MarkTest(Entity(predicate), marker, mark) for predicate in schema.types for mark in table.marks
        )
    return tests


def _mediator_types(schema: Schema, select: Select) -> tuple[tuple[Value, ...], frozenset[str]]:
    types = set(schema.mediator_types)
    marks: dict[Value, None] = {}
    if schema.mediator_marked_by:
        marker, value = schema.mediator_marked_by
        for type_, found in sorted(select("marked_types", marker=Entity(marker)), key=str):
            matches = value in (getattr(found, "value", None), getattr(found, "iri", None))
            if matches and found is not None and isinstance(type_, Entity):
                types.add(type_.iri)
                marks[found] = None
    return tuple(marks), frozenset(types)
