"""Tournament on Path (Xiang & Wu 2026), the steps of chapter 4, with choosers that need no language model.

What distinguishes its two systems are settings (table 4.1); with path-only exploration the exported query is always
exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.errors import PartialResult, StoreError, StoreTimeout
from kgqa.explore.beam import BeamSettings, Hop, cost, explore
from kgqa.explore.conjunction import Meetings, join_topics
from kgqa.explore.cues import Cues, read_cues
from kgqa.explore.masking import leaks, mask, placeholders
from kgqa.explore.selection import select_entities
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.ranking import Ranking
from kgqa.methods.reading import read_off
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Candidate, Named, Question, Value
from kgqa.settings import Settings
from kgqa.trace import Trace
from kgqa.words import paths_key

METHOD = "top"
Ranked = list[tuple[Candidate, float]]


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
) -> Answer:
    """Answer a question whose topics are known.

    Args:
        topics: the topic entities with their names.
        names: for each of them all texts that may stand for it in the question: labels, aliases, mentions.

    Raises:
        BudgetExhausted: the trace's budget is spent. StoreError: the graph failed.
    """
    settings = resources.settings
    graph = resources.graph.for_question(trace)
    asked, spans = _masked(question.text, names, topics, settings, trace)
    cues = read_cues(question.text, [*spans, *(topic.name for topic in topics)])
    trace.event("cues", words=list(cues.words), hops=cues.hops, asked_for=cues.asked_for)
    ranking = Ranking(asked, cues, resources, trace)
    beam = BeamSettings(
        settings["explore.depth"],
        settings["explore.mediator_hop"],
        settings["rank.wording"],
        kinds=ranking.scores.uses_kinds,
    )
    meetings = Meetings(graph)

    def select(frontier: Sequence[Candidate]) -> list[Candidate]:
        masked = placeholders([topic.value for topic in topics])  # type: ignore[misc]
        return select_entities(
            graph,
            asked,
            frontier,
            ranking.entities,
            k=settings["explore.beam"],
            prefilter=ranking.prefilter,
            shown=lambda entity, name: masked.get(entity, name),
            trace=trace,
        )

    last: tuple[Hop | None, Ranked] = (None, [])

    def ranked_after(hops: Sequence[Hop]) -> Ranked:
        nonlocal last
        if not hops or last[0] is not hops[-1]:
            last = (hops[-1] if hops else None, _ranked(meetings, hops, topics, ranking, settings, trace))
        return last[1]

    def enough(hops: Sequence[Hop]) -> bool:
        if settings["explore.lengths"] == "deepest":
            return False
        if settings["explore.combine"] == "intersect" and _meets_all(ranked_after(hops), topics, trace):
            return True
        return settings["explore.stop"] == "accepted" and _accepted(ranked_after(hops), ranking, cues, trace)

    hops = explore(
        graph,
        [topic.value for topic in topics],
        beam,
        prefilter=ranking.prefilter,
        tournament=ranking.tournament,
        trace=trace,
        select=select if settings["explore.shape"] == "path+entity" else None,
        enough=enough,
    )
    ranked = ranked_after(hops)
    if settings["explore.lengths"] == "deepest":
        ranked = [pair for pair in ranked if cost(graph, pair[0].path, beam) == settings["explore.depth"]] or ranked
    trace.event(
        "ranked",
        paths=[{"path": c.words, "score": round(score, 4), "joins": len(c.joins)} for c, score in ranked[:20]],
        keys=[_key(c, graph) for c, _ in ranked],
    )
    return _first_that_reads(graph, question, ranked, ranking, topics, trace)


def _masked(
    text: str, names: Mapping[Value, Sequence[str]], topics: Sequence[Named], settings: Settings, trace: Trace
) -> tuple[str, list[str]]:
    """The question without its topics, and the texts that stood for them."""
    style = settings["explore.mask"]
    ids = {topic.value: topic.id for topic in topics}
    found = mask(text, names, style="drop" if style == "none" else style, ids=ids)  # type: ignore[arg-type]
    asked = text if style == "none" else found.text
    every = [name for several in names.values() for name in several]
    trace.event(
        "masked",
        question=asked,
        unmasked=len(found.unmasked),
        leaks=0 if style == "none" else len(leaks([asked], every)),
    )
    return asked, [text[span.start : span.end] for span in found.spans]


def _ranked(
    meetings: Meetings,
    hops: Sequence[Hop],
    topics: Sequence[Named],
    ranking: Ranking,
    settings: Settings,
    trace: Trace,
) -> Ranked:
    """The kept paths of all hops, best first; before them those that meet paths from the other topics."""
    alone = ranking.best_first([candidate for hop in hops for candidate in hop.kept])
    if len(topics) < 2 or not hops or settings["explore.combine"] == "separate":
        return alone
    # the other topics prune better than any score, so all that passed a prefilter may be joined
    every = ranking.best_first([candidate for hop in hops for candidate in hop.shortlist])
    near = ranking.best_first([candidate for candidate in hops[0].pool if len(candidate.hops) == 1])
    partners = {topic.value: [c for c, _ in near if c.path.topic == topic.value] for topic in topics}
    joined = join_topics([candidate for candidate, _ in every], partners, meetings=meetings, trace=trace)
    scores = {(c.path, c.restricted): score for c, score in every}
    if meetings.late:
        alone = [(replace(candidate, approximate=True), score) for candidate, score in alone]
    return [(candidate, scores[candidate.path, candidate.restricted]) for candidate in joined] + alone


def _key(candidate: Candidate, graph: KnowledgeGraph) -> str:
    return paths_key([candidate.path, *(join.path for join in candidate.joins)], graph.schema)


def _meets_all(ranked: Ranked, topics: Sequence[Named], trace: Trace) -> bool:
    """Whether the best path meets paths from all other topics. Then nothing deeper is looked for: what two topics
    agree on says more of the depth than the wording does (asking for the announced hops too costs 2 points on CWQ)."""
    if len(topics) < 2 or not ranked or len(ranked[0][0].joins) < len(topics) - 1:
        return False
    trace.event("met", path=ranked[0][0].words, topics=len(topics))
    return True


def _accepted(ranked: Ranked, ranking: Ranking, cues: Cues, trace: Trace) -> bool:
    """Whether the best path so far ends the search: it is good enough, and as long as the wording announces."""
    if not ranked or len(ranked[0][0].hops) < cues.hops or not ranking.accepts(*ranked[0]):
        return False
    trace.event("accepted", path=ranked[0][0].words, score=round(ranked[0][1], 4))
    return True


def _first_that_reads(
    graph: KnowledgeGraph,
    question: Question,
    ranked: Ranked,
    ranking: Ranking,
    topics: Sequence[Named],
    trace: Trace,
) -> Answer:
    notes = (f"Ranked by {ranking.chooser.name}: no language model configured.",)
    empty = Answer(question, "no_answer", method=METHOD, notes=notes, topics=tuple(topics))
    late: StoreError | None = None
    for candidate, score in ranked:
        if not ranking.accepts(candidate, score):
            trace.event("rejected", path=candidate.words, score=round(score, 4), key=_key(candidate, graph))
            if late:
                break  # a better path may have had the answer
            which = "found" if candidate is ranked[0][0] else "left"
            reason = f"the best path {which} ({candidate.words}) is not like the question"
            if candidate.approximate:
                reason += "; the search was cut short, there may be a better one"
            return replace(empty, reason=reason, notes=notes, approximate=candidate.approximate)
        try:
            found = read_off(graph, candidate, score, topics, trace)
        except (StoreTimeout, PartialResult) as error:
            late = error
            trace.event("gave_up", path=candidate.words, error=str(error))
            notes += (f"A better path was passed over ({candidate.words}), its answers could not be read: {error}",)
            continue
        if found is not None:
            return replace(found, question=question, method=METHOD, notes=(*notes, *found.notes), topics=tuple(topics))
    if late:
        raise late
    reason = "no relation path leads on from the topic" if not ranked else "no path that was kept has an end"
    return replace(empty, reason=reason, notes=notes)
