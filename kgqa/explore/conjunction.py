"""Joins for questions about several topics: paths from each must meet, at the answer or at a mediator before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Join, RelationPath, Value
from kgqa.trace import Trace

MAX_FIRST = 40
"""The most paths, best first, for which partners are looked for."""
MAX_PARTNERS = 60
"""The most paths of another topic, best first, that are tried with each."""
MAX_ENDS = 2000
"""The most ends of a path that are compared here; for longer lists the graph is asked."""


def join_topics(
    ranked: Sequence[Candidate],
    partners: Mapping[Entity, Sequence[Candidate]],
    *,
    finder: JoinFinder,
    trace: Trace,
    alternatives: int = 1,
) -> list[Candidate]:
    """Return paths that meet paths from other topics: those that meet most topics first, then in the given order.

    A partner is one logical hop long. It may meet a path at its end, or, if both pass the same mediator, there: who
    played this part in that film.

    Args:
        ranked: Paths from any of the topics, best first.
        partners: For every topic its paths of one logical hop, best first; `MAX_PARTNERS` of them are tried.
        finder: Finds joins; it caches the ends looked up for this question.
        trace: Records the joins.
        alternatives: How many partners of a path are returned, each as a candidate of its own, for a chooser that can
            tell which is meant. With more than one the search continues after all topics have met.

    Returns:
        Candidates with joins, approximate if a query timed out; empty if nothing meets.
    """
    timed_out = finder.timed_out
    found: list[Candidate] = []
    for candidate in ranked[:MAX_FIRST]:
        others = [topic for topic in partners if topic != candidate.path.topic]
        joined = _joined(candidate, others, partners, finder, alternatives)
        found += joined
        if alternatives == 1 and joined and len(joined[0].joins) == len(others):
            break
    found.sort(key=lambda candidate: -len(candidate.joins))
    if finder.timed_out and not timed_out:
        trace.event("gave_up", error="finding out which paths meet took too long")
    trace.event(
        "joined" if found else "no_intersection",
        paths=[c.words for c in found[:5]],
        topics=max((len(c.joins) + 1 for c in found), default=0),
    )
    return found


def _joined(
    candidate: Candidate,
    others: Sequence[Entity],
    partners: Mapping[Entity, Sequence[Candidate]],
    finder: JoinFinder,
    alternatives: int,
) -> list[Candidate]:
    """Return a path with a join for each other topic that it meets, once per partner of the first such topic."""
    every: list[tuple[Join, ...]] = [()]
    for topic in others:
        near = partners[topic][:MAX_PARTNERS]
        most = alternatives if every == [()] else 1
        longer = []
        for joins in every:
            met = finder.some(candidate, joins, near, most)
            longer += [(*joins, join) for join in met] or [joins]
        every = longer
    if every == [()]:
        return []
    approximate = candidate.approximate or finder.timed_out
    return [replace(candidate, joins=joins, approximate=approximate) for joins in every]


_Ends = tuple[frozenset[Value], bool]
"""Some ends of a path, and whether it has more."""


def _may_meet(here: _Ends, there: _Ends) -> bool:
    """Return whether two paths have an end in common, or may have: if a list is incomplete, only the graph can tell."""
    return not here[0].isdisjoint(there[0]) or bool(here[1] and there[0]) or bool(there[1] and here[0])


class JoinFinder:
    """Finds out which paths of one question meet, and looks up the ends of each path once.

    Attributes:
        timed_out: A query timed out, so that a join may be missing.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self.timed_out = False
        self._ends: dict[RelationPath, _Ends] = {}

    def some(self, candidate: Candidate, joins: Sequence[Join], partners: Sequence[Candidate], most: int) -> list[Join]:
        """Return the first `most` partners that meet the path.

        A mediator is tried before the end, because it is the closer connection.
        """
        path = candidate.path
        found: list[Join] = []
        for place in self._places(path):
            paths = (p.path if place == len(path) else self._onto_mediator(p.path) for p in partners)
            others = [other for other in dict.fromkeys(paths) if other is not None]
            here: _Ends | None = None
            for number, other in enumerate(others):
                if here is None:
                    start = RelationPath(path.topic, path.steps[:place])
                    self._look_up([start, *others[: self._graph.concurrency - 1]])
                    here = self._ends[start]
                if other not in self._ends:
                    self._look_up(others[number : number + self._graph.concurrency])
                if _may_meet(here, self._ends[other]) and self._meets(candidate, (*joins, Join(place, other))):
                    found.append(Join(place, other))
                    if len(found) == most:
                        return found
        return found

    def _places(self, path: RelationPath) -> list[int]:
        inner = [place for place in range(1, len(path)) if self._graph.leads_to_mediator(path.steps[place - 1])]
        return [*reversed(inner), len(path)]

    def _onto_mediator(self, path: RelationPath) -> RelationPath | None:
        first = path.steps[:1]
        return RelationPath(path.topic, first) if self._graph.leads_to_mediator(first[0]) else None

    def _look_up(self, paths: Sequence[RelationPath]) -> None:
        """Look up the ends of paths, concurrently."""
        new = [path for path in dict.fromkeys(paths) if path not in self._ends]
        timeouts = (StoreTimeout, PartialResult)
        for path, ends in zip(
            new, self._graph.map(lambda path: self._graph.ends(path, limit=MAX_ENDS), new, tolerated=timeouts)
        ):
            self.timed_out = self.timed_out or isinstance(ends, timeouts)
            self._ends[path] = (
                (frozenset(), False) if isinstance(ends, timeouts) else (frozenset(ends.values), ends.approximate)
            )

    def _meets(self, candidate: Candidate, joins: Sequence[Join]) -> bool:
        try:
            met = self._graph.ends(candidate.path, joins=joins, restricted=candidate.restricted, limit=1)
        except (StoreTimeout, PartialResult):
            self.timed_out = True
            return False
        return bool(met.values)
