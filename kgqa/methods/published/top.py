"""System 1 and System 2 of Tournament on Path as published (Xiang & Wu 2026, chapter 4).

Every node is a candidate, mediators and what a schema takes for noise, too: the example candidates of the thesis go
through both (section 3.3). Each edge is a hop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kgqa.methods.resources import Resources
from kgqa.methods.tournament.asked import read_for_model
from kgqa.methods.tournament.composition import compose
from kgqa.methods.tournament.ranking import Ranked, Ranking, model_chooser
from kgqa.methods.tournament.search import Search
from kgqa.model import Answer, Candidate, Named, Question, Value
from kgqa.rank.tournaments.caching import CachingChooser
from kgqa.rank.tournaments.voting import VotingChooser
from kgqa.search.beam import BeamSettings, HopResult, explore
from kgqa.trace import Leaks
from kgqa.trace.trace import BudgetExhausted, Trace

EMBEDDINGS = "Qwen3-Embedding-4B"
"""The embedding model of System 2 (section 5.1.3); that of System 1 is not named."""


def system_1(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
) -> Answer:
    """Answer a question by System 1 (section 4.1); arguments and errors as in `top.answer`.

    To a fixed depth, the best paths of a chunked tournament are extended from the entities that the model selects; it
    then composes the answer from all paths that were kept.
    """
    run = _System(question, resources, trace, topics, names)

    def answer() -> Answer:
        run.explore(lambda: False, select=True)
        return compose(run.graph, run.empty, run.search.retained(), run.view, resources, trace)

    return run.within_budget(answer)


def system_2(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
) -> Answer:
    """Answer a question by System 2 (section 4.2); arguments and errors as in `top.answer`.

    After each hop, the best paths of a pairwise tournament are compared again with the entities at their ends, and the
    model accepts or rejects the best one; an accepted path ends the search. Topics are masked in all prompts.
    """
    run = _System(question, resources, trace, topics, names, EMBEDDINGS)
    ranking, search = run.ranking, run.search
    with_ends = CachingChooser(VotingChooser(model_chooser(run.view, resources, trace, show_ends=True), 1))

    def ranked() -> Ranked:
        kept = list(search.hops[-1].kept) if search.hops else []
        if len(kept) > 1 and not ranking.orders_winners:
            kept = ranking.play(ranking.question, kept, with_ends)
        return [(each, None) for each in kept]

    def accepts(candidate: Candidate, score: float | None) -> bool:
        return with_ends.accept(ranking.question, [[candidate]]) == ["yes"]

    def enough() -> bool:
        best = ranked()[:1]
        return bool(best) and accepts(*best[0]) and search.record_accepted(*best[0])

    def answer() -> Answer:
        run.explore(enough, select=False)
        search.record_ranked(paths := ranked())
        return search.answer(run.empty, paths, accepts, "the language model")[0]

    return run.within_budget(answer)


class _System:
    """What both systems need for a question: how it is read and shown, the ranking, and the search."""

    def __init__(
        self,
        question: Question,
        resources: Resources,
        trace: Trace,
        topics: Sequence[Named],
        names: Mapping[Value, Sequence[str]],
        embeddings: str = "",
    ) -> None:
        self.settings, self.trace = resources.settings, trace
        self.graph = resources.graph.for_question(trace).with_noise()
        self.asked, self.view = read_for_model(self.graph, question.text, topics, names, self.settings, trace)
        self.ranking = Ranking(self.asked, resources, trace, self.view)
        self.search = Search(self.graph, self.ranking, self.settings)
        used = resources.encoder.name if resources.encoder else "none"
        other = f"Not as published: the embedding model is {used}, not {embeddings} (rank.model)."
        notes = (f"Compared by {self.ranking.name}.", *([other] if embeddings not in used else []))
        self.empty = Answer(question, "no_answer", notes=notes, topics=tuple(topics))

    def explore(self, enough: Callable[[], bool], *, select: bool) -> None:
        """Explore the graph until it is enough; with `select`, paths are extended from selected entities."""
        explored, search, view = self.settings.explore, self.search, self.view

        def after(hops: Sequence[HopResult]) -> bool:
            search.hops = hops
            return enough()

        last_only = explored.prune_by == "last-relation"
        search.hops = explore(
            self.graph,
            self.asked.start,
            BeamSettings(explored.depth, "edge", "published", kinds=False, last_only=last_only, mediators=True),
            prefilter=self.ranking.shortlist,
            tournament=self.ranking.tournament,
            trace=self.trace,
            select=(lambda frontier: search.select(frontier, view)) if select else None,
            enough=after,
        )

    def within_budget(self, answer: Callable[[], Answer]) -> Answer:
        """Return the answer, or the best so far if the question's budget is spent."""
        try:
            found = answer()
        except BudgetExhausted as error:
            found = self.search.best_so_far(self.empty, error)
        self.trace.record(Leaks(texts=len(self.view.texts), leaks=self.view.leaked()))
        return found
