"""How many nodes of each type have a name; types without any name are mediator types where the schema says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kgqa.graph.store import Row, count_value
from kgqa.graph.tables.changes import Changes
from kgqa.graph.tables.declarations import Select
from kgqa.graph.tables.labels import values_of
from kgqa.model import Entity, Value
from kgqa.schema import Schema

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
    nodes = sorted(changes.subjects(predicates), key=str)
    now = set(values_of(nodes, predicates, select=select))
    added, removed = (
        {(t.subject, Entity(t.relation), t.object) for t in triples if t.relation in predicates}
        for triples in (changes.added, changes.removed)
    )
    delta: Counter[tuple[str, int]] = Counter()
    for statements, sign in (((now - added) | removed, -1), (now, 1)):
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
