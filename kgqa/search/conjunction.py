"""Joins for questions about several topics: the paths from all topics must meet at the answer or at a mediator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.paths import Ends
from kgqa.graph.queries import PATHS
from kgqa.model import Candidate, Entity, Join, RelationPath, Value
from kgqa.search.tolerance import TOLERATED
from kgqa.trace import GaveUp, Joined
from kgqa.trace.trace import Trace

MAX_FIRST = 40
"""Most paths for which joins are searched; the best paths are taken."""
MAX_PARTNERS = 60
"""Most paths per further topic that are tried as partners of a path; the best paths are taken."""
AHEAD = 10
"""How many paths are looked up together."""
MAX_ENDS = 2000
"""Most end nodes of a path that are compared in memory; with more end nodes, a query tests whether paths meet."""


def join_topics(
    ranked: Sequence[Candidate],
    partners: Mapping[Entity, Sequence[Candidate]],
    *,
    finder: JoinFinder,
    trace: Trace,
    alternatives: int = 1,
) -> list[Candidate]:
    """Join paths that start at different topics and meet; paths that meet the most topics come first.

    A partner of a path is a one-hop path from a different topic. Two paths meet if they have a common end node, or if
    both pass the same mediator, as in "who played this part in that film".

    Args:
        ranked: Paths from any of the topics, best first.
        partners: Map from a topic to its one-hop paths, best first; a mediator does not count as a hop.
        finder: Finds the joins, and caches end nodes for this question.
        trace: Records the joins.
        alternatives: Most partners of a path. Each partner gives a separate candidate, and a chooser decides later.
            If 1, the search ends at the first path that meets all topics.

    Returns:
        Candidates with joins, approximate if a query timed out; empty if no paths meet.
    """
    timed_out = finder.timed_out
    found: list[Candidate] = []
    for number, candidate in enumerate(ranked[:MAX_FIRST]):
        if number % AHEAD == 0:
            finder.look_up(ranked[number : number + AHEAD])
        others = [topic for topic in partners if topic != candidate.path.topic]
        joined = _joined(candidate, others, partners, finder, alternatives)
        found += joined
        if alternatives == 1 and joined and len(joined[0].joins) == len(others):
            break
    found.sort(key=lambda candidate: -len(candidate.joins))
    if finder.timed_out and not timed_out:
        trace.record(GaveUp(error="testing which paths meet took too long"))
    most = max((len(c.joins) + 1 for c in found), default=0)
    trace.record(Joined(paths=tuple(c.words for c in found[:5]), topics=most))
    return found


def _joined(
    candidate: Candidate,
    others: Sequence[Entity],
    partners: Mapping[Entity, Sequence[Candidate]],
    finder: JoinFinder,
    alternatives: int,
) -> list[Candidate]:
    """Join a path with partners from all topics that it meets; one candidate per partner from the first such topic."""
    every: list[tuple[Join, ...]] = [()]
    for topic in others:
        near = partners[topic][:MAX_PARTNERS]
        limit = alternatives if every == [()] else 1
        longer = []
        for joins in every:
            met = finder.some(candidate, joins, near, limit)
            longer += [(*joins, join) for join in met] or [joins]
        every = longer
    if every == [()]:
        return []
    approximate = candidate.approximate or finder.timed_out
    return [replace(candidate, joins=joins, approximate=approximate) for joins in every]


_Ends = tuple[frozenset[Value], bool]
"""Some end nodes of a path, and whether the path has further end nodes."""


def _may_meet(here: _Ends, there: _Ends) -> bool:
    """Return whether two paths have, or because of incomplete lists may have, a common end node."""
    return not here[0].isdisjoint(there[0]) or bool(here[1] and there[0]) or bool(there[1] and here[0])


class JoinFinder:
    """Tests which paths of a question meet, and caches the end nodes of paths.

    Attributes:
        timed_out: Whether a query timed out; joins may then be missing.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self.timed_out = False
        self._known: dict[RelationPath, _Ends] = {}

    def look_up(self, candidates: Sequence[Candidate]) -> None:
        """Look up the end nodes of these paths, and the mediators on them, in few queries."""
        self._ends(part for each in candidates for part in self._parts(each.path))

    def some(
        self, candidate: Candidate, joins: Sequence[Join], partners: Sequence[Candidate], limit: int
    ) -> list[Join]:
        """Return joins of a candidate with at most `limit` of the partners; the candidate already has `joins`.

        Joins at a mediator are tried before joins at the end of the path, because they are a closer connection.
        """
        found: list[Join] = []
        for part in self._parts(candidate.path):
            (here,) = self._ends([part])
            paths = [each.path for each in partners]
            if part != candidate.path:
                paths = [RelationPath(each.topic, each.steps[:1]) for each in paths if self._begins_at_mediator(each)]
            others = list(dict.fromkeys(paths)) if here[0] else []
            for start in range(0, len(others), PATHS):
                some = others[start : start + PATHS]
                near = [(Join(len(part), path), ends) for path, ends in zip(some, self._ends(some))]
                near = [(join, ends) for join, ends in near if _may_meet(here, ends)]
                found += self._met(candidate, joins, near, here)
                if len(found) >= limit:
                    return found[:limit]
        return found

    def _parts(self, path: RelationPath) -> list[RelationPath]:
        """Return the parts of a path up to its mediators, the last first, and the path."""
        at = [at for at in range(len(path) - 1, 0, -1) if self._graph.tables.leads_to_mediator(path.steps[at - 1])]
        return [*(RelationPath(path.topic, path.steps[:each]) for each in at), path]

    def _begins_at_mediator(self, path: RelationPath) -> bool:
        return self._graph.tables.leads_to_mediator(path.steps[0])

    def _ends(self, paths: Iterable[RelationPath]) -> list[_Ends]:
        paths = list(paths)
        new = [path for path in dict.fromkeys(paths) if path not in self._known]
        for path, ends in zip(new, self._tolerantly([Candidate(path, "") for path in new], MAX_ENDS)):
            self._known[path] = (frozenset(ends.values), ends.approximate) if ends is not None else (frozenset(), False)
        return [self._known[path] for path in paths]

    def _met(
        self, candidate: Candidate, joins: Sequence[Join], near: Sequence[tuple[Join, _Ends]], here: _Ends
    ) -> list[Join]:
        """Return those of the joins with which the candidate has ends."""
        is_free = not (joins or candidate.restricted or candidate.conditions)
        sure = {j for j, ends in near if is_free and j.at == len(candidate.path) and not here[0].isdisjoint(ends[0])}
        tested = [join for join, _ in near if join not in sure]
        ends_of = self._tolerantly([replace(candidate, joins=(*joins, join)) for join in tested], 1)
        sure |= {join for join, ends in zip(tested, ends_of) if ends is not None and ends.values}
        return [join for join, _ in near if join in sure]

    def _tolerantly(self, candidates: Sequence[Candidate], limit: int) -> list[Ends | None]:
        """Return the ends of each candidate, and None where the query failed."""
        found = self._graph.paths.ends(candidates, limit=limit, tolerated=TOLERATED)
        self.timed_out = self.timed_out or any(isinstance(ends, TOLERATED) for ends in found)
        return [None if isinstance(ends, TOLERATED) else ends for ends in found]
