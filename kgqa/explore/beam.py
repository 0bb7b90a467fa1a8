"""Beam search over relation paths (thesis, sections 2.11, 3.2 and chapter 4): expand, prefilter, tournament, repeat.

Depth counts edges, including those at mediators, as published; with `mediator_hop="free"` the edges into and out of a
mediator count as one. A path that ends on a mediator is not a candidate: it is expanded before anything is ranked, or
dropped at the last edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kgqa.errors import StoreTimeout
from kgqa.graph.expansion import Expansion
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.trace import Trace
from kgqa.words import (
    PathWording,
    arrow_words,
    grouped_steps,
    hop_words,
    path_key,
    published_words,
    relation_words,
    type_words,
)

MediatorHop = Literal["edge", "free"]
RankCandidates = Callable[[Sequence[Candidate]], list[Candidate]]
SelectEntities = Callable[[Sequence[Candidate]], list[Candidate]]


@dataclass(frozen=True, slots=True)
class BeamSettings:
    """How far and how wide to explore.

    Attributes:
        depth: The most hops of a path; see the module.
        mediator_hop: Whether a mediator is an edge or free.
        wording: The words by which paths are ranked.
        kinds: Find out what kind of entity each path leads to.
        last_only: Describe paths by their last hop (the ablation of whole paths).
    """

    depth: int = 2
    mediator_hop: MediatorHop = "edge"
    wording: PathWording = "words"
    kinds: bool = True
    last_only: bool = False


@dataclass(frozen=True, slots=True)
class HopResult:
    """The result of one hop: all its candidates, those that passed the prefilter, and the winners."""

    pool: tuple[Candidate, ...]
    shortlist: tuple[Candidate, ...]
    kept: tuple[Candidate, ...]


def explore(
    graph: KnowledgeGraph,
    topics: Sequence[Entity],
    settings: BeamSettings,
    *,
    prefilter: RankCandidates,
    tournament: RankCandidates,
    trace: Trace,
    select: SelectEntities | None = None,
    enough: Callable[[Sequence[HopResult]], bool] = lambda hops: False,
) -> list[HopResult]:
    """Explore hop by hop, all topics together.

    The pool of a hop contains the paths kept so far and their extensions, so that paths of different lengths and topics
    compete (thesis, figure 3.2).

    Args:
        graph: The graph.
        topics: Where paths start.
        settings: How far and how wide.
        prefilter: Returns the better ones of some candidates, best first.
        tournament: The same, for the candidates that passed the prefilter.
        trace: Records the search.
        select: Restricts winners to some entities at their ends before they are expanded; None expands all ends.
        enough: Called after every hop; True ends the exploration.

    Raises:
        StoreTimeout: The first hop timed out; a timeout in a later hop ends the exploration.
    """
    hops: list[HopResult] = []
    keys: dict[RelationPath, str] = {}
    kept: list[Candidate] = []
    frontier = [Candidate(RelationPath(topic), "") for topic in topics]
    for number in range(1, settings.depth + 1):
        try:
            found = _expand(graph, frontier, settings, trace)
        except StoreTimeout:
            if not hops:
                raise
            # the earlier hops are valid, but better paths may be missing
            hops[-1] = _approximate(hops[-1])
            return hops
        # behind a relation that leads to mediators and to others, a path is found in two hops
        found = [candidate for candidate in found if candidate.path not in keys]
        if not found:
            break
        pool = [*kept, *found]
        trace.count("hops")
        trace.count("candidates", len(found))
        keys |= {candidate.path: path_key(candidate.path, graph.schema) for candidate in found}
        trace.event("pool", hop=number, paths=[keys[c.path] for c in pool])
        short = prefilter(pool)
        trace.event("shortlist", hop=number, paths=[keys[c.path] for c in short])
        kept = tournament(short)
        trace.event("kept", hop=number, paths=[c.words for c in kept], keys=[keys[c.path] for c in kept])
        hops.append(HopResult(tuple(pool), tuple(short), tuple(kept)))
        if number == settings.depth or enough(hops):
            break
        new = {candidate.path for candidate in found}
        frontier = [c for c in kept if c.path in new and path_cost(graph, c.path, settings) < settings.depth]
        if select and frontier:
            frontier = select(frontier)  # the winners that are kept as answers keep all their ends
    return hops


def _approximate(hop: HopResult) -> HopResult:
    parts = (tuple(replace(c, approximate=True) for c in part) for part in (hop.pool, hop.shortlist, hop.kept))
    return HopResult(*parts)


def path_cost(graph: KnowledgeGraph, path: RelationPath, settings: BeamSettings) -> int:
    """Return the length of a path in hops."""
    return len(path) if settings.mediator_hop == "edge" else logical_hops(graph, path)


def logical_hops(graph: KnowledgeGraph, path: RelationPath) -> int:
    """Return the length of a path when a mediator with the edges into and out of it counts as one hop."""
    return len(grouped_steps(path, graph.leads_to_mediator))


def make_candidate(
    graph: KnowledgeGraph,
    path: RelationPath,
    settings: BeamSettings,
    *,
    approximate: bool = False,
    restricted: tuple[tuple[int, tuple[Entity, ...]], ...] = (),
) -> Candidate:
    """Make a candidate of a path, in plain words for ranking or in the published wording of full names and arrows."""
    hops = hop_words(path, graph.schema, graph.relation_labels, is_mediator=graph.leads_to_mediator)
    if settings.last_only:
        words = hops[-1]
    elif settings.wording == "published":
        words = published_words(path, graph.schema, graph.relation_labels)
    else:
        words = ", ".join(hops)
    leads_to = _end_words(graph, path.steps[-1]) if settings.kinds and path.steps else ""
    return Candidate(path, words, approximate, hops, leads_to, restricted=restricted)


def _end_words(graph: KnowledgeGraph, step: Step) -> str:
    """Describe what a step leads to: its type, or the relations that describe its ends."""
    if type_ := graph.target_type(step):
        return type_words(type_, graph.schema)
    return ", ".join(relation_words(r, graph.schema, graph.relation_labels) for r in graph.describing_relations(step))


def _expand(
    graph: KnowledgeGraph, frontier: Sequence[Candidate], settings: BeamSettings, trace: Trace
) -> list[Candidate]:
    found: dict[RelationPath, Candidate] = {}
    late: StoreTimeout | None = None
    mediators = graph.mediators
    waiting = list(frontier)
    while waiting:
        parents, waiting = waiting, []
        expansions = graph.map(
            lambda parent: graph.next_steps(parent.path, restricted=parent.restricted),
            parents,
            tolerated=(StoreTimeout,),
        )
        if settings.kinds:
            _look_up_kinds(graph, parents, expansions, settings)
        for parent, expansion in zip(parents, expansions):
            if isinstance(expansion, StoreTimeout):
                # the other paths continue, and all candidates become approximate
                late = expansion
                trace.event("gave_up", path=_shown(graph, parent.path), error=str(expansion))
                continue
            approximate = parent.approximate or expansion.approximate
            onward = 0
            for step in expansion.steps:
                path = parent.path.then(step)
                if path_cost(graph, path, settings) > settings.depth:
                    continue
                candidate = make_candidate(graph, path, settings, approximate=approximate, restricted=parent.restricted)
                extent = mediators.extent(step)
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


def _look_up_kinds(
    graph: KnowledgeGraph,
    parents: Sequence[Candidate],
    expansions: Sequence[Expansion | StoreTimeout],
    settings: BeamSettings,
) -> None:
    """Look up what the steps within the depth lead to, concurrently and before the candidates are made."""
    steps = {
        step: None
        for parent, expansion in zip(parents, expansions)
        for step in (() if isinstance(expansion, StoreTimeout) else expansion.steps)
        if path_cost(graph, parent.path.then(step), settings) <= settings.depth and not graph.target_type(step)
    }
    graph.map(graph.describing_relations, steps)


def _may_pass(graph: KnowledgeGraph, path: RelationPath, settings: BeamSettings) -> bool:
    """Return whether the edge after a mediator is within the depth; consecutive mediators are limited too."""
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
