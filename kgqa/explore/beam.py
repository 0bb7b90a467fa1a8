"""Beam search over relation paths (thesis, sections 2.11 and 3.2): expand, prefilter, tournament, again.

Depth counts edges, mediators included, as published; with `mediator_hop="free"` a mediator and its exit count
as one. A path that ends on a mediator is no candidate: it is expanded before anything is ranked, or, at the
last edge, dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kgqa.errors import StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, RelationPath
from kgqa.rank.lexical import terms
from kgqa.trace import Trace
from kgqa.words import (
    PathWording,
    arrow_words,
    grouped_steps,
    path_words,
    property_words,
    published_words,
    relation_words,
)

MediatorHop = Literal["edge", "free"]
Rank = Callable[[Sequence[Candidate]], list[Candidate]]


@dataclass(frozen=True, slots=True)
class BeamSettings:
    """How far and how wide: `depth` in hops (see the module), `beam` paths kept a hop, `wording` for ranking."""

    depth: int = 2
    beam: int = 3
    mediator_hop: MediatorHop = "edge"
    wording: PathWording = "words"


def explore(
    graph: KnowledgeGraph,
    topics: Sequence[Entity],
    settings: BeamSettings,
    *,
    prefilter: Rank,
    tournament: Rank,
    trace: Trace,
) -> list[Candidate]:
    """The paths kept at every hop, over all topics together, earlier hops first.

    Args:
        prefilter, tournament: each takes candidates and gives the better ones back, best first.
    """
    kept: list[Candidate] = []
    seen: set[RelationPath] = set()
    frontier = [Candidate(RelationPath(topic), "") for topic in topics]
    for hop in range(1, settings.depth + 1):
        try:
            pool = _expand(graph, frontier, settings, trace)
        except StoreTimeout:
            if not kept:
                raise
            # what the earlier hops found still stands, but there might have been better further on
            return [replace(candidate, approximate=True) for candidate in kept]
        # past a relation that leads to mediators and others, a path is met in two hops
        pool = [candidate for candidate in pool if candidate.path not in seen]
        seen.update(candidate.path for candidate in pool)
        if not pool:
            break
        trace.count("hops")
        trace.count("candidates", len(pool))
        short = prefilter(pool)
        trace.event("filtered", hop=hop, pool=len(pool), kept=len(short), best=[c.words for c in short[:10]])
        best = tournament(short)
        trace.event("kept", hop=hop, paths=[c.words for c in best])
        kept.extend(best)
        frontier = [c for c in best if cost(graph, c.path, settings) < settings.depth]
    return kept


def cost(graph: KnowledgeGraph, path: RelationPath, settings: BeamSettings) -> int:
    """The length of a path in hops."""
    return len(path) if settings.mediator_hop == "edge" else logical_hops(graph, path)


def logical_hops(graph: KnowledgeGraph, path: RelationPath) -> int:
    """The length of a path with each mediator and its exit as one hop."""
    return len(grouped_steps(path, graph.leads_to_mediator))


def unnamed_hops(graph: KnowledgeGraph, path: RelationPath, question: str) -> int:
    """How many logical hops after the first go along a relation that the question does not name.

    A hop is named when the property that ends it (the last part of its name, or its label) is in the question
    word for word, and brings in something the hops before it do not say.
    """
    asked = set(terms(question))
    said: set[str] = set()
    unnamed = 0
    for index, group in enumerate(grouped_steps(path, graph.leads_to_mediator)):
        ending = set(terms(property_words(group[-1].relation, graph.schema, graph.relation_labels)))
        named = bool(ending - said) and ending <= asked
        if index and not named:
            unnamed += 1
        for step in group:
            said |= set(terms(relation_words(step.relation, graph.schema, graph.relation_labels)))
    return unnamed


def words_of(graph: KnowledgeGraph, path: RelationPath, wording: PathWording) -> str:
    """The words a path is ranked by: plain ones, or the published wording of full names and arrows."""
    if wording == "published":
        return published_words(path, graph.schema)
    return path_words(path, graph.schema, graph.relation_labels, is_mediator=graph.leads_to_mediator)


def _expand(
    graph: KnowledgeGraph, frontier: Sequence[Candidate], settings: BeamSettings, trace: Trace
) -> list[Candidate]:
    found: dict[RelationPath, Candidate] = {}
    waiting = list(frontier)
    late: StoreTimeout | None = None
    while waiting:
        parent = waiting.pop(0)
        try:
            expansion = graph.next_steps(parent.path)
        except StoreTimeout as error:
            # one path too many: the others go on, and what is found is said to be approximate
            late = error
            trace.event("gave_up", path=_shown(graph, parent.path), error=str(error))
            continue
        approximate = parent.approximate or expansion.approximate
        onward = 0
        for step in expansion.steps:
            path = parent.path.then(step)
            if cost(graph, path, settings) > settings.depth:
                continue
            candidate = Candidate(path, words_of(graph, path, settings.wording), approximate)
            extent = graph.mediators.extent(step)
            if extent != "all":
                found.setdefault(path, candidate)
            if extent != "none" and _may_pass(graph, path, settings):
                waiting.append(candidate)
                onward += 1
        trace.event(
            "expanded",
            path=_shown(graph, parent.path),
            steps=len(expansion.steps),
            through_mediators=onward,
            approximate=approximate,
        )
    if late and not found:
        raise late
    return [replace(candidate, approximate=True) if late else candidate for candidate in found.values()]


def _may_pass(graph: KnowledgeGraph, path: RelationPath, settings: BeamSettings) -> bool:
    """Whether the edge after a mediator is still within the depth; and mediators do not follow each other for ever."""
    if settings.mediator_hop == "edge":
        return len(path) < settings.depth
    return len(path) < 3 * settings.depth


def _shown(graph: KnowledgeGraph, path: RelationPath) -> str:
    return arrow_words(
        graph.schema.short_id(path.topic.iri),
        path,
        graph.schema,
        graph.relation_labels,
        is_mediator=graph.leads_to_mediator,
    )
