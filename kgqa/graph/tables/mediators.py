"""Mediators: nodes that only connect others (a marriage, a performance), and the relations that lead to them.

The rules of the schema decide which nodes are mediators: by a type that is marked as a mediator type, the range or
domain of a relation, the prefix of an IRI, or the namespace of a relation. Whether a node has a name does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from typing import Literal as OneOf

from kgqa.graph.query.patterns import MarkTest, TypeTest
from kgqa.graph.store import Rows, count_value
from kgqa.model import Entity, Literal, Step, Value
from kgqa.schema import Schema

Extent = OneOf["all", "some", "none"]
XSD_BOOLEAN = "http://www.w3.org/2001/XMLSchema#boolean"


@dataclass(frozen=True)
class MediatorTable:
    """For each relation and direction, whether all, some or none of the nodes at its end are mediators.

    `marks` are the values that mark a type as a mediator type, as they are written in the graph ("true" as a string, as
    a boolean, or both).
    """

    leads: dict[str, dict[str, Extent]] = field(default_factory=dict)
    marks: tuple[Value, ...] = ()
    object_of: tuple[str, ...] = ()
    subject_of: tuple[str, ...] = ()

    def extent(self, step: Step) -> Extent:
        """Return whether all, some or none of the nodes that a step leads to are mediators."""
        known = self.leads.get(step.direction, {}).get(step.relation)
        if known is None:
            # the relation is newer than the table, or the graph is too large to list its relations
            prefixes = self.object_of if step.direction == "out" else self.subject_of
            return "all" if step.relation.startswith(prefixes) else "none"
        return known


def mediator_table(
    schema: Schema, select: Callable[..., Rows], relations: Iterable[str], *, scan: Callable[..., Rows | None]
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
    leads: dict[str, dict[str, Extent]] = {"out": {}, "in": {}}
    if types or schema.mediator_iri_prefixes:
        leads = _by_instances(schema, marks, scan) or leads
    for direction, predicates in (("out", schema.range), ("in", schema.domain)):
        for predicate in predicates if types else ():
            for relation, type_ in select("predicate_pairs", predicate=Entity(predicate)):
                if isinstance(relation, Entity) and isinstance(type_, Entity) and type_.iri in types:
                    leads[direction][relation.iri] = "all"
    for name in relations:
        if name.startswith(schema.mediator_object_of):
            leads["out"][name] = "all"
        if name.startswith(schema.mediator_subject_of):
            leads["in"][name] = "all"
        if types and schema.domain_in_name(name) in types:
            leads["in"][name] = "all"
    return MediatorTable(leads, marks, schema.mediator_object_of, schema.mediator_subject_of)


def _by_instances(
    schema: Schema, marks: tuple[Value, ...], scan: Callable[..., Rows | None]
) -> dict[str, dict[str, Extent]] | None:
    """Test nodes themselves to find the relations that lead to mediators; return None if the graph is too large."""
    leads: dict[str, dict[str, Extent]] = {"out": {}, "in": {}}
    for direction in ("out", "in"):
        rows = scan("mediator_relations", out=direction == "out", **_instance_rules(schema, marks))
        if rows is None:
            return None
        found = {relation.iri: count_value(count) for relation, count in rows if isinstance(relation, Entity)}
        ends = scan("relation_ends", out=direction == "out") if found else ()
        if ends is None:
            return None
        totals = {relation.iri: count_value(count) for relation, count in ends if isinstance(relation, Entity)}
        for relation, count in found.items():
            leads[direction][relation] = "all" if count >= totals.get(relation, 0) else "some"
    return leads


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


def _mediator_types(schema: Schema, select: Callable[..., Rows]) -> tuple[tuple[Value, ...], set[str]]:
    types = set(schema.mediator_types)
    marks: dict[Value, None] = {}
    if schema.mediator_marked_by:
        marker, value = schema.mediator_marked_by
        for type_, found in select("marked_types", marker=Entity(marker)):
            matches = value in (getattr(found, "value", None), getattr(found, "iri", None))
            if matches and found is not None and isinstance(type_, Entity):
                types.add(type_.iri)
                marks[found] = None
    return tuple(marks), types


def _instance_rules(schema: Schema, marks: tuple[Value, ...]) -> dict[str, Any]:
    marked_by = schema.mediator_marked_by
    return {
        "prefixes": [Literal(prefix) for prefix in schema.mediator_iri_prefixes],
        "types": [Entity(type_) for type_ in schema.mediator_types],
        "type_predicates": [Entity(predicate) for predicate in schema.types],
        "marker": Entity(marked_by[0]) if marked_by else None,
        "marks": list(marks),
    }
