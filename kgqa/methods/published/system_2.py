"""System 2 of Tournament on Path as published (Xiang & Wu 2026, section 4.2).

After each hop, the best paths of a pairwise tournament are compared again with the entities at their ends, and the
model accepts or rejects the best one; an accepted path ends the search. Topics are masked in all prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgqa.methods.published.thesis import beam_of
from kgqa.methods.resources import Resources
from kgqa.methods.tournament.asked import read_for_model
from kgqa.methods.tournament.ranking import Ranking, model_chooser
from kgqa.methods.tournament.search import Search
from kgqa.model import Answer, Candidate, Named, Question, Value
from kgqa.rank.tournaments.caching import CachingChooser
from kgqa.rank.tournaments.voting import VotingChooser
from kgqa.search.beam import HopResult, explore
from kgqa.trace import Leaks
from kgqa.trace.trace import BudgetExhausted, Trace


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
) -> Answer:
    """Answer a question; arguments and errors as in `top.answer`."""
    settings, graph = resources.settings, resources.graph.for_question(trace)
    asked, view = read_for_model(graph, question.text, topics, names, settings, trace)
    ranking = Ranking(asked, resources, trace, view)
    with_ends = CachingChooser(VotingChooser(model_chooser(view, resources, trace, show_ends=True), 1))
    search = Search(graph, ranking, settings)
    notes = (f"Compared by {ranking.name}.",)
    empty = Answer(question, "no_answer", method="top-2", notes=notes, topics=tuple(topics))

    def best_first() -> list[Candidate]:
        kept = list(search.hops[-1].kept) if search.hops else []
        return kept if ranking.orders_winners or len(kept) < 2 else ranking.play(ranking.question, kept, with_ends)

    def accepts(candidate: Candidate, score: float | None = None) -> bool:
        return with_ends.accept(ranking.question, [[candidate]]) == ["yes"]

    def enough(hops: Sequence[HopResult]) -> bool:
        search.hops = hops
        best = best_first()[:1]
        return bool(best) and accepts(best[0]) and search.record_accepted(best[0], None)

    try:
        search.hops = explore(
            graph,
            asked.start,
            beam_of(settings),
            prefilter=ranking.shortlist,
            tournament=ranking.tournament,
            trace=trace,
            enough=enough,
        )
        ranked: list[tuple[Candidate, float | None]] = [(each, None) for each in best_first()]
        search.record_ranked(ranked)
        found, _ = search.answer(empty, ranked, accepts, "the language model")
    except BudgetExhausted as error:
        found = search.best_so_far(empty, error)
    trace.record(Leaks(texts=len(view.texts), leaks=view.leaked()))
    return found
