"""Tournament on Path (Xiang & Wu 2026, chapter 4), with or without a language model.

System 1 and System 2 of the thesis differ only in settings (table 4.1). With `explore.shape` "path", the exported query
returns exactly the answers, and no answer can come from a language model's memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgqa.errors import PartialResult, StoreError, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.judging.decisions import Decisions, Ranked
from kgqa.methods.judging.judge import Judge
from kgqa.methods.prompt_view import PromptView
from kgqa.methods.resources import Resources
from kgqa.methods.tournament.clauses import clauses_of
from kgqa.methods.tournament.composition import compose
from kgqa.methods.tournament.path_answers import answer_of_path
from kgqa.methods.tournament.ranking import Ranking
from kgqa.model import WEAK, Answer, Candidate, Entity, Named, Question, Value
from kgqa.search.beam import BeamSettings, explore, path_cost
from kgqa.search.classes import starts, starts_at_instances
from kgqa.search.conditions.amounts import read_amount
from kgqa.search.conditions.applying import NOT_APPLIED, Wording, apply_conditions, without_excluded
from kgqa.search.conditions.beside import Beside
from kgqa.search.conditions.times import with_years_of_event, without_qualifier
from kgqa.search.cues import asking_clause, read_cues
from kgqa.search.entity_selection import select_entities
from kgqa.search.kinds import AskedKind
from kgqa.search.masking import Span, drop_spans, leaks, placeholders, replace_spans, topic_spans
from kgqa.search.question_language import in_english
from kgqa.search.topics import declined, request_of
from kgqa.search.words import pattern
from kgqa.settings.values import Settings
from kgqa.text.hints import Option
from kgqa.text.words import paths_key
from kgqa.trace import CuesRead, GaveUp, Leaks, Masked, PathsRanked, RankedPath, Rated, Rejected
from kgqa.trace.trace import BudgetExhausted, Trace

METHOD = "top"
COMPLETED = 10
"""Most paths per hop that get one more edge at a mediator if a language model compares paths."""
NOT_ACCEPTED = "No path was accepted as an answer. This is the answer of the best path."


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
        question: The question.
        resources: The resources of the run.
        trace: Records the search and keeps account of the question's budget.
        topics: The topic entities with their names.
        names: Map from a topic to the strings that may name it in the question (labels, aliases, mentions).

    Raises:
        StoreError: The graph failed.
        ModelUnavailable: A language model failed.
    """
    settings = resources.settings
    graph = resources.graph.for_question(trace)
    by_entity = {value: texts for value, texts in names.items() if isinstance(value, Entity)}
    text, kind, request, qualifier = question.text, None, None, ""
    if not resources.by_model:
        every = [name for each in by_entity.values() for name in each]
        text = asking_clause(in_english(text, every), every)
        kind, request = request_of(text, every)
        text, qualifier = without_qualifier(request.text if request else text)
    spans: Sequence[Span] = topic_spans(text, by_entity)
    excluded: tuple[Entity, ...] = ()
    if not resources.by_model:
        text, event = with_years_of_event(graph, text, spans)
        if event is not None:
            topics = [topic for topic in topics if topic.value != event]
            by_entity = {topic: texts for topic, texts in by_entity.items() if topic != event}
            spans = topic_spans(text, by_entity)
        text, excluded = without_excluded(text, spans)
        others = [topic for topic in topics if topic.value not in excluded]
        if pattern("{negation}").search(drop_spans(text, spans)) or not (others or not topics):
            return replace(declined(question, "a negation"), method=METHOD, topics=tuple(topics))
        topics = others
    entities = [topic.value for topic in topics if isinstance(topic.value, Entity)]
    start = starts(
        graph, entities, all_topics=resources.by_model, nouns=(request.noun, request.counted) if request else ()
    )
    if not resources.by_model:
        kept = {each.path.topic for each in start}
        topics = [topic for topic in topics if topic.value in kept]
        by_entity = {topic: texts for topic, texts in by_entity.items() if topic in kept}
        spans = topic_spans(text, by_entity)
    view = PromptView(graph, text, topics, names, settings, trace, spans) if resources.by_model else None
    masked, spans = _masked(text, by_entity, spans, topics, settings, trace, prompted=view.question if view else "")
    mentions = [text[span.start : span.end] for span in spans]
    amount = read_amount(text) if view is None else None
    cues = read_cues(text.replace(amount.cue, " ") if amount else text, [*mentions, *(topic.name for topic in topics)])
    trace.record(CuesRead(words=cues.words, hops=cues.hops, asked_for=cues.asked_for))
    clauses: Mapping[Entity, str] = {}
    if view is not None and settings.explore.clauses == "on":
        clauses = clauses_of(view, topics, resources, trace)
    asked_kind = AskedKind(graph, "number" if request and request.kind == "count" else cues.value, cues.noun)
    ranking = Ranking(masked, cues, asked_kind, resources, trace, view, clauses)
    depth = settings.explore.depth
    if view is None:
        # what the question names may be one hop further than its wording suggests
        announced = max(depth, cues.hops) + asked_kind.may_be_further
        depth = max(depth, min(announced, settings.explore.wording_depth))
    beam = BeamSettings(
        depth,
        settings.explore.mediator_hop,
        settings.rank.wording,
        kinds=view is None and ranking.scores.uses_kinds,
        completed=0 if view is None or view.published else COMPLETED,
        last_only=settings.explore.prune_by == "last-relation",
    )
    judge = None
    if view is not None and settings.ask.judge == "rows" and settings.ask.compose == "ends":
        judge = Judge(graph, view, resources, trace)
    decisions = Decisions(graph, topics, ranking, cues, settings, trace, judge)
    marks = placeholders(topic.value for topic in topics if isinstance(topic.value, Entity))

    def shown_name(entity: Entity, name: str) -> str:
        if view is None:
            return marks.get(entity, name)
        text = view.name(entity, name)
        view.texts.add(text)
        return text

    def select(frontier: Sequence[Candidate]) -> list[Candidate]:
        if judge is not None and judge.focus is not None:
            focus = judge.focus.path
            frontier = [each for each in frontier if each.path == focus] or frontier
        if settings.explore.shape != "path+entity":
            return list(frontier)
        return select_entities(
            graph,
            ranking.question,
            frontier,
            ranking.entities,
            k=settings.explore.beam,
            prefilter=ranking.prefilter,
            shown=shown_name,
            worded=lambda candidate: " ".join(view.elements(candidate)) if view else candidate.words,
            named_only=view is not None and not view.published,
            trace=trace,
        )

    def prefilter(pool: Sequence[Candidate]) -> list[Candidate]:
        # paths from a generic topic only join those from other topics
        specific = [each for each in pool if view is None or each.path.topic not in view.generic]
        return ranking.prefilter(specific or pool)

    notes = _notes(ranking, resources, qualifier)
    empty = Answer(question, "no_answer", method=METHOD, notes=notes, topics=tuple(topics))
    try:
        are_answers = view is None and cues.asks_topic and any(each.path.steps for each in start)
        hops = explore(
            graph,
            [] if are_answers else start,
            beam,
            prefilter=prefilter,
            tournament=ranking.tournament,
            trace=trace,
            kept=[each for each in start if each.path.steps],
            select=select,
            enough=decisions.enough,
        )
        decisions.reached = hops
        if view is not None and settings.ask.compose == "composed":
            found = compose(graph, empty, decisions.retained(hops), view, resources, trace)
        elif judge is not None:

            def extend(candidate: Candidate) -> list[Candidate]:
                longer = replace(beam, depth=path_cost(graph, candidate.path, beam) + 1)
                more = explore(
                    graph,
                    [candidate],
                    longer,
                    prefilter=ranking.prefilter,
                    tournament=ranking.tournament,
                    trace=trace,
                )
                kept = more[-1].kept if more else ()
                return [replace(each, joins=candidate.joins, conditions=candidate.conditions) for each in kept]

            paths = decisions.finalists(hops)
            if judge.accepted is None:
                paths = judge.finish(paths, extend)
            found = _judged(graph, empty, judge.accepted, paths, settings, trace)
            if not paths and any(hop.pool for hop in hops):
                found = replace(found, reason="The language model chose none of the paths found.")
        else:
            ranked: Ranked = [(each, 1.0) for each in start] if are_answers else decisions.ranked_after(hops)
            _trace_ranked(ranked, graph, trace)
            more: list[str] = []
            if view is None:
                wording, beside = Wording(text, spans, excluded, cues), Beside(graph, resources.encoder)
                asked = [topic.value for topic in topics if isinstance(topic.value, Entity)]
                ranked, more = apply_conditions(beside, wording, request, asked, ranked, trace)
                empty = replace(empty, notes=(*notes, *more))
                if kind and not ranked:
                    return replace(declined(question, kind), method=METHOD, topics=tuple(topics))
                if are_answers and (left := wording.left(ranked[0][0])):
                    return replace(empty, reason=f"No relation or value was found for “{' '.join(left)}”.")
            # a time or an amount that is not applied makes the answer uncertain
            left_out = tuple(f"{NOT_APPLIED.format(each)}: " for each in ("time", "amount"))
            most = WEAK - 0.01 if any(note.startswith(left_out) for note in more) else 1.0
            found = _first_answered(graph, empty, ranked, ranking, settings, trace, most=most)
    except BudgetExhausted as error:
        found = _best_so_far(graph, empty, decisions, error, trace)
    if view is not None:
        trace.record(Leaks(texts=len(view.texts), leaks=view.leaked()))
    return found


