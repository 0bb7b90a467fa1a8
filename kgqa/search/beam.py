"""Beam search over relation paths (thesis, sections 2.11, 3.2 and chapter 4): expand, prefilter, tournament, repeat.

The depth of a path is its number of edges, including edges to mediators. With `mediator_hop="free"`,
the edge into a mediator and the edge out of it count as one edge. A path that ends at a mediator is not a candidate. It
is extended by one more edge before candidates are ranked, or dropped if the maximum depth is reached (see
`BeamSettings.completed`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kgqa.errors import StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.search.classes import starts_at_instances
from kgqa.search.kinds import value_kinds
from kgqa.text.words import (
    PathWording,
    arrow_words,
    grouped_steps,
    hop_words,
    path_key,
    published_words,
    relation_words,
    type_words,
)
from kgqa.trace import Expanded, GaveUp, Kept, Pool, Shortlist
from kgqa.trace.trace import Trace

RankCandidates = Callable[[Sequence[Candidate]], list[Candidate]]


@dataclass(frozen=True, slots=True)
class BeamSettings:
    """Settings of the beam search.

    Attributes:
        depth: Most hops of a path.
        mediator_hop: How hops are counted at a mediator: "edge" for two hops (in and out), "free" for one.
        wording: The style of words that describe paths for ranking.
        kinds: Whether to look up the type of entity that each path leads to.
        completed: Most paths per hop that end at a mediator at the maximum depth and get one more edge, with which they
            exceed it; the best of the prefilter are taken.
        last_only: Whether a path is described by its last hop only, for experiments that compare this with whole paths.
        mediators: Whether a path may end at a mediator, as published; if so, none gets one more edge there.
    """

    depth: int = 2
    mediator_hop: Literal["edge", "free"] = "edge"
    wording: PathWording = "words"
    kinds: bool = True
    completed: int = 0
    last_only: bool = False
    mediators: bool = False


@dataclass(frozen=True, slots=True)
class HopResult:
    """The result of one hop of the beam search.

    Attributes:
        pool: All candidates.
        shortlist: The candidates that passed the prefilter.
        kept: The winners of the tournament.
    """

    pool: Sequence[Candidate]
    shortlist: Sequence[Candidate]
    kept: Sequence[Candidate]


def explore(
    graph: KnowledgeGraph,
    start: Sequence[Candidate],
    settings: BeamSettings,
    *,
    prefilter: RankCandidates,
    tournament: RankCandidates,
    trace: Trace,
    kept: Sequence[Candidate] = (),
    select: RankCandidates | None = None,
    enough: Callable[[Sequence[HopResult]], bool] = lambda hops: False,
) -> list[HopResult]:
    """Search the graph hop by hop from several paths at the same time, and return the result of each hop.

    The pool of a hop contains the paths kept so far and their extensions. Paths of different lengths and from different
    topics therefore compete (thesis, figure 3.2).

    Args:
        graph: The graph.
        start: The paths to extend; a topic is a path without steps.
        settings: Settings of the search.
        prefilter: Returns the better candidates of a pool, best first.
        tournament: Returns the winners among the candidates that passed the prefilter, best first.
        trace: Records the search.
        kept: Paths that compete with those found, such as the starts that may be answers themselves.
        select: Restricts the winners to some of their end nodes before they are extended; None to extend from all
                end nodes.
        enough: Called after every hop with all results so far; True ends the search.

    Raises:
        StoreTimeout: A query of the first hop timed out. A timeout in a later hop only ends the search.
    """
    hops: list[HopResult] = []
    keys = {each.path: path_key(each.path, graph.schema) for each in kept}
    frontier = start
    first = min((path_cost(graph, each.path, settings) for each in start), default=0)
    for number in range(first + 1, settings.depth + 1):
        try:
            found = _expand(graph, frontier, settings, prefilter, trace)
        except StoreTimeout:
            if not hops:
                raise
            # the results of earlier hops are valid, but better paths may be missing
            last = hops.pop()
            parts = [[replace(c, approximate=True) for c in part] for part in (last.pool, last.shortlist, last.kept)]
            return [*hops, HopResult(*parts)]
        # if a relation leads both to mediators and to other nodes, the same path can be found in two hops
        found = [candidate for candidate in found if candidate.path not in keys]
        if not found:
            break
        pool = [*kept, *found]
        trace.count("hops")
        trace.count("candidates", len(found))
        keys |= {candidate.path: path_key(candidate.path, graph.schema) for candidate in found}
        trace.record(Pool(hop=number, paths=tuple(keys[c.path] for c in pool)))
        short = prefilter(pool)
        trace.record(Shortlist(hop=number, paths=tuple(keys[c.path] for c in short)))
        # paths chosen in earlier hops stay if the model chooses none in this hop
        kept = tournament(short) or kept
        trace.record(Kept(hop=number, paths=tuple(c.words for c in kept), keys=tuple(keys[c.path] for c in kept)))
        hops.append(HopResult(pool, short, kept))
        if number == settings.depth or enough(hops):
            break
        new = {candidate.path for candidate in found}
        frontier = [c for c in kept if c.path in new and path_cost(graph, c.path, settings) < settings.depth]
        if select and frontier:
            frontier = select(frontier)  # only the frontier is restricted; the winners in `kept` keep all end nodes
    return hops


def path_cost(graph: KnowledgeGraph, path: RelationPath, settings: BeamSettings) -> int:
    """Return the length of a path in hops, as counted by `settings.mediator_hop`."""
    return len(path) if settings.mediator_hop == "edge" else logical_hops(graph, path)


def logical_hops(graph: KnowledgeGraph, path: RelationPath) -> int:
    """Return the length of a path in hops; the two edges at a mediator count as one hop."""
    return len(grouped_steps(path, graph.tables.leads_to_mediator))


def worded(graph: KnowledgeGraph, candidates: Sequence[Candidate], settings: BeamSettings) -> list[Candidate]:
    """Describe the paths of candidates in plain words, or with full names and arrows as published."""
    schema, tables = graph.schema, graph.tables
    last = [each.path.steps[-1] for each in candidates] if settings.kinds else []
    kinds = graph.paths.kinds(last)
    leads_to = _end_words(graph, kinds)
    found = []
    for candidate in candidates:
        path = candidate.path
        hops = hop_words(path, schema, tables.relation_labels, is_mediator=tables.leads_to_mediator)
        hops = hops[1:] if starts_at_instances(graph, path) else hops
        words = ", ".join(hops[-1:] if settings.last_only else hops)
        if settings.wording == "published":
            pruned = RelationPath(path.topic, path.steps[-1:]) if settings.last_only else path
            words = published_words(pruned, schema, tables.relation_labels)
        step = path.steps[-1]
        ends = tuple(sorted(kinds.get(step, ())))
        found.append(replace(candidate, words=words, hops=hops, kinds=ends, leads_to=leads_to.get(step, "")))
    return found


def _end_words(graph: KnowledgeGraph, kinds: Mapping[Step, Collection[str]]) -> dict[Step, str]:
    """Return the kinds of each step's end nodes in words; for no or many kinds, relations that describe the nodes."""
    few = {step: [Entity(kind) for kind in sorted(several)] for step, several in kinds.items() if 0 < len(several) < 4}
    declared = graph.tables.classes - graph.tables.counted_types
    labels = graph.labels({kind for several in few.values() for kind in several if kind.iri not in declared})
    # where the types of most things are known, what is unknown may be anything
    others = kinds.keys() - few.keys()
    things = [step for step in few if "thing" in value_kinds(kinds[step], graph.schema)]
    described = graph.paths.describing_relations([] if things else others)
    words = {
        step: [relation_words(each, graph.schema, graph.tables.relation_labels) for each in several]
        for step, several in described.items()
    }
    words |= {
        step: [labels.get(kind) or type_words(kind.iri, graph.schema) for kind in several]
        for step, several in few.items()
    }
    return {step: ", ".join(words.get(step, ())) for step in kinds}


