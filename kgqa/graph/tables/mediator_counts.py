"""For each relation that leads to mediators, the number of these mediators and of all nodes to which it leads.

They are counted once for a whole graph; an edit costs queries only about the nodes and relations that it touches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from kgqa.graph.store import Rows, count_value
from kgqa.graph.tables.changes import OTHER, VALUE, Changes, Pattern, Select, matches
from kgqa.model import Direction, Entity, Literal, Value
from kgqa.schema import Schema

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