def _notes(ranking: Ranking, resources: Resources, qualifier: str) -> tuple[str, ...]:
    why = "no language model configured" if resources.models is None else "rank.chooser excludes the language model"
    name = ranking.chooser.name
    ignored = [f"{NOT_APPLIED.format('time')}: “{qualifier}”."] if qualifier else []
    return (f"Compared by {name}." if ranking.by_model else f"Ranked by {name}: {why}.", *ignored)


def _masked(
    text: str,
    names: Mapping[Entity, Sequence[str]],
    spans: Sequence[Span],
    topics: Sequence[Named],
    settings: Settings,
    trace: Trace,
    *,
    prompted: str,
) -> tuple[str, Sequence[Span]]:
    """Return the question as paths are compared with it, without a language model, and the spans that are masked.

    Args:
        prompted: the question as prompts show it; "" without a language model.
    """
    style = settings.explore.mask
    ids = {topic.value: topic.id for topic in topics if isinstance(topic.value, Entity)} if style == "id" else {}
    masked = drop_spans(text, spans)
    if style in ("placeholder", "id"):
        masked = replace_spans(text, spans, {**placeholders(names), **ids})
    found = [] if masked == text else spans
    shown, every = (text, []) if style == "none" else (masked, [name for each in names.values() for name in each])
    unmasked = len(names.keys() - {span.topic for span in found})
    trace.record(Masked(question=shown, unmasked=unmasked, leaks=len(leaks([shown], every)), shown=prompted))
    return shown, found


