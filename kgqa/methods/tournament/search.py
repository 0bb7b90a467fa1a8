"""The search of one question: its hops, joins of their paths, when answers converge, and the path of the answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest

from kgqa.errors import PartialResult, StoreError, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.tournament.path_answers import answer_of_path
from kgqa.methods.tournament.ranking import Ranked, Ranking
from kgqa.model import Answer, Candidate, Entity, Value
from kgqa.search.beam import BeamSettings, HopResult, explore
from kgqa.search.conjunction import JoinFinder
from kgqa.search.entity_selection import select_entities
from kgqa.search.masking import placeholders
from kgqa.settings.values import Settings
from kgqa.text.hints import Option
from kgqa.text.words import paths_key
from kgqa.trace import Accepted, GaveUp, Leaks, PathsRanked, RankedPath, Rejected
from kgqa.trace.trace import BudgetExhausted

ALTERNATIVES = 4
"""Most joins of one path with paths from other topics; a language model chooses among these joins."""
COMPARED = 10
"""Most joined paths that a language model reads."""
ENDS = 2000
NOT_ACCEPTED = "No path was accepted as an answer. This is the answer of the best path."


class Search:
    """What the search has found so far.

    Attributes:
        graph: The graph.
        ranking: What ranks the paths.
        hops: The finished hops.
    """

    def __init__(self, graph: KnowledgeGraph, ranking: Ranking, settings: Settings) -> None:
        self.hops: Sequence[HopResult] = ()
        self.graph, self.ranking, self._settings = graph, ranking, settings
        self._topics = ranking.asked.entities
        self._joins = JoinFinder(graph)
        self._last: tuple[HopResult | None, Ranked] = (None, [])
        self._ends_before: frozenset[Value] | None = None

    def explore(
        self,
        start: Sequence[Candidate],
        beam: BeamSettings,
        enough: Callable[[], bool],
        select: Callable[[Sequence[Candidate]], list[Candidate]] | None = None,
        kept: Sequence[Candidate] = (),
    ) -> None:
        """Explore the graph hop by hop until it is enough; see `search.beam.explore`."""

        def after(hops: Sequence[HopResult]) -> bool:
            self.hops = hops
            return enough()

        self.hops = explore(
            self.graph,
            start,
            beam,
            prefilter=self.ranking.shortlist,
            tournament=self.ranking.tournament,
            trace=self.ranking.trace,
            kept=kept,
            select=select,
            enough=after,
        )

    def within_budget(self, empty: Answer, answer: Callable[[], Answer]) -> Answer:
        """Return the answer with a language model, or the best so far if the question's budget is spent."""
        try:
            found = answer()
        except BudgetExhausted as error:
            found = self.best_so_far(empty, error)
        if view := self.ranking.view:
            self.ranking.trace.record(Leaks(texts=len(view.texts), leaks=view.leaked()))
        return found

    def ranked(self) -> Ranked:
        """Rank the paths that may be the answer by their scores; paths joined with other topics come first."""
        if self.hops and self._last[0] is self.hops[-1]:
            return self._last[1]
        best_first = self.ranking.best_first
        ranked: Ranked = list(best_first([candidate for hop in self.hops for candidate in hop.kept]))
        if self._has_joins:
            # a join with a second topic is stronger evidence than a score, so all paths of the prefilter may be joined
            every = best_first([candidate for hop in self.hops for candidate in hop.shortlist])
            joined = self._joins.join_topics([each for each, _ in every], self._near(), self.ranking.trace)
            scores = {(each.path, each.restricted): score for each, score in every}
            if self._joins.timed_out:
                ranked = [(replace(each, approximate=True), score) for each, score in ranked]
            ranked = [(each, scores[each.path, each.restricted]) for each in joined] + ranked
        self._last = (self.hops[-1] if self.hops else None, ranked)
        return ranked

    def finalists(self) -> list[Candidate]:
        """Return the paths that a language model judges, best first: joined paths and kept paths take turns."""
        turns = zip_longest(self._joined(), self.hops[-1].kept if self.hops else ())
        return list(dict.fromkeys(each for pair in turns for each in pair if each is not None))

    def retained(self) -> list[Candidate]:
        """Return the paths from which to compose an answer: joined paths, then the kept paths, last hop first."""
        return list(dict.fromkeys([*self._joined(), *self._kept()]))

    def _kept(self) -> list[Candidate]:
        return [candidate for hop in reversed(self.hops) for candidate in hop.kept]

    def _joined(self) -> list[Candidate]:
        """Join paths of several topics, with at most `ALTERNATIVES` joins per path; kept paths come first."""
        if not self._has_joins:
            return []
        others = self.ranking.best_first([candidate for hop in self.hops for candidate in hop.shortlist])
        kept = self._kept()
        every = list({(each.path, each.restricted): each for each in [*kept, *(c for c, _ in others)]}.values())
        near = self._near()
        partners = {topic: [*(c for c in kept if c.path.topic == topic), *near[topic]] for topic in near}
        return self._joins.join_topics(every, partners, self.ranking.trace, alternatives=ALTERNATIVES)[:COMPARED]

    @property
    def _has_joins(self) -> bool:
        several = len(self.ranking.asked.topics) > 1
        return several and bool(self.hops) and self._settings.explore.combine == "intersect"

    def _near(self) -> dict[Entity, list[Candidate]]:
        """Return the one-hop paths of each topic, best first; a mediator does not count as a hop."""
        near = self.ranking.best_first([each for each in self.hops[0].pool if len(each.hops) == 1])
        return {topic: [each for each, _ in near if each.path.topic == topic] for topic in self._topics}

    def record_accepted(self, candidate: Candidate, score: float | None) -> bool:
        """Record that a path ends the search; return True."""
        why = "its score is high enough" if score is not None else "the language model accepts it"
        self.ranking.trace.record(Accepted(why=why, path=candidate.words, score=rounded(score)))
        return True

    def meets_all_topics(self, ranked: Ranked) -> bool:
        """Return whether the best path meets paths from all other topics.

        The path may have fewer hops than the question's wording suggests; a stricter rule would cost 2 points on CWQ.
        """
        others = len(self.ranking.asked.topics) - 1
        if others < 1 or not ranked or len(ranked[0][0].joins) < others:
            return False
        self.ranking.trace.record(Accepted(why="it meets all topics", path=ranked[0][0].words))
        return True

    def converges(self, best: Sequence[Candidate]) -> bool:
        """Return whether the best path has the same end nodes as the second best path or the previous hop's best path.

        See the thesis, section 6.2.3.
        """
        sets = [self._ends(candidate) for candidate in best[:2]]
        first = sets[0] if sets else None
        same = bool(first) and (first == self._ends_before or sets[1:] == [first])
        self._ends_before = first
        if same:
            self.ranking.trace.record(Accepted(why="the answers no longer change", path=best[0].words))
        return same

    def _ends(self, candidate: Candidate) -> frozenset[Value] | None:
        try:
            found = self.graph.paths.ends([candidate], limit=ENDS)[0]
        except (StoreTimeout, PartialResult) as error:
            self.ranking.trace.record(GaveUp(path=candidate.words, error=str(error)))
            return None
        return None if found.approximate else frozenset(found.values)

    def select(self, frontier: Sequence[Candidate]) -> list[Candidate]:
        """Restrict the paths that are extended to the entities that the chooser selects, if the settings say so."""
        if self._settings.explore.shape != "path+entity":
            return list(frontier)
        marks, settings, view = placeholders(self._topics), self._settings, self.ranking.view
        # without a tournament there is one prompt; without a prefilter, all entities are offered
        whole = settings.rank.tournament in ("single", "pointwise")

        def shown(entity: Entity, name: str) -> str:
            return marks.get(entity, name) if view is None else view.noted(view.name(entity, name))

        return select_entities(
            self.graph,
            self.ranking.question,
            frontier,
            self.ranking.chooser,
            k=settings.explore.beam,
            pool=sys.maxsize if settings.rank.prefilter == "none" else settings.explore.entity_pool,
            chunk=sys.maxsize if whole else settings.explore.entity_chunk,
            prefilter=self.ranking.prefilter,
            shown=shown,
            worded=lambda candidate: " ".join(view.elements(candidate)) if view else candidate.words,
            named_only=view is not None and not view.published,
            trace=self.ranking.trace,
        )

    def answer(
        self, empty: Answer, ranked: Ranked, accepts: Callable[[Candidate, float | None], bool], by: str
    ) -> tuple[Answer, Candidate | None]:
        """Answer from the accepted path; if there is none, from the best path or not at all, as the settings say.

        Args:
            empty: An answer without results, to fill in.
            ranked: The paths, best first.
            accepts: Whether a path is accepted.
            by: What accepts paths, in words for the user; "" if their scores do.

        Returns:
            The answer, and its path.

        Raises:
            StoreError: A query failed, and no other path has an answer.
        """
        trace, late, skipped, accepted = self.ranking.trace, None, list[str](), True
        for candidate, score in ranked:
            if accepted and not accepts(candidate, score):
                trace.record(
                    Rejected(path=candidate.words, score=None if by else rounded(score), key=self._key(candidate))
                )
                if late:
                    break  # a better path may have had the answer
                if self._settings.ask.on_exhausted != "best":
                    first = candidate is ranked[0][0]
                    return self._rejected(empty, candidate, score, by, first=first), None
                accepted = False
            try:
                found = answer_of_path(self.graph, candidate, score, empty.topics, trace)
            except (StoreTimeout, PartialResult) as error:
                late = error
                trace.record(GaveUp(path=candidate.words, error=str(error)))
                skipped.append(f"Skipped a better path ({candidate.words}) whose answers could not be read: {error}")
                continue
            if found is not None:
                notes = (*empty.notes, *([NOT_ACCEPTED] if by and not accepted else []), *skipped)
                return replace(filled(found, empty, notes), accepted=accepted), candidate
        if late:
            raise late
        reason = "No relation path starts at the topic."
        if any(hop.pool for hop in self.hops):
            chooser = by or "the chooser"
            reason = f"{chooser[0].upper()}{chooser[1:]} selected no candidate."
        reason = "None of the paths found has an answer." if ranked else reason
        return replace(empty, reason=reason, notes=(*empty.notes, *skipped)), None

    def _rejected(self, empty: Answer, candidate: Candidate, score: float | None, by: str, *, first: bool) -> Answer:
        """Return the answer if the best path was rejected, or if not `first` the best of the paths that have ends."""
        which = "No path" if first else "No other path"
        if by:
            reason = f"{which} was accepted by {by} (best: {candidate.words})"
        else:
            accept = Option("accept", self._settings.rank.accept)
            reason = f"{which} scores above {accept} (best: {score or 0.0:.3g}, {candidate.words})"
        if candidate.approximate:
            reason += "; the search was incomplete, so a better path may be missing"
        return replace(empty, reason=f"{reason}.", approximate=candidate.approximate)

    def best_so_far(self, empty: Answer, error: BudgetExhausted) -> Answer:
        """Answer from the finished hops, last hop first; called when the question's budget is spent."""
        trace, spent = self.ranking.trace, replace(empty, status="budget_exhausted", reason=error.reason)
        with trace.grace():
            for candidate in dict.fromkeys(self._kept()):
                try:
                    found = answer_of_path(self.graph, replace(candidate, approximate=True), None, empty.topics, trace)
                except (StoreError, BudgetExhausted) as failure:
                    trace.record(GaveUp(path=candidate.words, error=str(failure)))
                    continue
                if found is not None:
                    notes = (*empty.notes, "The search was not finished. This is the answer of the best path so far.")
                    return replace(filled(found, empty, notes), status=spent.status, reason=spent.reason)
        return spent

    def record_ranked(self, ranked: Ranked) -> None:
        """Record the ranked paths in the trace."""
        paths = tuple(RankedPath(each.words, rounded(score), len(each.joins)) for each, score in ranked[:20])
        self.ranking.trace.record(PathsRanked(paths=paths, keys=tuple(self._key(each) for each, _ in ranked)))

    def _key(self, candidate: Candidate) -> str:
        return paths_key([candidate.path, *(join.path for join in candidate.joins)], self.graph.schema)


def filled(found: Answer, empty: Answer, notes: tuple[str, ...]) -> Answer:
    """Return the answer of a path with the question, the method, the topics and notes."""
    return replace(
        found, question=empty.question, method=empty.method, notes=(*notes, *found.notes), topics=empty.topics
    )


def rounded(score: float | None) -> float | None:
    """Round a score for the trace."""
    return None if score is None else round(score, 4)
