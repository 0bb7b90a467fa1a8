"""The decisions after each hop: which path is best, and whether the search can stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.judging.judge import Judge
from kgqa.methods.tournament.ranking import Ranking
from kgqa.model import Candidate, Entity, Named, Value
from kgqa.search.beam import HopResult
from kgqa.search.conjunction import JoinFinder
from kgqa.search.cues import Cues
from kgqa.settings.values import Settings
from kgqa.trace import Accepted, GaveUp
from kgqa.trace.trace import Trace

Ranked = list[tuple[Candidate, float | None]]
"""Paths with their scores, best first; scores are None if a language model compared the paths."""
ALTERNATIVES = 4
"""Most joins of one path with paths from other topics; a language model chooses among these joins."""
COMPARED = 10
"""Most joined paths that a language model compares."""
ENDS = 2000


class Decisions:
    """The decisions for one question. A `judge` ends the search instead of the setting `explore.stop`."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        topics: Sequence[Named],
        ranking: Ranking,
        cues: Cues,
        settings: Settings,
        trace: Trace,
        judge: Judge | None = None,
    ) -> None:
        self._graph = graph
        self._judge = judge
        self._topics = topics
        self._ranking = ranking
        self._cues = cues
        self._settings = settings
        self._trace = trace
        self._join_finder = JoinFinder(graph)
        self._last: tuple[HopResult | None, Ranked] = (None, [])
        self._ends_before: frozenset[Value] | None = None
        self.reached: list[HopResult] = []
        """The finished hops, up to the end of the search or of the question's budget."""

    def ranked_after(self, hops: Sequence[HopResult]) -> Ranked:
        """Rank the paths that may be the answer, best first; paths joined with other topics come first."""
        if not hops or self._last[0] is not hops[-1]:
            ranked = self._by_model(hops) if self._ranking.by_model else self._by_score(hops)
            self._last = (hops[-1] if hops else None, ranked)
        return self._last[1]

    def finalists(self, hops: Sequence[HopResult]) -> list[Candidate]:
        """Return the paths that a judge reads, best first: joined paths and kept paths take turns."""
        kept = hops[-1].kept if hops else ()
        turns = zip_longest(self._joined(hops)[:COMPARED], kept)
        return list(dict.fromkeys(each for pair in turns for each in pair if each is not None))

    def enough(self, hops: Sequence[HopResult]) -> bool:
        """Return whether the search can stop after the hops in `hops`."""
        self.reached = list(hops)
        settings = self._settings
        if self._judge is not None:
            return self._judge.judge(self.finalists(hops)) == "complete"
        # an answer composed from the paths of all hops also needs the later hops
        composed = settings.ask.compose == "composed" and self._ranking.by_model
        if settings.explore.combine == "intersect" and not composed and self._all_meet(self.ranked_after(hops)):
            return True
        if settings.explore.stop == "converged":
            return self._converged(self.ranked_after(hops))
        return settings.explore.stop == "accepted" and self._accepted(self.ranked_after(hops))

    def retained(self, hops: Sequence[HopResult]) -> list[Candidate]:
        """Return the paths from which to compose an answer: joined paths, then the kept paths, last hop first."""
        kept = (candidate for hop in reversed(hops) for candidate in hop.kept)
        return list(dict.fromkeys([*self._joined(hops)[:COMPARED], *kept]))

    def best_so_far(self) -> Ranked:
        """Return the kept paths of the finished hops, last hop first, without further comparisons."""
        kept = [candidate for hop in reversed(self.reached) for candidate in hop.kept]
        return [(replace(candidate, approximate=True), None) for candidate in dict.fromkeys(kept)]

    def _by_score(self, hops: Sequence[HopResult]) -> Ranked:
        ranking = self._ranking
        alone: Ranked = list(ranking.best_first([candidate for hop in hops for candidate in hop.kept]))
        if not self._joins(hops):
            return alone
        # a join with a second topic is stronger evidence than a score, so all paths after the prefilter may be joined
        every = ranking.best_first([candidate for hop in hops for candidate in hop.shortlist])
        joined = self._join_finder.join_topics([candidate for candidate, _ in every], self._near(hops), self._trace)
        scores = {(c.path, c.restricted): score for c, score in every}
        if self._join_finder.timed_out:
            alone = [(replace(candidate, approximate=True), score) for candidate, score in alone]
        return [(candidate, scores[candidate.path, candidate.restricted]) for candidate in joined] + alone

    def _by_model(self, hops: Sequence[HopResult]) -> Ranked:
        ranking = self._ranking
        kept = list(hops[-1].kept) if hops else []
        pool = [*self._joined(hops)[:COMPARED], *kept]
        if len(pool) > len(kept) or not ranking.orders_winners:
            pool = ranking.compare_finalists(pool)
        if self._settings.explore.retain == "chosen":
            pool = self._with_reserves(pool, hops)
        return [(candidate, None) for candidate in pool]

    def _with_reserves(self, pool: Sequence[Candidate], hops: Sequence[HopResult]) -> list[Candidate]:
        """Add the paths that the model chose in earlier hops and rounds; if it chose none, add the prefilter's best."""
        kept = (candidate for hop in reversed(hops) for candidate in hop.kept)
        chosen = dict.fromkeys([*pool, *kept, *self._ranking.picked])
        return list(chosen) or [candidate for hop in hops[-1:] for candidate in hop.shortlist[:1]]

    def _joined(self, hops: Sequence[HopResult]) -> list[Candidate]:
        """Join paths of several topics, with at most `ALTERNATIVES` joins per path; kept paths come first."""
        if not self._joins(hops):
            return []
        others = self._ranking.best_first([candidate for hop in hops for candidate in hop.shortlist])
        kept = [candidate for hop in reversed(hops) for candidate in hop.kept]
        every = list({(c.path, c.restricted): c for c in [*kept, *(c for c, _ in others)]}.values())
        near = self._near(hops)
        partners = {topic: [*(c for c in kept if c.path.topic == topic), *near[topic]] for topic in near}
        return self._join_finder.join_topics(every, partners, self._trace, alternatives=ALTERNATIVES)

    def _joins(self, hops: Sequence[HopResult]) -> bool:
        return len(self._topics) > 1 and bool(hops) and self._settings.explore.combine == "intersect"

    def _near(self, hops: Sequence[HopResult]) -> dict[Entity, list[Candidate]]:
        """Return the one-hop paths of each topic, best first; a mediator does not count as a hop."""
        near = self._ranking.best_first([candidate for candidate in hops[0].pool if len(candidate.hops) == 1])
        topics = [topic.value for topic in self._topics if isinstance(topic.value, Entity)]
        return {topic: [c for c, _ in near if c.path.topic == topic] for topic in topics}

    def _all_meet(self, ranked: Ranked) -> bool:
        """Return whether the best path meets paths from all other topics and is accepted by the language model, if any.

        The path may have fewer hops than the question's wording suggests; a stricter rule would cost 2 points on CWQ.
        """
        if len(self._topics) < 2 or not ranked or len(ranked[0][0].joins) < len(self._topics) - 1:
            return False
        if self._ranking.by_model and not self._ranking.accepts(*ranked[0]):
            return False
        self._trace.record(Accepted(why="it meets all topics", path=ranked[0][0].words))
        return True

    def _accepted(self, ranked: Ranked) -> bool:
        """Return whether the best path so far is accepted as an answer.

        Without a language model, the path must also have at least as many hops as the question's wording suggests.
        """
        if not ranked or (not self._ranking.by_model and len(ranked[0][0].hops) < self._cues.hops):
            return False
        if not self._ranking.accepts(*ranked[0]):
            return False
        score = ranked[0][1]
        why = "its score is high enough" if score is not None else "the language model accepts it"
        rounded = None if score is None else round(score, 4)
        self._trace.record(Accepted(why=why, path=ranked[0][0].words, score=rounded))
        return True

    def _converged(self, ranked: Ranked) -> bool:
        """Return whether the best path has the same end nodes as the second best path or the previous hop's best path.

        See the thesis, section 6.2.3.
        """
        sets = [self._ends(candidate) for candidate, _ in ranked[:2]]
        best = sets[0] if sets else None
        same = bool(best) and (best == self._ends_before or (len(sets) > 1 and best == sets[1]))
        self._ends_before = best
        if same:
            self._trace.record(Accepted(why="the answers no longer change", path=ranked[0][0].words))
        return same

    def _ends(self, candidate: Candidate) -> frozenset[Value] | None:
        try:
            found = self._graph.paths.ends([candidate], limit=ENDS)[0]
        except (StoreTimeout, PartialResult) as error:
            self._trace.record(GaveUp(path=candidate.words, error=str(error)))
            return None
        return None if found.approximate else frozenset(found.values)