def _expand(
    graph: KnowledgeGraph,
    frontier: Sequence[Candidate],
    settings: BeamSettings,
    prefilter: RankCandidates,
    trace: Trace,
) -> list[Candidate]:
    found: dict[RelationPath, Candidate] = {}
    late: StoreTimeout | None = None
    extent = graph.tables.mediators.extent
    # one more edge may follow a mediator; this also limits chains of several mediators
    longest = settings.depth if settings.mediator_hop == "edge" else 3 * settings.depth
    waiting = list(frontier)
    while waiting:
        longer: list[Candidate] = []
        for parent, expansion in zip(waiting, graph.paths.steps(waiting, tolerated=(StoreTimeout,))):
            if isinstance(expansion, StoreTimeout):
                # the other paths are still extended, but all candidates are marked as approximate
                late = expansion
                trace.record(GaveUp(path=_shown(graph, parent.path), error=str(expansion)))
                continue
            approximate = parent.approximate or expansion.approximate
            deepest = settings.depth + (bool(settings.completed) and graph.paths.ends_on_mediators(parent.path))
            paths = [
                path for path in map(parent.path.then, expansion.steps) if path_cost(graph, path, settings) <= deepest
            ]
            longer += [Candidate(path, approximate=approximate, restricted=parent.restricted) for path in paths]
            onward = [path for path in paths if extent(path.steps[-1]) != "none" and len(path) < longest]
            trace.record(
                Expanded(
                    path=_shown(graph, parent.path),
                    steps=len(expansion.steps),
                    through_mediators=len(onward),
                    approximate=approximate,
                )
            )
        longer = worded(graph, longer, settings)
        if settings.mediators:
            found |= {each.path: each for each in longer}
            break
        found |= {each.path: each for each in longer if extent(each.path.steps[-1]) != "all" and each.path not in found}
        through = [each for each in longer if extent(each.path.steps[-1]) != "none"]
        waiting = [each for each in through if len(each.path) < longest]
        incomplete = [each for each in through if len(each.path) == longest]
        if settings.completed and incomplete:
            waiting += prefilter(incomplete)[: settings.completed]
    if late and not found:
        raise late
    return [replace(candidate, approximate=True) if late else candidate for candidate in found.values()]


def _shown(graph: KnowledgeGraph, path: RelationPath) -> str:
    return arrow_words(
        graph.schema.short_id(path.topic.iri),
        path,
        graph.schema,
        graph.tables.relation_labels,
        is_mediator=graph.tables.leads_to_mediator,
    )
