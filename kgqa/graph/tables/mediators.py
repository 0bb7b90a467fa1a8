"""Mediators: nodes that only connect others (a marriage, a performance), and the relations that lead to them.

The rules of the schema decide which nodes are mediators: by a type that is marked as a mediator type, the range or
domain of a relation, the prefix of an IRI, or the namespace of a relation. Whether a node has a name does not matter.
A list of the schema (`listed_mediators`) decides on types and relations about which the graph declares nothing.

Mediators are counted once for a whole graph; an edit costs queries only about the nodes and relations that it touches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any
from typing import Literal as OneOf

from msgspec import to_builtins

from kgqa.graph.query.patterns import MarkTest, TypeTest
from kgqa.graph.store import Rows, count_value
from kgqa.graph.tables.changes import OTHER, VALUE, Changes, Pattern, Select, matches
from kgqa.graph.tables.listed_mediators import ListedMediators, listed_mediators
from kgqa.model import Direction, Entity, Literal, Step, Value
from kgqa.schema import Schema
from kgqa.storage.loading import convert

SIDES: tuple[Direction, Direction] = ("out", "in")
Counts = Mapping[Direction, Mapping[str, tuple[int, int]]]
"""By direction and relation: the number of distinct mediators, at least 1, and of distinct nodes to which it leads."""
NO_COUNTS: Counts = {side: {} for side in SIDES}
_End = tuple[Direction, str, Value]
"""A direction, a relation, and a node to which a step along the relation in this direction leads."""


def count_mediators(schema: Schema, marks: Iterable[Value], scan: Callable[..., Rows | None]) -> Counts | None:
    """Count the mediators that have a mediator type or whose IRI has a mediator prefix; None if `scan` returns None."""
    found: dict[Direction, dict[str, tuple[int, int]]] = {}
    marked_by = schema.mediator_marked_by
    rules = {
        "prefixes": [Literal(prefix) for prefix in schema.mediator_iri_prefixes],
        "types": [Entity(type_) for type_ in schema.mediator_types],
        "type_predicates": [Entity(predicate) for predicate in schema.types],
        "marker": Entity(marked_by[0]) if marked_by else None,
        "marks": list(marks),
    }
    for side in SIDES:
        mediators = scan("mediator_relations", out=side == "out", **rules)
        ends = scan("relation_ends", out=side == "out", relations=[]) if mediators else ()
        if mediators is None or ends is None:
            return None
        totals = _numbers(ends)
        found[side] = {name: (count, totals.get(name, 0)) for name, count in _numbers(mediators).items()}
    return found


def _numbers(rows: Iterable[Any]) -> dict[str, int]:
    return {relation.iri: count_value(count) for relation, count in rows if isinstance(relation, Entity)}


def follow_counts(
    counts: Counts, changes: Changes, *, schema: Schema, types: AbstractSet[str], select: Select
) -> Counts:
    """Return the counts after some changes of the graph. `types` are the mediator types, which are still the same."""
    before, after = _mediators(changes, schema, types, select)
    deltas: dict[Direction, defaultdict[str, list[int]]] = {side: defaultdict(lambda: [0, 0]) for side in SIDES}
    for (side, relation, node), (was, is_) in _ends(counts, changes, before, after, select).items():
        delta = deltas[side][relation]
        delta[0] += (is_ and node in after) - (was and node in before)
        delta[1] += is_ - was
    new = {side: dict(counts[side]) for side in SIDES}
    for side in SIDES:
        first = [name for name, delta in deltas[side].items() if name not in counts[side] and delta[0] > 0]
        wanted = [Entity(name) for name in first]
        totals = _numbers(select("relation_ends", out=side == "out", relations=wanted) if first else ())
        for name, (mediators, nodes) in deltas[side].items():
            known = counts[side].get(name)
            count = (mediators, totals.get(name, 0)) if known is None else (known[0] + mediators, known[1] + nodes)
            if count[0] > 0:
                new[side][name] = count
            else:
                new[side].pop(name, None)
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
    pairs = [(node, predicate) for node in sorted(nodes, key=str) for predicate in schema.types]
    found = matches(select, [(node, Entity(predicate), VALUE, 0) for node, predicate in pairs])
    now = {(*pair, type_) for pair, values in zip(pairs, found) for type_ in values}
    added, removed = (
        {(triple.subject, triple.relation, triple.object) for triple in triples if triple.relation in schema.types}
        for triples in (changes.added, changes.removed)
    )
    before, after = (
        {node for node, _, type_ in statements if isinstance(type_, Entity) and type_.iri in types}
        for statements in ((now - added) | removed, now)
    )
    return prefixed | before, prefixed | after


def _ends(
    counts: Counts, changes: Changes, before: AbstractSet[Value], after: AbstractSet[Value], select: Select
) -> dict[_End, tuple[bool, bool]]:
    """Return for each end that may change the counts whether it was an end before, and whether it is one now."""
    edited: dict[_End, list[int]] = {}
    for place, triples in enumerate((changes.added, changes.removed)):
        for triple in triples:
            for side, node in zip(SIDES, (triple.object, triple.subject)):
                edited.setdefault((side, triple.relation, node), [0, 0])[place] += 1
    edited = {
        (side, relation, node): numbers
        for (side, relation, node), numbers in edited.items()
        if relation in counts[side] or node in before or node in after
    }
    patterns = [_pattern(end, added + 1) for end, (added, _) in edited.items()]
    found: dict[_End, tuple[bool, bool]] = {}
    for (end, (added, removed)), values in zip(edited.items(), matches(select, patterns)):
        others = len(values) > added  # edges that are older than the changes
        found[end] = others or removed > 0, others or added > 0
    # a node that became a mediator, or is none any more, counts for all its relations
    turned = sorted(before ^ after, key=str)
    for side in SIDES:
        along: list[Pattern] = [(OTHER, VALUE, n, 0) if side == "out" else (n, VALUE, OTHER, 0) for n in turned]
        for node, relations in zip(turned, matches(select, along)):
            for relation in relations:
                if isinstance(relation, Entity):
                    found.setdefault((side, relation.iri, node), (True, True))
    return found


def _pattern(end: _End, limit: int) -> Pattern:
    side, relation, node = end
    return (VALUE, Entity(relation), node, limit) if side == "out" else (node, Entity(relation), VALUE, limit)


Extent = OneOf["all", "some", "none"]


@dataclass(frozen=True)
class MediatorTable:
    """For each relation and direction, whether all, some or none of the nodes at its end are mediators.

    Attributes:
        leads: By direction, the relations that lead to mediators.
        marks: The values that mark a type as a mediator type, as they are written in the graph ("true" as a string, as
            a boolean, or both).
        types: The mediator types.
        not_types: The types that the graph marks as other than mediator types.
        declared: By direction, the relations whose range (`out`) or domain is a mediator type.
        not_declared: By direction, the relations whose range or domain is another type.
        counts: See `count_mediators`.
        listed: The mediator types and relations that the schema lists.
    """

    schema: Schema
    marks: tuple[Value, ...] = ()
    types: frozenset[str] = frozenset()
    not_types: frozenset[str] = frozenset()
    declared: Mapping[Direction, frozenset[str]] = field(default_factory=dict)
    not_declared: Mapping[Direction, frozenset[str]] = field(default_factory=dict)
    counts: Counts = field(default_factory=lambda: NO_COUNTS)
    listed: ListedMediators = field(default_factory=ListedMediators)
    leads: Mapping[Direction, Mapping[str, Extent]] = field(default_factory=dict)

    def extent(self, step: Step) -> Extent:
        """Return whether all, some or none of the nodes that a step leads to are mediators."""
        known = self.leads[step.direction].get(step.relation)
        if known is None:
            # the graph is too large to list its relations
            return "all" if self._ruled(step.relation, step.direction) else "none"
        return known

    def _prefixes(self, side: Direction) -> tuple[str, ...]:
        return self.schema.mediator_object_of if side == "out" else self.schema.mediator_subject_of

    def _ruled(self, relation: str, side: Direction) -> bool:
        """Return whether a relation leads to mediators by its namespace or the schema's list."""
        if relation.startswith(self._prefixes(side)):
            return True
        listed = self.listed.leads(relation, side, self.schema, self.not_types)
        return listed and relation not in self.not_declared[side]

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
        if relation in self.declared[side] or (in_graph and self._ruled(relation, side)):
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
    marks, types, not_types = _mediator_types(schema, select)
    counted = count_mediators(schema, marks, scan) if types or schema.mediator_iri_prefixes else None
    table = MediatorTable(schema, marks, types, not_types, counts=counted or NO_COUNTS, listed=listed_mediators(schema))
    table = _with_declared(table, select)
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
    if not changes.relations.isdisjoint(schema.range + schema.domain):
        table = _with_declared(table, select)
    if table.types or schema.mediator_iri_prefixes:
        counts = follow_counts(table.counts, changes, schema=schema, types=table.types, select=select)
        table = replace(table, counts=counts)
    changed = set(changes.relations)
    for side in SIDES:
        changed |= table.declared[side] ^ old.declared[side]
        changed |= table.not_declared[side] ^ old.not_declared[side]
        changed |= {name for name, _ in table.counts[side].items() ^ old.counts[side].items()}
    return table.applied(relations, changed)