def _key(candidate: Candidate, graph: KnowledgeGraph) -> str:
    return paths_key([candidate.path, *(join.path for join in candidate.joins)], graph.schema)


def _trace_ranked(ranked: Ranked, graph: KnowledgeGraph, trace: Trace) -> None:
    paths = tuple(RankedPath(c.words, _rounded(score), len(c.joins)) for c, score in ranked[:20])
    trace.record(PathsRanked(paths=paths, keys=tuple(_key(c, graph) for c, _ in ranked)))


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)


def _judged(
    graph: KnowledgeGraph,
    empty: Answer,
    accepted: Candidate | None,
    others: Sequence[Candidate],
    settings: Settings,
    trace: Trace,
) -> Answer:
    """Answer from the accepted path; if there is none, from the best path or not at all, as the settings say."""
    ranked: Ranked = [(each, None) for each in ([accepted] if accepted else others)]
    _trace_ranked(ranked, graph, trace)
    if accepted is None:
        for candidate in others[:1]:
            trace.record(Rejected(path=candidate.words, score=None, key=_key(candidate, graph)))
        if settings.ask.on_exhausted != "best" and others:
            return _rejected(empty, others[0], None, settings, by="the language model", first=True)
    late: StoreError | None = None
    for candidate, _ in ranked:
        try:
            found = answer_of_path(graph, candidate, None, empty.topics, trace)
        except (StoreTimeout, PartialResult) as error:
            late = error
            trace.record(GaveUp(path=candidate.words, error=str(error)))
            continue
        if found is not None:
            notes = empty.notes if accepted else (*empty.notes, NOT_ACCEPTED)
            return replace(_filled(found, empty, notes), accepted=accepted is not None)
    if late:
        raise late
    return replace(empty, reason=_no_answers(ranked))


def _no_answers(ranked: Ranked) -> str:
    return "No relation path starts at the topic." if not ranked else "None of the paths found has an answer."


def _first_answered(
    graph: KnowledgeGraph,
    empty: Answer,
    ranked: Ranked,
    ranking: Ranking,
    settings: Settings,
    trace: Trace,
    *,
    most: float,
) -> Answer:
    notes = empty.notes
    late: StoreError | None = None
    unaccepted = False
    for candidate, score in ranked:
        if not unaccepted and not ranking.accepts(candidate, score):
            decisive = None if ranking.accepted_by else _rounded(score)
            trace.record(Rejected(path=candidate.words, score=decisive, key=_key(candidate, graph)))
            if late:
                break  # a better path may have had the answer
            if settings.ask.on_exhausted != "best":
                first = candidate is ranked[0][0]
                return _rejected(empty, candidate, score, settings, by=ranking.accepted_by, first=first)
            unaccepted = True
            if ranking.accepted_by:
                notes += (NOT_ACCEPTED,)
        try:
            found = answer_of_path(graph, candidate, score, empty.topics, trace)
        except (StoreTimeout, PartialResult) as error:
            late = error
            trace.record(GaveUp(path=candidate.words, error=str(error)))
            notes += (f"Skipped a better path ({candidate.words}) whose answers could not be read: {error}",)
            continue
        if found is not None:
            found = replace(_filled(found, empty, notes), accepted=not unaccepted)
            return _with_confidence(graph, found, candidate, ranked, ranking, settings, trace, most=most)
    if late:
        raise late
    return replace(empty, reason=_no_answers(ranked), notes=notes)


