"""Rewires a graph by random exchanges of nodes between two facts of the same kind, with a seed.

An exchange turns (a, r, x) and (b, r, y) into (b, r, x) and (a, r, y). Every node keeps its degree in every relation.
An exchange never creates a triple of the true graph, a triple that exists already, or an edge from a node to itself.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kgqa.evaluation.fictional.facts import Facts, StageProgress
from kgqa.evaluation.fictional.units import UnitGroup, Units
from kgqa.schema import Schema

TRIES = (6, 4, 4, 6)
"""Number of partners to try at each level: units in which both nodes are similar, in which the hole is
similar, in which the other node is similar, and all units."""
PASSES = 2
Port = tuple[int, bool, int]
"""All edges of a relation at a node: the relation, True for outgoing edges, and the node."""


class NodeKinds:
    """Finds similar nodes: nodes with the same types, and with edges of the same marker relations.

    Args:
        markers: relations that questions use.
    """

    def __init__(self, facts: Facts, schema: Schema, markers: Sequence[int]) -> None:
        generic = schema.noise_prefixes
        self._types: dict[int, frozenset[int]] = defaultdict(frozenset)
        names = {name: n for n, name in enumerate(facts.relations)}
        for predicate in schema.types:
            if predicate in names:
                relation = names[predicate]
                for node, type_ in zip(facts.subjects[relation].tolist(), facts.objects[relation].tolist()):
                    if not facts.terms[type_][1:].startswith(generic or "\0"):
                        self._types[node] |= {type_}
        self._edges: dict[int, int] = defaultdict(int)
        for place, relation in enumerate(markers):
            for ends, bit in ((facts.subjects, 1 << 2 * place), (facts.objects, 2 << 2 * place)):
                for node in dict.fromkeys(ends[relation].tolist()):
                    self._edges[node] |= bit
        self._known: dict[tuple[frozenset[int], int], int] = {}

    def of(self, node: int) -> int:
        """Return the number of the kind of a node; similar nodes have the same kind."""
        key = (self._types.get(node, frozenset()), self._edges.get(node, 0))
        return self._known.setdefault(key, len(self._known))

    def fit(self, first: int, second: int) -> bool:
        """Whether the nodes may replace each other: they share a type, or the types of one node are unknown."""
        one, other = self._types.get(first), self._types.get(second)
        return not one or not other or not one.isdisjoint(other)


@dataclass
class Pools:
    """The units of a group, indexed by the kinds of their nodes, for each level of `TRIES`."""

    by_key: tuple[dict[object, list[int]], ...]
    keys: tuple[list[object], ...]

    def partners(self, unit: int, chance: random.Random, tries: Sequence[int] = TRIES) -> Iterator[int]:
        """Yield random units to exchange with, the most similar level first."""
        for level, many in enumerate(tries):
            pool = self.by_key[level][self.keys[level][unit]]
            if len(pool) > 1:
                for _ in range(many):
                    yield pool[chance.randrange(len(pool))]


def pools_of(group: UnitGroup, kinds: NodeKinds) -> Pools:
    """Index the units of a group by the kinds of their nodes."""
    holes = [kinds.of(hole) for hole in group.holes]
    others = [kinds.of(bundle[0]) for bundle in group.bundles]
    alike: list[object] = list(zip(holes, others, strict=True))
    keys: tuple[list[object], ...] = (alike, [*holes], [*others], [0] * len(holes))
    by_key: tuple[dict[object, list[int]], ...] = tuple(defaultdict(list) for _ in keys)
    for level, level_keys in enumerate(keys):
        for unit, key in enumerate(level_keys):
            by_key[level][key].append(unit)
    return Pools(by_key, keys)


class Rewiring:
    """A graph during rewiring.

    Args:
        watched: relations that questions use; only their edges are indexed.
    """

    def __init__(self, units: Units, kinds: NodeKinds, seed: int, watched: Sequence[int] = ()) -> None:
        self.units = units
        self.kinds = kinds
        self.chance = random.Random(seed)
        self.out: dict[int, dict[int, dict[int, tuple[int, int]]]] = {r: {} for r in watched}
        """Unit of each edge (number of the group, index) by relation, subject, object; (-1, -1) for fixed edges."""
        self.into: dict[int, dict[int, dict[int, tuple[int, int]]]] = {r: {} for r in watched}
        self.pools: dict[int, Pools] = {}
        self._ends: dict[tuple[int, bool], list[int]] = {}
        self._count = len(units.facts.terms)
        self._indexed = False
        self._true: dict[int, set[int]] = {}
        self._now: dict[int, set[int]] = {}

    def shuffle(self, progress: StageProgress = lambda *_: None) -> None:
        """Make random exchanges in the whole graph."""
        clusters = self._clusters()
        total, done = sum(len(g.holes) for g in self.units.groups), 0
        for relations, groups in clusters:
            for relation in relations:
                self._true[relation] = self._keys(relation)
                self._now[relation] = set(self._true[relation])
            for number in groups:
                group = self.units.groups[number]
                pools = pools_of(group, self.kinds)
                self._shuffle_group(number, pools)
                done += len(group.holes)
                progress("rewiring", done, total)
                if not self.out.keys().isdisjoint(relation for relation, _, _ in group.parts):
                    self.pools[number] = pools_of(group, self.kinds)
            if self.out.keys().isdisjoint(relations):  # only the repair needs these sets later
                for relation in relations:
                    del self._true[relation], self._now[relation]
        self._index()

    def changed(self) -> int:
        """Count the triples that are not in the true graph."""
        now = self.units.moving_keys()
        return sum(len(set(keys) - self._keys(relation)) for relation, keys in now.items())

    def may_exchange(self, group: UnitGroup, first: int, second: int, *, restoring: bool = False) -> bool:
        """Whether two units may exchange their holes.

        With `restoring`, the exchange may create a triple of the true graph.
        """
        one, two = group.holes[first], group.holes[second]
        bundle, other = group.bundles[first], group.bundles[second]
        if one == two or bundle[0] == other[0]:
            return False
        if not (self.kinds.fit(one, two) and self.kinds.fit(bundle[0], other[0])):
            return False
        for hole, nodes in ((one, other), (two, bundle)):
            for (relation, outward, _), node in zip(group.parts, nodes):
                if node == hole:
                    return False
                key = hole * self._count + node if outward else node * self._count + hole
                if key in self._now[relation] or (not restoring and key in self._true[relation]):
                    return False
        return True

    def exchange(self, number: int, first: int, second: int) -> None:
        """Exchange the holes of two units of a group; a second call undoes the exchange."""
        group = self.units.groups[number]
        self._note(number, group, (first, second), remove=True)
        holes = group.holes
        holes[first], holes[second] = holes[second], holes[first]
        self._note(number, group, (first, second), remove=False)

    def ends(self, relation: int, *, outward: bool) -> list[int]:
        """Return the subjects (`outward`) or the objects of a watched relation; exchanges never change these sets."""
        key = (relation, outward)
        if key not in self._ends:
            self._ends[key] = sorted(
                node for node, edges in (self.out if outward else self.into)[relation].items() if edges
            )
        return self._ends[key]

    def ports(self, number: int, units: Sequence[int]) -> set[Port]:
        """Return the ports whose edges change in an exchange of these units."""
        group, found = self.units.groups[number], set()
        for unit in units:
            for relation, subject, object_ in group.triples(unit):
                found |= {(relation, True, subject), (relation, False, object_)}
        return found

    def _note(self, number: int, group: UnitGroup, units: Sequence[int], *, remove: bool) -> None:
        for unit in units:
            for relation, subject, object_ in group.triples(unit):
                key = subject * self._count + object_
                if remove:
                    self._now[relation].discard(key)
                else:
                    self._now[relation].add(key)
                if self._indexed and relation in self.out:
                    if remove:
                        del self.out[relation][subject][object_], self.into[relation][object_][subject]
                    else:
                        self.out[relation].setdefault(subject, {})[object_] = (number, unit)
                        self.into[relation].setdefault(object_, {})[subject] = (number, unit)

    def _shuffle_group(self, number: int, pools: Pools) -> None:
        group = self.units.groups[number]
        before = list(group.holes)
        order = list(range(len(before)))
        for turn in range(PASSES):
            self.chance.shuffle(order)
            for unit in order:
                moved = group.holes[unit] != before[unit]
                # units that were exchanged before are exchanged only with the most similar units
                tries = TRIES if not moved else (2,) if turn else ()
                for partner in pools.partners(unit, self.chance, tries):
                    if self.may_exchange(group, unit, partner):
                        self.exchange(number, unit, partner)
                        break

    def _keys(self, relation: int) -> set[int]:
        facts = self.units.facts
        return set((facts.subjects[relation] * self._count + facts.objects[relation]).tolist())

    def _clusters(self) -> list[tuple[list[int], list[int]]]:
        """Return sets of relations that share groups of units, with these groups."""
        root: dict[int, int] = {}

        def find(relation: int) -> int:
            while root.setdefault(relation, relation) != relation:
                relation = root[relation]
            return relation

        for group in self.units.groups:
            for relation, _, _ in group.parts:
                root[find(relation)] = find(group.parts[0][0])
        found: dict[int, tuple[list[int], list[int]]] = {}
        for relation in sorted(root):
            found.setdefault(find(relation), ([], []))[0].append(relation)
        for number, group in enumerate(self.units.groups):
            found[find(group.parts[0][0])][1].append(number)
        return [found[key] for key in sorted(found)]

    def _index(self) -> None:
        self._indexed = True
        for relation in self.out:
            subjects, objects = self.units.fixed.get(relation, ((), ()))
            for subject, object_ in zip(map(int, subjects), map(int, objects)):
                self.out[relation].setdefault(subject, {})[object_] = (-1, -1)
                self.into[relation].setdefault(object_, {})[subject] = (-1, -1)
        for number, group in enumerate(self.units.groups):
            if any(relation in self.out for relation, _, _ in group.parts):
                for unit in range(len(group.holes)):
                    self._note(number, group, (unit,), remove=False)