def mediators_to_json(table: MediatorTable) -> dict[str, Any]:
    """Return a table as JSON data for the cache."""
    return {
        "marks": to_builtins(table.marks),
        "types": sorted(table.types),
        "not_types": sorted(table.not_types),
        "declared": {side: sorted(names) for side, names in table.declared.items()},
        "not_declared": {side: sorted(names) for side, names in table.not_declared.items()},
        "counts": table.counts,
    }


def mediators_from_json(data: Any, schema: Schema, relations: Collection[str]) -> MediatorTable:
    """Return the table of `mediators_to_json`. Raises an exception if the data is damaged."""
    counts: dict[Direction, dict[str, tuple[int, int]]] = {
        side: {str(name): (int(mediators), int(nodes)) for name, (mediators, nodes) in data["counts"][side].items()}
        for side in SIDES
    }
    declared, not_declared = (
        {side: frozenset(map(str, data[key][side])) for side in SIDES} for key in ("declared", "not_declared")
    )
    types, not_types = (frozenset(map(str, data[key])) for key in ("types", "not_types"))
    marks = convert(data["marks"], tuple[Value, ...])
    listed = listed_mediators(schema)
    table = MediatorTable(schema, marks, types, not_types, declared, not_declared, counts, listed)
    return table.applied(relations, _all_relations(table, relations))


