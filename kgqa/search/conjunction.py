"""Joins for questions about several topics: the paths from all topics must meet at the answer or at a mediator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kgqa.graph.graph import KnowledgeGraph
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


_Ends = tuple[frozenset[Value], bool]
"""Some end nodes of a path, and whether the path has further end nodes."""


def _may_meet(here: _Ends, there: _Ends) -> bool:
    """Return whether two paths have, or because of incomplete lists may have, a common end node."""
    return not here[0].isdisjoint(there[0]) or bool(here[1] and there[0]) or bool(there[1] and here[0])


class JoinFinder:
    """Finds the paths of one question that meet, and keeps the end nodes of paths.

    Attributes:
        timed_out: Whether a query timed out; joins may then be missing.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self.timed_out = False
        self._known: dict[RelationPath, _Ends] = {}

    def join_topics(
        self,
        ranked: Sequence[Candidate],
        partners: Mapping[Entity, Sequence[Candidate]],
        trace: Trace,
        *,
        alternatives: int = 1,
    ) -> list[Candidate]:
        """Join paths that start at different topics and meet; paths that meet the most topics come first.

        A partner of a path is a one-hop path from a different topic. Two paths meet if they have a common end node, or
        if both pass the same mediator, as in "who played this part in that film".

        Args:
            ranked: Paths from any of the topics, best first.
            partners: Map from a topic to its one-hop paths, best first; a mediator does not count as a hop.
            trace: Records the joins.
            alternatives: Most partners of a path. Each partner gives a separate candidate, and a chooser decides later.
                If 1, the search ends at the first path that meets all topics.

        Returns:
            Candidates with joins, approximate if a query timed out; empty if no paths meet.
        """
        timed_out = self.timed_out
        found: list[Candidate] = []
        for number, candidate in enumerate(ranked[:MAX_FIRST]):
            if number % AHEAD == 0:
                self._ends(part for each in ranked[number : number + AHEAD] for part in self._parts(each.path))
            others = [near for topic, near in partners.items() if topic != candidate.path.topic]
            joined = self._joined(candidate, others, alternatives)
            found += joined
            if alternatives == 1 and joined and len(joined[0].joins) == len(others):
                break
        found.sort(key=lambda candidate: -len(candidate.joins))
        if self.timed_out and not timed_out:
            trace.record(GaveUp(error="testing which paths meet took too long"))
        most = max((len(c.joins) + 1 for c in found), default=0)
        trace.record(Joined(paths=tuple(c.words for c in found[:5]), topics=most))
        return found

    def _joined(
        self, candidate: Candidate, others: Sequence[Sequence[Candidate]], alternatives: int
    ) -> list[Candidate]:
        """Join a path with a partner from each topic that it meets; with several partners from the first such topic."""
        every = [candidate]
        for near in others:
            limit = 1 if every[0].joins else alternatives
            every = [each for joined in every for each in self.joined(joined, near[:MAX_PARTNERS], limit) or [joined]]
        if not every[0].joins:
            return []
        return [replace(each, approximate=each.approximate or self.timed_out) for each in every]

    def joined(self, candidate: Candidate, partners: Sequence[Candidate], limit: int) -> list[Candidate]:
        """Return a candidate with a further join, once for each of at most `limit` of the partners.

        Joins at a mediator are tried before joins at the end of the path, because they are a closer connection.
        """
        found: list[Candidate] = []
        for part in self._parts(candidate.path):
            (here,) = self._ends([part])
            paths = [each.path for each in partners]
            if part != candidate.path:
                begins_at_mediator = self._graph.tables.leads_to_mediator
                paths = [
                    RelationPath(each.topic, each.steps[:1]) for each in paths if begins_at_mediator(each.steps[0])
                ]
            others = list(dict.fromkeys(paths)) if here[0] else []
            for start in range(0, len(others), PATHS):
                some = others[start : start + PATHS]
                met = [
                    (replace(candidate, joins=(*candidate.joins, Join(len(part), path))), ends)
                    for path, ends in zip(some, self._ends(some))
                    if _may_meet(here, ends)
                ]
                found += self._with_ends(candidate, met, here)
                if len(found) >= limit:
                    return found[:limit]
        return found

    def _parts(self, path: RelationPath) -> list[RelationPath]:
        """Return the parts of a path up to its mediators, the last first, and the path."""
        at = [at for at in range(len(path) - 1, 0, -1) if self._graph.tables.leads_to_mediator(path.steps[at - 1])]
        return [*(RelationPath(path.topic, path.steps[:each]) for each in at), path]

    def _ends(self, paths: Iterable[RelationPath]) -> list[_Ends]:
        paths = list(paths)
        new = [path for path in dict.fromkeys(paths) if path not in self._known]
        self._known.update(zip(new, self._looked_up([Candidate(path) for path in new], MAX_ENDS)))
        return [self._known[path] for path in paths]

    def _with_ends(self, candidate: Candidate, met: Sequence[tuple[Candidate, _Ends]], here: _Ends) -> list[Candidate]:
        """Return those of the joined candidates that have ends; `met` also has the ends of each last join's path."""
        is_free = not (candidate.joins or candidate.restricted or candidate.conditions)
        at_end = len(candidate.path)
        have = [
            each for each, ends in met if is_free and each.joins[0].at == at_end and not here[0].isdisjoint(ends[0])
        ]
        tested = [each for each, _ in met if each not in have]
        have += [each for each, ends in zip(tested, self._looked_up(tested, 1)) if ends[0]]
        return [each for each, _ in met if each in have]

    def _looked_up(self, candidates: Sequence[Candidate], limit: int) -> list[_Ends]:
        """Return the ends of each candidate; none where the query failed."""
        found = self._graph.paths.ends(candidates, limit=limit, tolerated=TOLERATED)
        self.timed_out = self.timed_out or any(isinstance(ends, TOLERATED) for ends in found)
        return [(frozenset(), False) if isinstance(each, TOLERATED) else (frozenset(each.values), each.approximate)
                for each in found]  # fmt: skip
