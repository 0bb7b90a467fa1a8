"""Draws a sample of a graph: edges, topics to explore from, and hubs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kgqa.errors import PartialResult, ResultCapped, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.templates import render
from kgqa.model import Entity, Step

RELATIONS = 12
EDGES = 20
TOPICS = 20
LOOKED_AT = 10_000
"""Number of triples in which to look for relations, if the graph is too large to count its relations."""
FREQUENT = 4
HUB_EDGES = 200
HUB_DEGREE = 1_000
HUBS = 3


@dataclass(frozen=True)
class Sample:
    """A sample of a graph.

    `edges`: pairs of subject and object by relation, without mediators. `topics`: some entities of these edges. `hubs`:
    entities with HUB_DEGREE edges or more, with their degrees. `missed`: the error if some edges could not be fetched.
    """

    edges: dict[str, tuple[tuple[Entity, Entity], ...]]
    topics: tuple[Entity, ...]
    hubs: tuple[tuple[Entity, int], ...]
    missed: StoreTimeout | PartialResult | None = None

    @property
    def entities(self) -> tuple[Entity, ...]:
        """All nodes of the edges, each once."""
        return tuple(dict.fromkeys(node for pairs in self.edges.values() for pair in pairs for node in pair))


def draw_sample(graph: KnowledgeGraph) -> Sample:
    """Draw a sample of a graph. The same graph on the same server always gives the same sample.

    Raises:
        StoreUnavailable, QueryRejected: see `Store`.
        StoreTimeout, PartialResult: the relations could not be fetched. Edges that could not be fetched are left out.
    """
    relations = sampled_relations(graph)
    missed: StoreTimeout | PartialResult | None = None
    edges = {}
    for relation in relations:
        try:
            edges[relation] = _pairs(graph, relation, EDGES)
        except (StoreTimeout, PartialResult) as error:
            missed = error
    edges = {relation: pairs for relation, pairs in edges.items() if pairs}
    nodes = sorted({node.iri for pairs in edges.values() for pair in pairs for node in pair})
    random.Random(0).shuffle(nodes)
    topics = tuple(Entity(iri) for iri in nodes[:TOPICS])
    return Sample(edges, topics, _hubs(graph, relations[:FREQUENT]), missed)


def sampled_relations(graph: KnowledgeGraph) -> list[str]:
    """Choose relations for exploration that do not touch mediators: the most frequent relation, and some rarer ones."""
    known = list(graph.relations) if graph.tables.counted else _relations_met(graph)
    usable = [r for r in known if not graph.is_noise(r) and not _at_mediators(graph, r)]
    # most relations in the rarer half have only one or two edges
    usable = usable[: max(RELATIONS, len(usable) // 2)]
    apart = max(1, len(usable) // RELATIONS)
    return usable[::apart][:RELATIONS]


def _relations_met(graph: KnowledgeGraph) -> list[str]:
    rows = graph.store.select(render("doctor_relations", view=graph.view, triples=LOOKED_AT), fresh=True)
    return sorted(row[0].iri for row in rows if isinstance(row[0], Entity))


def _at_mediators(graph: KnowledgeGraph, relation: str) -> bool:
    return any(graph.mediators.extent(Step(relation, side)) != "none" for side in ("out", "in"))


def _pairs(graph: KnowledgeGraph, relation: str, limit: int) -> tuple[tuple[Entity, Entity], ...]:
    query = render("doctor_pairs", view=graph.view, relation=Entity(relation), limit=limit)
    rows = graph.store.select(query, fresh=True)
    return tuple((s, o) for s, o in rows if isinstance(s, Entity) and isinstance(o, Entity))


def _hubs(graph: KnowledgeGraph, relations: Sequence[str]) -> tuple[tuple[Entity, int], ...]:
    """Find entities that have very many edges, among the nodes of frequent relations."""
    candidates: list[Entity] = []
    for relation in relations:
        try:
            pairs = _pairs(graph, relation, HUB_EDGES)
        except (StoreTimeout, PartialResult, ResultCapped):
            continue
        for side in (0, 1):
            candidates += [node for node, count in Counter(pair[side] for pair in pairs).most_common(2) if count > 1]
    try:
        degrees = graph.degrees(dict.fromkeys(candidates))
    except (StoreTimeout, PartialResult, ResultCapped):
        return ()
    found = sorted(degrees.items(), key=lambda item: (-item[1], item[0].iri))
    return tuple((node, degree) for node, degree in found if degree >= HUB_DEGREE)[:HUBS]
