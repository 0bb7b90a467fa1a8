"""Units of rewiring; a unit is a bundle of triples for one fact, and the node (the hole) that an exchange replaces.

A bundle is a triple with its inverse, an edge between an entity and a mediator with its inverse, or, in Wikidata, a
claim (wdt:) with the edges to its statements (p:). The remaining edges of a mediator are fixed, so an exchange gives
the whole mediator to a different owner.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from kgqa.evaluation.fictional.facts import Facts
from kgqa.graph.graph import KnowledgeGraph

MIRRORED = 0.5
"""Two relations are inverses if this share of the edges of the smaller relation occurs reversed in the other."""
_OWNER_WEIGHT = 1e6  # only owners of statements may be exchanged; otherwise claim and statement would be separated

Part = tuple[int, bool, str]
"""A triple of a bundle: its relation, whether the hole is the subject, and `Facts.literal_kind` of the other node."""


@dataclass
class UnitGroup:
    """Units of the same kind; any two of them may exchange their holes.

    `parts`: form of each triple; `holes`: the hole of each unit; `bundles`: the other nodes of each unit. The hole of
    unit i and node k of bundle i form a triple of the form `parts[k]`.
    """

    parts: tuple[Part, ...]
    holes: list[int] = field(default_factory=list)
    bundles: list[tuple[int, ...]] = field(default_factory=list)

    def triples(self, unit: int) -> Iterator[tuple[int, int, int]]:
        """Yield the triples (relation, subject, object) of a unit in the rewired graph."""
        hole = self.holes[unit]
        for (relation, outward, _), other in zip(self.parts, self.bundles[unit]):
            yield (relation, hole, other) if outward else (relation, other, hole)


@dataclass
class Units:
    """A graph split into groups of units and fixed triples.

    `fixed`: for each relation the arrays of subjects and objects of its fixed triples.
    """

    facts: Facts
    groups: list[UnitGroup]
    fixed: dict[int, tuple[np.ndarray, np.ndarray]]
    pairs: dict[int, int]
    """Map from each relation to its inverse."""

    @property
    def movable(self) -> int:
        """Number of triples that rewiring may change."""
        return sum(len(group.holes) * len(group.parts) for group in self.groups)

    def moving_keys(self) -> dict[int, list[int]]:
        """Map each relation to the triples of units, each as the subject times the number of nodes plus the object."""
        count = len(self.facts.terms)
        found: dict[int, list[int]] = defaultdict(list)
        for group in self.groups:
            for unit in range(len(group.holes)):
                for relation, subject, object_ in group.triples(unit):
                    found[relation].append(subject * count + object_)
        return found

    def lines(self) -> Iterator[str]:
        """Yield the rewired graph as N-Triples lines, sorted within each relation."""
        terms, count = self.facts.terms, len(self.facts.terms)
        moving = self.moving_keys()
        for relation, name in enumerate(self.facts.relations):
            subjects, objects = self.fixed.get(relation, (np.empty(0, np.int64), np.empty(0, np.int64)))
            keys = np.concatenate([subjects * count + objects, np.array(moving.pop(relation, ()), dtype=np.int64)])
            keys.sort()
            for key in keys.tolist():
                yield f"{terms[key // count]} <{name}> {terms[key % count]} .\n"


def split_into_units(facts: Facts, graph: KnowledgeGraph, *, prefer: Mapping[int, float] = {}) -> Units:
    """Split a graph into fixed triples and units that may be rewired.

    Triples of the schema, of types, of names and of other noise relations are fixed. Inverse relations are those that
    the graph declares and those whose edges mirror each other.

    Args:
        prefer: weights of relations; each mediator's edge with the highest weight is rewired.
    """
    mobile = [not graph.tables.is_noise(name) and not _is_schema_relation(name, graph) for name in facts.relations]
    pairs = inverse_pairs(facts, graph.tables.inverses, mobile)
    mediators = mediator_nodes(facts, graph)
    builder = _Builder(facts, pairs, mediators)
    builder.statements(graph.schema.mediator_pairs, mobile)
    builder.choose_ports(mobile, prefer)
    for relation in range(len(facts.relations)):
        if not mobile[relation]:
            builder.keep(relation, builder.edges(relation))
        elif pairs.get(relation, relation) >= relation:
            builder.relation(relation, pairs.get(relation))
    groups = [builder.groups[parts] for parts in sorted(builder.groups)]
    fixed = {
        relation: (np.array([s for s, _ in kept], dtype=np.int64), np.array([o for _, o in kept], dtype=np.int64))
        for relation, kept in builder.fixed.items()
    }
    return Units(facts, groups, fixed, pairs)


def _is_schema_relation(name: str, graph: KnowledgeGraph) -> bool:
    schema = graph.schema
    return name in (*schema.types, *schema.label, *schema.alias, *schema.inverse, *schema.domain, *schema.range)


def mediator_nodes(facts: Facts, graph: KnowledgeGraph) -> set[int]:
    """Return the node numbers of all mediators, by the rules of the schema."""
    schema, found = graph.schema, set()
    types = set(schema.mediator_types)
    places = {name: n for n, name in enumerate(facts.relations)}
    if schema.mediator_marked_by and schema.mediator_marked_by[0] in places:
        marker, value = places[schema.mediator_marked_by[0]], schema.mediator_marked_by[1]
        for type_, mark in zip(facts.subjects[marker].tolist(), facts.objects[marker].tolist()):
            if facts.terms[mark].startswith((f'"{value}"', f"<{value}>")):
                types.add(facts.terms[type_][1:-1])
    numbers = {facts.number(f"<{type_}>") for type_ in types}
    for predicate in schema.types:
        if predicate in places:
            relation = places[predicate]
            chosen = np.isin(facts.objects[relation], [n for n in numbers if n is not None])
            found |= set(facts.subjects[relation][chosen].tolist())
    for prefix in schema.mediator_iri_prefixes:
        found |= {n for n, term in enumerate(facts.terms) if term.startswith(f"<{prefix}")}
    leads = graph.tables.mediators.leads
    for relation, name in enumerate(facts.relations):
        for towards, ends in ((leads.get("out", {}), facts.objects), (leads.get("in", {}), facts.subjects)):
            if towards.get(name) == "all":
                found |= set(ends[relation].tolist())
    return {node for node in found if facts.terms[node][0] == "<"}


def inverse_pairs(facts: Facts, declared: Mapping[str, str], mobile: list[bool]) -> dict[int, int]:
    """Map each relation to at most one inverse; a symmetric relation is its own inverse.

    Declared pairs come first, then relations whose edges mirror each other.
    """
    places = {name: n for n, name in enumerate(facts.relations)}
    pairs: dict[int, int] = {}

    def pair(first: int | None, second: int | None) -> None:
        if first is None or second is None or first in pairs or second in pairs:
            return
        if mobile[first] and mobile[second]:
            pairs[first], pairs[second] = second, first

    for name in sorted(declared):
        pair(places.get(name), places.get(declared[name]))
    for _, first, second in sorted(_mirrors(facts, [n for n, may in enumerate(mobile) if may and n not in pairs])):
        pair(first, second)
    return pairs


def _mirrors(facts: Facts, relations: list[int]) -> Iterator[tuple[float, int, int]]:
    """Yield (-share, relation, inverse) for each pair whose share of mirrored edges is `MIRRORED` or more."""
    if not relations:
        return
    count = len(facts.terms)
    keys = np.concatenate([facts.subjects[r] * count + facts.objects[r] for r in relations])
    turned = np.concatenate([facts.objects[r] * count + facts.subjects[r] for r in relations])
    loops = turned == keys
    owner = np.repeat(relations, [len(facts.subjects[r]) for r in relations])
    order = np.argsort(keys, kind="stable")
    keys, owners = keys[order], owner[order]
    low, high = np.searchsorted(keys, turned, "left"), np.searchsorted(keys, turned, "right")
    shared: Counter[tuple[int, int]] = Counter()
    for edge in np.flatnonzero((high > low) & ~loops).tolist():
        for other in range(low[edge], high[edge]):
            shared[int(owner[edge]), int(owners[other])] += 1
    for (first, second), both in shared.items():
        if first <= second:
            share = both / min(len(facts.subjects[first]), len(facts.subjects[second]))
            if share >= MIRRORED:
                yield -share, first, second


class _Builder:
    """Assigns every edge of a graph to a group of units or to the fixed edges."""

    def __init__(self, facts: Facts, pairs: dict[int, int], mediators: set[int]) -> None:
        self.facts = facts
        self.pairs = pairs
        self.mediators = mediators
        self.groups: dict[tuple[Part, ...], UnitGroup] = {}
        self.fixed: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._ports: dict[int, int] = {}
        self._moving: set[int] = set()
        self._entering: set[int] = set()
        self._claims: dict[tuple[int, int, int], tuple[int, int, list[int]]] = {}
        self._taken: set[tuple[int, int, int]] = set()
        """Edges that are already part of a unit or fixed."""

    def edges(self, relation: int) -> list[tuple[int, int]]:
        return list(zip(self.facts.subjects[relation].tolist(), self.facts.objects[relation].tolist()))

    def keep(self, relation: int, edges: Iterable[tuple[int, int]]) -> None:
        self.fixed[relation] += edges

    def statements(self, prefixes: Iterable[tuple[str, str, str]], mobile: list[bool]) -> None:
        """Connect claims (wdt:) with the edges to their statements (p:).

        Statements of one owner with the same value, such as an office held twice, belong to one claim and form one
        unit. If the claim or the statement is fixed (a type, for example), both are fixed.
        """
        places = {name: n for n, name in enumerate(self.facts.relations)}
        for enter, exit_, direct in prefixes:
            for name, entering in places.items():
                local = name.removeprefix(enter)
                leaving, claim = places.get(exit_ + local), places.get(direct + local)
                if local == name or leaving is None:
                    continue
                self._entering.add(entering)
                if claim is not None and (mobile[entering] or mobile[claim]):
                    for (owner, other), statements in self._of_claims(entering, leaving, claim).items():
                        edges = [(entering, owner, statement) for statement in statements]
                        if mobile[entering] and mobile[claim]:
                            self._claims[edges[0]] = (claim, other, statements[1:])
                            self._taken |= {(claim, owner, other), *edges[1:]}
                        else:
                            self._settle(edges if mobile[entering] else [(claim, owner, other)])

    def _of_claims(self, entering: int, leaving: int, claim: int) -> dict[tuple[int, int], list[int]]:
        """Map the owner and the value of each claim to the statements of the claim."""
        value, claims = dict(self.edges(leaving)), set(self.edges(claim))
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        for owner, statement in self.edges(entering):
            if statement in value and (owner, value[statement]) in claims:
                found[owner, value[statement]].append(statement)
        return found

    def _settle(self, edges: Iterable[tuple[int, int, int]]) -> None:
        for relation, subject, object_ in edges:
            self._taken.add((relation, subject, object_))
            self.fixed[relation].append((subject, object_))

    def choose_ports(self, mobile: list[bool], prefer: Mapping[int, float]) -> None:
        """Choose the edge of each mediator that may be rewired: by weight, then by the number of entities."""
        ends: dict[int, set[int]] = defaultdict(set)
        touching: dict[int, set[int]] = defaultdict(set)
        weights: Counter[int] = Counter()
        for relation in range(len(self.facts.relations)):
            if not mobile[relation]:
                continue
            port = min(relation, self.pairs.get(relation, relation))
            weights[port] += prefer.get(relation, 0.0)  # type: ignore[assignment]
            for subject, object_ in self.edges(relation):
                inner = (subject in self.mediators, object_ in self.mediators)
                if inner == (True, False) and self.facts.terms[object_][0] == "<":
                    touching[subject].add(port)
                    ends[port].add(object_)
                elif inner == (False, True):
                    touching[object_].add(port)
                    ends[port].add(subject)
            if relation in self._entering:
                weights[port] += _OWNER_WEIGHT  # type: ignore[assignment]
        for mediator, ports in touching.items():
            self._ports[mediator] = max(ports, key=lambda port: (weights[port], len(ends[port]), -port))

    def relation(self, relation: int, inverse: int | None) -> None:
        """Assign the edges of a relation and of its inverse to groups."""
        free = [e for e in self.edges(relation) if (relation, *e) not in self._taken]
        if inverse is None:
            for edge in free:
                self._add(edge, [(relation, True)])
            return
        forth = set(free)
        if inverse == relation:
            for subject, object_ in free:
                if (object_, subject) not in forth or subject == object_:
                    self._add((subject, object_), [(relation, True)])
                elif subject < object_:
                    self._add((subject, object_), [(relation, True), (relation, False)])
            return
        back = [(o, s) for s, o in self.edges(inverse) if (inverse, s, o) not in self._taken]
        mirrored = forth & set(back)
        for edge in free:
            self._add(edge, [(relation, True), (inverse, False)] if edge in mirrored else [(relation, True)])
        for object_, subject in sorted(back):
            if (object_, subject) not in mirrored:
                self._add((subject, object_), [(inverse, True)])

    def _add(self, edge: tuple[int, int], parts: list[tuple[int, bool]]) -> None:
        subject, object_ = edge
        inner = (subject in self.mediators, object_ in self.mediators)
        relation, (hole, other) = parts[0][0], edge
        if inner == (True, False):  # the hole is the entity
            hole, other = object_, subject
            parts = [(relation, not outward) for relation, outward in parts]
        kind = self.facts.literal_kind(other)
        named = [(relation, outward, kind) for relation, outward in parts]
        bundle = [other] * len(parts)
        if (relation, hole, other) in self._claims:
            claim, value, more = self._claims[relation, hole, other]
            named += [*[(relation, True, kind)] * len(more), (claim, True, self.facts.literal_kind(value))]
            bundle += [*more, value]
            self._moving |= set(more)
        if all(inner) or (any(inner) and self._stays(relation, hole, other)):
            for (relation, outward, _), node in zip(named, bundle):
                self.fixed[relation].append((hole, node) if outward else (node, hole))
            return
        group = self.groups.setdefault(tuple(named), UnitGroup(tuple(named)))
        group.holes.append(hole)
        group.bundles.append(tuple(bundle))

    def _stays(self, relation: int, hole: int, mediator: int) -> bool:
        """Whether this edge of a mediator is fixed; each mediator has only one edge that is not fixed."""
        port = min(relation, self.pairs.get(relation, relation))
        if self.facts.terms[hole][0] == '"' or self._ports.get(mediator) != port or mediator in self._moving:
            return True
        self._moving.add(mediator)
        return False