def _rejected(
    empty: Answer, candidate: Candidate, score: float | None, settings: Settings, *, by: str, first: bool
) -> Answer:
    """Return the answer for a question if its best path was rejected.

    Args:
        empty: An answer without results, to fill in.
        candidate: The rejected path.
        score: The score of the path.
        settings: The settings, with the minimum score.
        by: What rejected the path, in words for the user; "" if the score was too low.
        first: Whether the path is the best of all paths; if False, it is the best of the paths with end nodes.
    """
    which = "No path" if first else "No other path"
    if by:
        reason = f"{which} was accepted by {by} (best: {candidate.words})"
    else:
        accept = Option("accept", settings.rank.accept)
        reason = f"{which} scores above {accept} (best: {score or 0.0:.3g}, {candidate.words})"
    if candidate.approximate:
        reason += "; the search was incomplete, so a better path may be missing"
    return replace(empty, reason=f"{reason}.", approximate=candidate.approximate)


def _with_confidence(
    graph: KnowledgeGraph,
    found: Answer,
    candidate: Candidate,
    ranked: Ranked,
    ranking: Ranking,
    settings: Settings,
    trace: Trace,
    *,
    most: float,
) -> Answer:
    """Return the answer of a path with its confidence, at most `most`; no answer if it is below `ask.min_score`."""
    least = settings.ask.min_score
    if ranking.accepted_by:
        note = "has no effect, because the confidence in an answer is known only without a language model."
        return replace(found, notes=(*found.notes, f"{Option('min-score')} {note}")) if least else found
    shares = ranking.explained(candidate)
    unexplained = ranking.unexplained(shares)
    if unexplained:
        words = ", ".join(f"“{word}”" for word in unexplained)
        found = replace(found, notes=(*found.notes, f"Nothing in the answer's path explains {words}."))
    features = ranking.features(
        candidate, ranked, shares.values(), topics=len(found.topics), answers=len(found.answers)
    )
    confidence = ranking.confidence(features)
    # a path from a class leaves words out, or all of them name relations that the path has not
    is_bare = starts_at_instances(graph, candidate.path) and not (candidate.conditions or candidate.operation)
    if (is_bare and unexplained) or not (features["explained"] or features["joined"]):
        most = WEAK - 0.01
    confidence = None if confidence is None else min(confidence, most)
    trace.record(
        Rated(path=candidate.words, confidence=confidence, features={k: round(v, 4) for k, v in features.items()})
    )
    found = replace(found, confidence=confidence)
    if confidence is None or confidence >= least:
        return found
    reason = f"The best answer has a score of {confidence:.0%}, below {Option('min-score', least)}"
    return replace(
        Answer(found.question, "no_answer", method=found.method, notes=found.notes, topics=found.topics),
        reason=f"{reason} ({candidate.words}).",
        approximate=found.approximate,
        confidence=confidence,
    )


def _filled(found: Answer, empty: Answer, notes: tuple[str, ...]) -> Answer:
    return replace(
        found, question=empty.question, method=empty.method, notes=(*notes, *found.notes), topics=empty.topics
    )


def _best_so_far(
    graph: KnowledgeGraph, empty: Answer, decisions: Decisions, error: BudgetExhausted, trace: Trace
) -> Answer:
    """Answer from the finished hops; called when the question's budget is spent."""
    with trace.grace():
        for candidate, score in decisions.best_so_far():
            try:
                found = answer_of_path(graph, candidate, score, empty.topics, trace)
            except (StoreError, BudgetExhausted) as failure:
                trace.record(GaveUp(path=candidate.words, error=str(failure)))
                continue
            if found is not None:
                notes = (*empty.notes, "The search was not finished. This is the answer of the best path so far.")
                return replace(_filled(found, empty, notes), status="budget_exhausted", reason=error.reason)
    return replace(empty, status="budget_exhausted", reason=error.reason)
