"""Tournament on Path (Xiang & Wu 2026), the steps of chapter 4, with a language model or with choosers that need none.

What distinguishes its two systems are settings (table 4.1); with path-only exploration the exported query is always
exact, and no answer can come from a model's memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.errors import PartialResult, StoreError, StoreTimeout
from kgqa.explore.beam import BeamSettings, explore, path_cost
from kgqa.explore.cues import read_cues
from kgqa.explore.entity_selection import select_entities
from kgqa.explore.masking import leaks, mask, placeholders
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.clauses import clauses_of
from kgqa.methods.composing import compose
from kgqa.methods.deciding import Deciding, Ranked
from kgqa.methods.ranking import Ranking
from kgqa.methods.reading import read_off
from kgqa.methods.resources import Resources
from kgqa.methods.showing import Shown
from kgqa.model import Answer, Candidate, Entity, Named, Question, Value
from kgqa.settings import Settings
from kgqa.trace import BudgetExhausted, Trace
from kgqa.words import paths_key

METHOD = "top"


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
        StoreError: the graph failed. ModelUnavailable: a language model did.
    """
    settings = resources.settings
    graph = resources.graph.for_question(trace)
    by_model = resources.models is not None and settings["rank.chooser"] in ("auto", "llm")
    shown = Shown(graph, question.text, topics, names, settings, trace) if by_model else None
    asked, spans = _masked(question.text, names, topics, settings, trace)
    if shown is not None:
        trace.event("shown", question=shown.question)
    cues = read_cues(question.text, [*spans, *(topic.name for topic in topics)])
    trace.event("cues", words=list(cues.words), hops=cues.hops, asked_for=cues.asked_for)
    clauses: Mapping[Entity, str] = {}
    if shown is not None and settings["explore.clauses"] == "on":
        clauses = clauses_of(shown, topics, resources, trace)
    ranking = Ranking(asked, cues, resources, trace, shown, clauses)
    beam = BeamSettings(
        settings["explore.depth"],
        settings["explore.mediator_hop"],
        settings["rank.wording"],
        kinds=not by_model and ranking.scores.uses_kinds,
        last_only=settings["explore.prune_by"] == "last-relation",
    )
    deciding = Deciding(graph, topics, ranking, cues, settings, trace)
    masked = placeholders([topic.value for topic in topics])  # type: ignore[misc]

    def shown_name(entity: Entity, name: str) -> str:
        if shown is None:
            return masked.get(entity, name)
        text = shown.name(entity, name)
        shown.texts.add(text)
        return text

    def select(frontier: Sequence[Candidate]) -> list[Candidate]:
        return select_entities(
            graph,
            ranking.question,
            frontier,
            ranking.entities,
            k=settings["explore.beam"],
            prefilter=ranking.prefilter,
            shown=shown_name,
            worded=(lambda candidate: " ".join(shown.elements(candidate))) if shown else None,
            trace=trace,
        )

    notes = _notes(ranking, resources)
    empty = Answer(question, "no_answer", method=METHOD, notes=notes, topics=tuple(topics))
    try:
        hops = explore(
            graph,
            [topic.value for topic in topics],
            beam,
            prefilter=ranking.prefilter,
            tournament=ranking.tournament,
            trace=trace,
            select=select if settings["explore.shape"] == "path+entity" else None,
            enough=deciding.enough,
        )
        deciding.reached = hops
        if shown is not None and settings["ask.compose"] == "composed":
            found = compose(graph, empty, deciding.retained(hops), shown, resources, trace)
        else:
            ranked = deciding.ranked_after(hops)
            if settings["explore.lengths"] == "deepest":
                deepest = [pair for pair in ranked if path_cost(graph, pair[0].path, beam) == settings["explore.depth"]]
                ranked = deepest or ranked
            _trace_ranked(ranked, graph, trace)
            found = _first_that_reads(graph, empty, ranked, ranking, settings, trace)
    except BudgetExhausted as error:
        found = _best_so_far(graph, empty, deciding, error, trace)
    if shown is not None:
        trace.event("leaks", texts=len(shown.texts), leaks=shown.leaked())
    return found


def _notes(ranking: Ranking, resources: Resources) -> tuple[str, ...]:
    if ranking.by_model:
        return (f"Compared by {ranking.chooser.name}.",)
    why = "no language model configured" if resources.models is None else "the language model was not to choose"
    return (f"Ranked by {ranking.chooser.name}: {why}.",)


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


def _key(candidate: Candidate, graph: KnowledgeGraph) -> str:
    return paths_key([candidate.path, *(join.path for join in candidate.joins)], graph.schema)


def _trace_ranked(ranked: Ranked, graph: KnowledgeGraph, trace: Trace) -> None:
    trace.event(
        "ranked",
        paths=[{"path": c.words, "score": _rounded(score), "joins": len(c.joins)} for c, score in ranked[:20]],
        keys=[_key(c, graph) for c, _ in ranked],
    )


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)


def _first_that_reads(
    graph: KnowledgeGraph, empty: Answer, ranked: Ranked, ranking: Ranking, settings: Settings, trace: Trace
) -> Answer:
    notes = empty.notes
    late: StoreError | None = None
    unaccepted = False
    for candidate, score in ranked:
        if not unaccepted and not ranking.accepts(candidate, score):
            trace.event("rejected", path=candidate.words, score=_rounded(score), key=_key(candidate, graph))
            if late:
                break  # a better path may have had the answer
            if settings["ask.on_exhausted"] != "best":
                return _rejected(empty, candidate, first=candidate is ranked[0][0], by_model=ranking.by_model)
            unaccepted = True
            notes += ("No path was accepted as an answer: this is what the best one leads to.",)
        try:
            found = read_off(graph, candidate, score, empty.topics, trace)
        except (StoreTimeout, PartialResult) as error:
            late = error
            trace.event("gave_up", path=candidate.words, error=str(error))
            notes += (f"A better path was passed over ({candidate.words}), its answers could not be read: {error}",)
            continue
        if found is not None:
            return _filled(found, empty, notes)
    if late:
        raise late
    reason = "no relation path leads on from the topic" if not ranked else "no path that was kept has an end"
    return replace(empty, reason=reason, notes=notes)


def _rejected(empty: Answer, candidate: Candidate, *, first: bool, by_model: bool) -> Answer:
    which = "found" if first else "left"
    verdict = "was not accepted by the language model" if by_model else "is not like the question"
    reason = f"the best path {which} ({candidate.words}) {verdict}"
    if candidate.approximate:
        reason += "; the search was cut short, there may be a better one"
    return replace(empty, reason=reason, approximate=candidate.approximate)


def _filled(found: Answer, empty: Answer, notes: tuple[str, ...]) -> Answer:
    return replace(
        found, question=empty.question, method=empty.method, notes=(*notes, *found.notes), topics=empty.topics
    )


def _best_so_far(
    graph: KnowledgeGraph, empty: Answer, deciding: Deciding, error: BudgetExhausted, trace: Trace
) -> Answer:
    """What the hops that were finished lead to, where the budget ended the search."""
    reason = f"The budget is spent: {error}."
    with trace.grace():
        for candidate, score in deciding.best_so_far():
            try:
                found = read_off(graph, candidate, score, empty.topics, trace)
            except (StoreError, BudgetExhausted) as failure:
                trace.event("gave_up", path=candidate.words, error=str(failure))
                continue
            if found is not None:
                notes = (*empty.notes, "The search was not finished: this is the best path so far.")
                return replace(_filled(found, empty, notes), status="budget_exhausted", reason=reason)
    return replace(empty, status="budget_exhausted", reason=reason)
