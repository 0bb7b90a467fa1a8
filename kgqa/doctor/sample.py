"""Draws a sample of a graph: edges, topics to explore from, and hubs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kgqa.errors import PartialResult, ResultCapped, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.templates import Variable, render
from kgqa.graph.store import Rows
from kgqa.graph.tables.labels import LABEL_BATCH
from kgqa.model import Entity, Literal, Step

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

    edges: dict[str, list[tuple[Entity, Entity]]]
    topics: list[Entity]
    hubs: dict[Entity, int]
    missed: StoreTimeout | PartialResult | None

    @property
    def entities(self) -> list[Entity]:
        """All nodes of the edges, each once."""
        return list(dict.fromkeys(node for pairs in self.edges.values() for pair in pairs for node in pair))


def draw_sample(graph: KnowledgeGraph) -> Sample:
    """Draw a sample of a graph. The same graph on the same server always gives the same sample.

    Raises:
        StoreUnavailable, QueryRejected: see `Store`.
        StoreTimeout, PartialResult: the relations could not be fetched. Edges that could not be fetched are left out.
    """
    missed: StoreTimeout | PartialResult | None = None
    edges = {}
    central: list[Entity] = []
    for index, relation in enumerate(sampled_relations(graph)):
        limit = HUB_EDGES if index < FREQUENT else EDGES
        try:
            rows = select(graph, "doctor_pairs", relation=Entity(relation), limit=limit)
        except (StoreTimeout, PartialResult) as error:
            missed = error
            continue
        if pairs := [(s, o) for s, o in rows if isinstance(s, Entity) and isinstance(o, Entity)]:
            edges[relation] = pairs[:EDGES]
        for nodes in zip(*pairs) if limit == HUB_EDGES else ():
            central += [node for node, count in Counter(nodes).most_common(2) if count > 1]
    topics = sorted({node for pairs in edges.values() for pair in pairs for node in pair}, key=lambda node: node.iri)
    random.Random(0).shuffle(topics)
    try:
        degrees = [(degree, node) for node, degree in graph.degrees(dict.fromkeys(central)).items()]
    except (StoreTimeout, PartialResult, ResultCapped):
        degrees = []
    hubs = sorted(((d, node) for d, node in degrees if d >= HUB_DEGREE), key=lambda each: (-each[0], each[1].iri))
    return Sample(edges, topics[:TOPICS], {node: degree for degree, node in hubs[:HUBS]}, missed)


def sampled_relations(graph: KnowledgeGraph) -> list[str]:
    """Choose relations for exploration that do not touch mediators: the most frequent relation, and some rarer ones."""
    if graph.tables.counted:
        known = list(graph.relations)
    else:
        rows = select(graph, "doctor_relations", triples=LOOKED_AT)
        known = sorted(row[0].iri for row in rows if isinstance(row[0], Entity))
    extent = graph.mediators.extent
    usable = [
        relation
        for relation in known
        if not graph.is_noise(relation) and extent(Step(relation, "out")) == extent(Step(relation, "in")) == "none"
    ]
    # most relations in the rarer half have only one or two edges
    usable = usable[: max(RELATIONS, len(usable) // 2)]
    return usable[:: max(1, len(usable) // RELATIONS)][:RELATIONS]


def select(graph: KnowledgeGraph, template: str, **values: object) -> Rows:
    """Run the query queries/TEMPLATE.rq on a graph, without a cache."""
    return graph.store.select(render(template, view=graph.view, **values), fresh=True)


def names_of(
    graph: KnowledgeGraph, entities: Sequence[Entity], predicates: Sequence[str]
) -> Iterator[tuple[Entity, Literal]]:
    """Yield the names of entities by these predicates in all languages."""
    values = {
        "predicates": [Entity(predicate) for predicate in predicates],
        "predicate": Variable("predicate") if graph.store.capabilities.remote else None,
        "languages": [],
    }
    for start in range(0, len(entities) if predicates else 0, LABEL_BATCH):
        for node, _, name in select(
            graph, "labels_by_predicate", nodes=entities[start : start + LABEL_BATCH], **values
        ):
            if isinstance(node, Entity) and isinstance(name, Literal):
                yield node, name
