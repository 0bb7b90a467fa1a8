"""System 1 and System 2 of Tournament on Path as published (Xiang & Wu 2026, chapter 4).

Every node is a candidate, mediators and what a schema takes for noise, too: the example candidates of the thesis go
through both (section 3.3). Each edge is a hop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgqa.methods.resources import Resources
from kgqa.methods.tournament.asked import read_for_model
from kgqa.methods.tournament.composition import compose
from kgqa.methods.tournament.ranking import Ranked, Ranking, model_chooser
from kgqa.methods.tournament.search import PathSearch
from kgqa.model import Answer, Candidate, Named, Question, Value
from kgqa.rank.tournaments.caching import CachingChooser
from kgqa.rank.tournaments.voting import VotingChooser
from kgqa.trace.trace import Trace

EMBEDDINGS = "Qwen3-Embedding-4B"
"""The embedding model of System 2 (section 5.1.3); that of System 1 is not named."""
FIXED = ("ask.compose", "explore.clauses", "explore.shape", "explore.stop")
"""Settings that the systems of the thesis do not have."""


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
    search = _search(question, resources, trace, topics, names)

    def answer() -> Answer:
        search.explore(lambda: False, search.select)
        return compose(search.asked, search.empty, search.retained())

    return search.within_budget(answer)


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
    search = _search(question, resources, trace, topics, names, EMBEDDINGS)
    ranking = search.ranking
    with_ends = CachingChooser(VotingChooser(model_chooser(search.asked, show_ends=True), 1))

    def ranked() -> Ranked:
        kept = list(search.hops[-1].kept) if search.hops else []
        if len(kept) > 1 and not ranking.orders_winners:
            kept = ranking.play(ranking.question, kept, with_ends)
        return [(each, None) for each in kept]

    def accepts(candidate: Candidate, score: float | None) -> bool:
        return with_ends.accept(ranking.question, [[candidate]]) == ["yes"]

    def enough() -> bool:
        best = ranked()[:1]
        return bool(best) and accepts(*best[0]) and search.accept(best[0][0], "the language model accepts it")

    def answer() -> Answer:
        search.explore(enough)
        search.record_ranked(paths := ranked())
        return search.answer(paths, accepts, "the language model")[0]

    return search.within_budget(answer)


def _search(
    question: Question,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
    embeddings: str = "",
) -> PathSearch:
    """Return the search for a question; notes of its answer say what is not as published."""
    ranking = Ranking(read_for_model(question, resources, trace, topics, names, noise=True))
    notes = [f"Compared by {ranking.name}."]
    used = resources.encoder.name if resources.encoder else "none"
    if embeddings not in used:
        notes.append(f"Not as published: the embedding model is {used}, not {embeddings} (rank.model).")
    settings = resources.settings
    ours = ("default", settings.ask.method, settings.ask.preset, "graph")
    notes += [f"The setting {key} has no effect as published." for key in FIXED if settings.origins[key] not in ours]
    return PathSearch(ranking, notes, kinds=False, mediators=True)
