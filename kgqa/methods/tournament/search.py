"""The search of one question: its hops, joins of their paths, when answers converge, and the path of the answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from kgqa.errors import StoreError
from kgqa.methods.tournament.path_answers import answer_of_path, best_so_far
from kgqa.methods.tournament.ranking import Ranked, Ranking
from kgqa.model import Answer, Candidate, Entity, Value
from kgqa.search.beam import BeamSettings, HopResult, RankCandidates, explore, path_cost
from kgqa.search.conjunction import JoinFinder
from kgqa.search.entity_selection import select_entities
from kgqa.search.masking import placeholders
from kgqa.search.tolerance import TOLERATED, without_failures
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


class PathSearch:
    """What the search has found so far.

    Args:
        ranking: What ranks the paths of the question.
        notes: Notes of its answer.
        beam: Settings of the beam search other than those of the user.

    Attributes:
        empty: An answer without results.
        hops: The finished hops.
    """

    def __init__(self, ranking: Ranking, notes: Sequence[str], **beam: Any) -> None:
        self.asked, self.ranking = ranking.asked, ranking
        self.graph, self.trace, self._settings = self.asked.graph, self.asked.trace, self.asked.settings
        topics = tuple(self.asked.topics)
        self.empty = Answer(self.asked.question, "no_answer", method="top", notes=tuple(notes), topics=topics)
        explored, wording = self._settings.explore, self._settings.rank.wording
        last_only = explored.prune_by == "last-relation"
        given = {"depth": explored.depth, "mediator_hop": explored.mediator_hop, "wording": wording, **beam}
        self._beam = BeamSettings(last_only=last_only, **given)
        self.hops: Sequence[HopResult] = ()
        self._joins = JoinFinder(self.graph)
        self._last: tuple[HopResult | None, Ranked] = (None, [])
        self._ends_before: frozenset[Value] | None = None

    def explore(self, enough: Callable[[], bool], select: RankCandidates | None = None) -> None:
        """Explore the graph hop by hop until it is enough; see `search.beam.explore`."""

        def after(hops: Sequence[HopResult]) -> bool:
            self.hops = hops
            return enough()

        self.hops = explore(
            self.graph,
            self.asked.start,
            self._beam,
            prefilter=self.ranking.shortlist,
            tournament=self.ranking.tournament,
            trace=self.trace,
            kept=[each for each in self.asked.start if each.path.steps],
            select=select,
            enough=after,
        )

    def extend(self, candidate: Candidate) -> list[Candidate]:
        """Return the best extensions of a path by one hop, whatever the depth."""
        beam = replace(self._beam, depth=path_cost(self.graph, candidate.path, self._beam) + 1)
        prefilter, tournament = self.ranking.prefilter, self.ranking.tournament
        hops = explore(self.graph, [candidate], beam, prefilter=prefilter, tournament=tournament, trace=self.trace)
        kept = hops[-1].kept if hops else ()
        return [replace(each, joins=candidate.joins, conditions=candidate.conditions) for each in kept]

    def within_budget(self, answer: Callable[[], Answer]) -> Answer:
        """Return an answer, or that of the best path so far if the question's budget is spent."""
        try:
            found = answer()
        except BudgetExhausted as error:
            found = best_so_far(self.graph, self.empty, error, dict.fromkeys(self._kept()), self.trace)
        if view := self.asked.view:
            self.trace.record(Leaks(texts=len(view.texts), leaks=view.leaked()))
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
            joined = self._joins.join_topics([each for each, _ in every], self._near(), self.trace)
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
        kept, near = self._kept(), self._near()
        every = list({(each.path, each.restricted): each for each in [*kept, *(c for c, _ in others)]}.values())
        partners = {topic: [*(c for c in kept if c.path.topic == topic), *paths] for topic, paths in near.items()}
        return self._joins.join_topics(every, partners, self.trace, alternatives=ALTERNATIVES)[:COMPARED]

    @property
    def _has_joins(self) -> bool:
        several = len(self.asked.topics) > 1
        return several and bool(self.hops) and self._settings.explore.combine == "intersect"

    def _near(self) -> dict[Entity, list[Candidate]]:
        """Return the one-hop paths of each topic, best first; a mediator does not count as a hop."""
        near = self.ranking.best_first([each for each in self.hops[0].pool if len(each.hops) == 1])
        return {topic: [each for each, _ in near if each.path.topic == topic] for topic in self.asked.entities}

    def accept(self, candidate: Candidate, why: str, score: float | None = None) -> bool:
        """Record that a path ends the search; return True."""
        self.trace.record(Accepted(why=why, path=candidate.words, score=_rounded(score)))
        return True

    def meets_all_topics(self, ranked: Ranked) -> bool:
        """Return whether the best path meets paths from all other topics.

        The path may have fewer hops than the question's wording suggests; a stricter rule would cost 2 points on CWQ.
        """
        others = len(self.asked.topics) - 1
        meets = others > 0 and bool(ranked) and len(ranked[0][0].joins) >= others
        return meets and self.accept(ranked[0][0], "it meets all topics")

    def converges(self, best: Sequence[Candidate]) -> bool:
        """Return whether the best path has the same end nodes as the second best path or the previous hop's best path.

        See the thesis, section 6.2.3.
        """
        ends = self.graph.paths.ends(best[:2], limit=ENDS, tolerated=TOLERATED)
        read = without_failures(best[:2], ends, self.trace, worded=lambda each: each.words)
        known = {each: frozenset(found.values) for each, found in read if not found.approximate}
        sets = [known.get(each) for each in best[:2]]
        first, before = sets[0] if sets else None, self._ends_before
        self._ends_before = first
        same = bool(first) and (first == before or sets[1:] == [first])
        return same and self.accept(best[0], "the answers no longer change")

    def select(self, frontier: Sequence[Candidate]) -> list[Candidate]:
        """Restrict the paths that are extended to the entities that the chooser selects, if the settings say so."""
        if self._settings.explore.shape != "path+entity":
            return list(frontier)
        settings, view = self._settings, self.asked.view
        marks = placeholders(self.asked.entities)
        # without a tournament there is one prompt; without a prefilter, all entities are offered
        whole = settings.rank.tournament in ("single", "pointwise")
        return select_entities(
            self.graph,
            self.ranking.question,
            frontier,
            self.ranking.chooser,
            k=settings.explore.beam,
            pool=sys.maxsize if settings.rank.prefilter == "none" else settings.explore.entity_pool,
            chunk=sys.maxsize if whole else settings.explore.entity_chunk,
            prefilter=self.ranking.prefilter,
            shown=lambda entity, name: view.noted(view.name(entity, name)) if view else marks.get(entity, name),
            worded=lambda candidate: " ".join(view.elements(candidate)) if view else candidate.words,
            named_only=view is not None and not view.published,
            trace=self.trace,
        )

    def answer(
        self, ranked: Ranked, accepts: Callable[[Candidate, float | None], bool], by: str
    ) -> tuple[Answer, Candidate | None]:
        """Answer from the accepted path; if there is none, from the best path or not at all, as the settings say.

        Args:
            ranked: The paths, best first.
            accepts: Whether a path is accepted.
            by: What accepts paths, in words for the user; "" if their scores do.

        Returns:
            The answer, and its path.

        Raises:
            StoreError: A query failed, and no other path has an answer.
        """
        late: StoreError | None = None
        skipped, accepted, empty = list[str](), True, self.empty
        for candidate, score in ranked:
            if accepted and not accepts(candidate, score):
                shown = None if by else _rounded(score)
                self.trace.record(Rejected(path=candidate.words, score=shown, key=self._key(candidate)))
                if late:
                    break  # a better path may have had the answer
                if self._settings.ask.on_exhausted != "best":
                    which = "No path" if candidate is ranked[0][0] else "No other path"
                    return self._rejected(candidate, score, by, which), None
                accepted = False
            try:
                notes = (*empty.notes, *([NOT_ACCEPTED] if by and not accepted else []), *skipped)
                found = answer_of_path(self.graph, candidate, score, replace(empty, notes=notes), self.trace)
            except TOLERATED as error:
                late = error
                self.trace.record(GaveUp(path=candidate.words, error=str(error)))
                skipped.append(f"Skipped a better path ({candidate.words}) whose answers could not be read: {error}")
                continue
            if found is not None:
                return replace(found, accepted=accepted), candidate
        if late:
            raise late
        reason = "No relation path starts at the topic."
        if ranked:
            reason = "None of the paths found has an answer."
        elif any(hop.pool for hop in self.hops):
            chooser = by or "the chooser"
            reason = f"{chooser[0].upper()}{chooser[1:]} selected no candidate."
        return replace(empty, reason=reason), None

    def _rejected(self, candidate: Candidate, score: float | None, by: str, which: str) -> Answer:
        """Return the answer if the best path, or the best of those that have ends, was rejected."""
        reason = f"{which} was accepted by {by} (best: {candidate.words})"
        if not by:
            accept = Option("accept", self._settings.rank.accept)
            reason = f"{which} scores above {accept} (best: {score or 0.0:.3g}, {candidate.words})"
        if candidate.approximate:
            reason += "; the search was incomplete, so a better path may be missing"
        return replace(self.empty, reason=f"{reason}.", approximate=candidate.approximate)

    def record_ranked(self, ranked: Ranked) -> None:
        """Record the ranked paths in the trace."""
        paths = tuple(RankedPath(each.words, _rounded(score), len(each.joins)) for each, score in ranked[:20])
        self.trace.record(PathsRanked(paths=paths, keys=tuple(self._key(each) for each, _ in ranked)))

    def _key(self, candidate: Candidate) -> str:
        return paths_key([candidate.path, *(join.path for join in candidate.joins)], self.graph.schema)


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)
