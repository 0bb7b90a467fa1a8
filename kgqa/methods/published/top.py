"""System 1 and System 2 of Tournament on Path as published (Xiang & Wu 2026, chapter 4).

Every node is a candidate, mediators and what a schema takes for noise, too: the example candidates of the thesis go
through both (section 3.3). Each edge is a hop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kgqa.methods.prompt_view import PromptView
from kgqa.methods.resources import Resources
from kgqa.methods.tournament.asked import read_for_model
from kgqa.methods.tournament.composition import compose
from kgqa.methods.tournament.ranking import Ranked, Ranking, model_chooser
from kgqa.methods.tournament.search import Search
from kgqa.model import Answer, Candidate, Named, Question, Value
from kgqa.rank.tournaments.caching import CachingChooser
from kgqa.rank.tournaments.voting import VotingChooser
from kgqa.search.beam import BeamSettings
from kgqa.trace.trace import Trace

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
    search, view, empty = _opened(question, resources, trace, topics, names)

    def answer() -> Answer:
        _explore(search, resources, lambda: False, search.select)
        return compose(search.graph, empty, search.retained(), view, resources, trace)

    return search.within_budget(empty, answer)


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
    search, view, empty = _opened(question, resources, trace, topics, names, EMBEDDINGS)
    ranking = search.ranking
    with_ends = CachingChooser(VotingChooser(model_chooser(view, resources, trace, show_ends=True), 1))

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
        _explore(search, resources, enough)
        search.record_ranked(paths := ranked())
        return search.answer(empty, paths, accepts, "the language model")[0]

    return search.within_budget(empty, answer)


def _opened(
    question: Question,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
    embeddings: str = "",
) -> tuple[Search, PromptView, Answer]:
    """Return the search for a question, the question as the model sees it, and an answer without results."""
    graph = resources.graph.for_question(trace).with_noise()
    asked, view = read_for_model(graph, question.text, topics, names, resources.settings, trace)
    ranking = Ranking(asked, resources, trace, view)
    used = resources.encoder.name if resources.encoder else "none"
    other = f"Not as published: the embedding model is {used}, not {embeddings} (rank.model)."
    notes = (f"Compared by {ranking.name}.", *([other] if embeddings not in used else []))
    empty = Answer(question, "no_answer", notes=notes, topics=tuple(topics))
    return Search(graph, ranking, resources.settings), view, empty


def _explore(
    search: Search,
    resources: Resources,
    enough: Callable[[], bool],
    select: Callable[[Sequence[Candidate]], list[Candidate]] | None = None,
) -> None:
    explored = resources.settings.explore
    last_only = explored.prune_by == "last-relation"
    beam = BeamSettings(explored.depth, "edge", "published", kinds=False, last_only=last_only, mediators=True)
    search.explore(search.ranking.asked.start, beam, enough, select)
