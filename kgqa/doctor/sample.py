"""A sample of a graph: some of its edges, the nodes that questions would start from, and hubs."""

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
"""Triples that are looked at for relations, where all of them are too many to count."""
FREQUENT = 4
HUB_EDGES = 200
HUB_DEGREE = 1_000
HUBS = 3


@dataclass(frozen=True)
class Sample:
    """Some of a graph.

    `edges`: by relation, pairs of subject and object, neither of them a mediator. `topics`: entities among them.
    `hubs`: entities with HUB_DEGREE edges or more, and how many they have. `missed`: why some edges are not among them,
    None where all came that were asked for.
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
    """Draw a sample: the same one of the same graph on the same server.

    Raises:
        StoreUnavailable, QueryRejected: see `Store`. StoreTimeout, PartialResult: the relations did not come; edges that
            do not are left out.
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
    """Relations that exploration walks along and that no mediator stands at, the most frequent one first, the others
    spread over all the rest.
    """
    known = list(graph.relations) if graph.tables.counted else _relations_met(graph)
    usable = [r for r in known if not graph.is_noise(r) and not _at_mediators(graph, r)]
    # the rarer half has an edge or two each, and tells little
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
    """Entities at which many edges of frequent relations end."""
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
