"""System 1 of Tournament on Path as published (Xiang & Wu 2026, section 4.1).

To a fixed depth, the best paths of a chunked tournament are extended from the entities that the model selects; it then
composes the answer from all paths that were kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgqa.methods.published.thesis import beam_of
from kgqa.methods.resources import Resources
from kgqa.methods.tournament.asked import read_for_model
from kgqa.methods.tournament.composition import compose
from kgqa.methods.tournament.ranking import Ranking
from kgqa.methods.tournament.search import Search
from kgqa.model import Answer, Named, Question, Value
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
    search = Search(graph, ranking, settings)
    notes = (f"Compared by {ranking.name}.",)
    empty = Answer(question, "no_answer", method="top-1", notes=notes, topics=tuple(topics))

    def enough(hops: Sequence[HopResult]) -> bool:
        search.hops = hops
        return False

    try:
        search.hops = explore(
            graph,
            asked.start,
            beam_of(settings),
            prefilter=ranking.shortlist,
            tournament=ranking.tournament,
            trace=trace,
            select=lambda frontier: search.select(frontier, view),
            enough=enough,
        )
        found = compose(graph, empty, search.retained(), view, resources, trace)
    except BudgetExhausted as error:
        found = search.best_so_far(empty, error)
    trace.record(Leaks(texts=len(view.texts), leaks=view.leaked()))
    return found