def _all_relations(table: MediatorTable, relations: Collection[str]) -> set[str]:
    return set(relations).union(*table.declared.values(), *table.counts.values())


def _with_declared(table: MediatorTable, select: Select) -> MediatorTable:
    """Return the table with the relations whose range or domain is declared."""
    types = table.types | (table.listed.types - table.not_types)
    declared: dict[Direction, frozenset[str]] = dict.fromkeys(SIDES, frozenset())
    others = declared.copy()
    for side, predicates in zip(SIDES, (table.schema.range, table.schema.domain)):
        pairs = {
            (relation.iri, type_.iri)
            for predicate in (predicates if types else ())
            for relation, type_ in select("predicate_pairs", predicate=Entity(predicate))
            if isinstance(relation, Entity) and isinstance(type_, Entity)
        }
        declared[side] = frozenset(relation for relation, type_ in pairs if type_ in types)
        others[side] = frozenset(relation for relation, _ in pairs) - declared[side]
    return replace(table, declared=declared, not_declared=others)


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


def _mediator_types(schema: Schema, select: Select) -> tuple[tuple[Value, ...], frozenset[str], frozenset[str]]:
    """Return the marks, the mediator types, and the types that are marked as other types."""
    types, others = set(schema.mediator_types), set()
    marks: dict[Value, None] = {}
    if schema.mediator_marked_by:
        marker, value = schema.mediator_marked_by
        for type_, found in sorted(select("marked_types", marker=Entity(marker)), key=str):
            if found is None or not isinstance(type_, Entity):
                continue
            if value in (getattr(found, "value", None), getattr(found, "iri", None)):
                types.add(type_.iri)
                marks[found] = None
            else:
                others.add(type_.iri)
    return tuple(marks), frozenset(types), frozenset(others - types)
