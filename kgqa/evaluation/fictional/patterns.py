"""Patterns of edges from gold queries, and their matches in a graph during rewiring."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kgqa.evaluation.fictional.facts import Facts
from kgqa.evaluation.fictional.rewiring import Port, Rewiring
from kgqa.training.gold_queries import Untranslatable, is_entity, is_variable, query_facts

MAX_ROWS = 50_000
SAMPLE = 6
"""Number of nodes that are tried as the unknown end of a missing edge."""

Binding = dict[int, int]
Missing = tuple[int, int, int]
"""An edge that a match needs and the graph does not have: relation, subject, object."""


@dataclass(frozen=True)
class Pattern:
    """The pattern of a gold query, with numbers: 0, 1, ... for nodes of the graph and -1, -2, ... for variables.

    `edges`: triples of subject, relation and object, in the order of matching; `different`: pairs that must not be
    equal; `answer`: the variable that stands for the answer.
    """

    edges: tuple[tuple[int, int, int], ...]
    different: tuple[tuple[int, int], ...]
    answer: int

    @property
    def relations(self) -> tuple[int, ...]:
        """The distinct relations of the pattern."""
        return tuple(dict.fromkeys(relation for _, relation, _ in self.edges))

    @property
    def constants(self) -> frozenset[int]:
        """The nodes of the graph in the pattern."""
        return frozenset(term for s, _, o in self.edges for term in (s, o) if term >= 0)


def pattern_of(sparql: str, facts: Facts) -> Pattern | None:
    """Return the pattern of a gold query.

    Returns None if the query is more than a pattern of edges, or contains terms that are not in the graph.
    """
    try:
        answer, asked_facts, unequal, values = query_facts(sparql)
    except Untranslatable:
        return None
    relations = {name: n for n, name in enumerate(facts.relations)}
    variables: dict[Any, int] = {}

    def number(term: Any) -> int | None:
        """Return the number of a node or variable; None for a node that is not in the graph."""
        term = values.get(term, term)
        return variables.setdefault(term, -1 - len(variables)) if is_variable(term) else facts.number(term.n3())

    edges = [(number(s), relations.get(step.relation), number(o)) for s, step, o in asked_facts]
    if not variables or any(part is None for edge in edges for part in edge):
        return None
    # the variable asked for may be bound to an expression (`BIND(?x AS ?value)`)
    asked = variables.get(answer, -1)
    different = [(number(one), number(other)) for one, other in unequal if is_variable(other) or is_entity(other)]
    ordered = _ordered(edges)  # type: ignore[arg-type]
    if ordered is None:
        return None
    apart = tuple((one, other) for one, other in different if one is not None and other is not None)
    return Pattern(ordered, apart, asked)


def _ordered(edges: Sequence[tuple[int, int, int]]) -> tuple[tuple[int, int, int], ...] | None:
    """Order edges such that each has a known end when it is matched; None if there is no such order."""
    left, known, found = list(dict.fromkeys(edges)), set(), []
    while left:
        ready = [sum(end >= 0 or end in known for end in (s, o)) for s, _, o in left]
        best = max(range(len(left)), key=lambda n: (ready[n], -n))
        if not ready[best]:
            return None
        edge = left.pop(best)
        known |= {edge[0], edge[2]}
        found.append(edge)
    return tuple(found)


@dataclass(frozen=True)
class _Step:
    """An edge of a pattern in matching order.

    `live`: variables with a value before the edge is matched; `names`: variables with a value afterwards; `kept`:
    indices in `names` of the variables that later steps need; `tests`: inequalities to test after the match.
    """

    edge: tuple[int, int, int]
    live: tuple[int, ...]
    names: tuple[int, ...]
    kept: tuple[int, ...]
    tests: tuple[tuple[int, int], ...]


@lru_cache(maxsize=100_000)
def _steps(pattern: Pattern) -> tuple[_Step, ...]:
    live: list[int] = []
    seen: set[int] = set()
    found = []
    tested: set[tuple[int, int]] = set()
    for place, (subject, relation, object_) in enumerate(pattern.edges):
        seen |= {subject, object_}
        later = {term for s, _, o in pattern.edges[place + 1 :] for term in (s, o)} | {pattern.answer}
        names = list(dict.fromkeys([*live, *(t for t in (subject, object_) if t < 0)]))
        tests = [pair for pair in pattern.different if pair not in tested and all(t >= 0 or t in seen for t in pair)]
        tested |= {*tests}
        # a variable of an inequality is needed until both of its variables have a value
        later |= {t for pair in pattern.different if pair not in tested for t in pair}
        kept = tuple(n for n, name in enumerate(names) if name in later)
        found.append(_Step((subject, relation, object_), tuple(live), tuple(names), kept, tuple(tests)))
        live = [names[n] for n in kept]
    return tuple(found)


def answers(pattern: Pattern, world: Rewiring, reads: set[Port] | None = None) -> set[int] | None:
    """Return the values of the answer variable in all matches; None if the search is too large.

    Args:
        reads: a set to which the ports that were read are added.
    """
    reads = set() if reads is None else reads
    rows: set[tuple[int, ...]] = {()}
    steps = _steps(pattern)
    for step in steps:
        grown = _one_variable(step, rows, world, reads) if _is_simple(step) else _joined(step, rows, world, reads)
        if grown is None:
            return None
        rows = grown
    last = steps[-1]
    place = [last.names[n] for n in last.kept].index(pattern.answer)
    return {row[place] for row in rows}


def _is_simple(step: _Step) -> bool:
    """Whether at most one variable has a value before and after the step; if so, a set of nodes is enough."""
    subject, _, object_ = step.edge
    return (
        len(step.live) <= 1
        and len(step.kept) == 1
        and subject != object_
        and all(min(pair) == step.names[step.kept[0]] and max(pair) >= 0 for pair in step.tests)
    )


def _one_variable(
    step: _Step, rows: set[tuple[int, ...]], world: Rewiring, reads: set[Port]
) -> set[tuple[int, ...]] | None:
    subject, relation, object_ = step.edge
    known = {row[0] for row in rows} if step.live else None
    kept = step.names[step.kept[0]]
    # start from the known end; prefer a constant, because its edges are read only once
    outward = subject >= 0 or (object_ < 0 and step.live == (subject,))
    edges = (world.out if outward else world.into)[relation]
    start, end = (subject, object_) if outward else (object_, subject)
    starts = [start] if start >= 0 else sorted(known or ())
    reads.update([(relation, outward, node) for node in starts])
    ends: set[int] = set()
    for node in starts:
        ends.update(edges.get(node, ()))
    if start >= 0 and known is not None:
        ends = ends & known if end == step.live[0] else ends
        if end != step.live[0]:
            return _joined(step, rows, world, reads)
    if kept != end:
        return _joined(step, rows, world, reads)
    ends.difference_update([max(pair) for pair in step.tests])
    return None if len(ends) > MAX_ROWS else {(node,) for node in ends}


def _joined(step: _Step, rows: set[tuple[int, ...]], world: Rewiring, reads: set[Port]) -> set[tuple[int, ...]] | None:
    subject, relation, object_ = step.edge
    grown: set[tuple[int, ...]] = set()
    for row in rows:
        bound = dict(zip(step.live, row))
        for values in _matches(subject, relation, object_, bound, world, reads):
            if subject == object_ and values[0] != values[1]:
                continue
            if subject < 0:
                bound[subject] = values[0]
            if object_ < 0:
                bound[object_] = values[1]
            if all(bound.get(a, a) != bound.get(b, b) for a, b in step.tests):
                full = [bound[name] for name in step.names]
                grown.add(tuple(full[n] for n in step.kept))
        if len(grown) > MAX_ROWS:
            return None
    return grown


def _matches(
    subject: int, relation: int, object_: int, bound: Binding, world: Rewiring, reads: set[Port]
) -> list[tuple[int, int]]:
    """Return the edges of a relation that agree with the values of variables, as pairs of subject and object."""
    start = subject if subject >= 0 else bound.get(subject)
    end = object_ if object_ >= 0 else bound.get(object_)
    if start is not None:
        reads.add((relation, True, start))
        found = world.out[relation].get(start, {})
        return [(start, end)] if end in found else [] if end is not None else [(start, other) for other in found]
    assert end is not None
    reads.add((relation, False, end))
    return [(other, end) for other in world.into[relation].get(end, {})]


def solutions(
    pattern: Pattern, world: Rewiring, chance: random.Random, *, bound: Binding, missing: int = 0, steps: int = 400
) -> Iterator[tuple[Binding, list[Missing]]]:
    """Yield, in random order, matches of a pattern with at most `missing` edges that are not in the graph.

    A missing edge is proposed only between two nodes that have edges of the same relation, because only then can an
    exchange create the edge.

    Args:
        bound: variables with known values.
        missing: maximum number of missing edges per match.
        steps: maximum number of nodes to visit.
    """
    left = [steps]

    def search(place: int, bound: Binding, lacking: list[Missing]) -> Iterator[tuple[Binding, list[Missing]]]:
        if place == len(pattern.edges):
            yield bound, lacking
            return
        subject, relation, object_ = pattern.edges[place]
        start = subject if subject >= 0 else bound.get(subject)
        end = object_ if object_ >= 0 else bound.get(object_)
        there = _matches(subject, relation, object_, bound, world, set())
        chance.shuffle(there)
        options = [(pair, False) for pair in there]
        if len(lacking) < missing and not (there and start is not None and end is not None):
            options += [(pair, True) for pair in _possible(start, relation, end, world, chance)]
        for (one, other), absent in options:
            left[0] -= 1
            if left[0] < 0:
                return
            now = {**bound, subject: one, object_: other}
            touched = any(a in (subject, object_) or b in (subject, object_) for a, b in pattern.different)
            if touched and any(now.get(a, a) == now.get(b, b) for a, b in pattern.different):
                continue
            yield from search(place + 1, now, [*lacking, (relation, one, other)] if absent else lacking)

    yield from search(0, dict(bound), [])


def _possible(
    start: int | None, relation: int, end: int | None, world: Rewiring, chance: random.Random
) -> list[tuple[int, int]]:
    """Return pairs of nodes that an exchange could connect: both have an edge of the relation that is not fixed."""

    def movable(edges: dict[int, tuple[int, int]]) -> bool:
        return any(group >= 0 for group, _ in edges.values())

    out, into = world.out[relation], world.into[relation]
    if (start is not None and not movable(out.get(start, {}))) or (end is not None and not movable(into.get(end, {}))):
        return []
    if start is not None and end is not None:
        return [(start, end)] if end not in out[start] else []
    nodes = world.ends(relation, outward=start is None)
    picked = [nodes[chance.randrange(len(nodes))] for _ in range(SAMPLE)] if nodes else []
    found = []
    for node in dict.fromkeys(picked):
        s = node if start is None else start
        o = node if end is None else end
        if s != o and o not in out.get(s, {}) and movable(out.get(s, {})) and movable(into.get(o, {})):
            found.append((s, o))
    return found
