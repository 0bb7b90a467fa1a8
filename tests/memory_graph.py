"""Small graphs in memory, with the engine of graph folders but without files and worker processes."""

from __future__ import annotations

from collections.abc import Sequence

import pyoxigraph as ox

from kgqa.graph.graph import KnowledgeGraph
from kgqa.schema import bundled_schema
from tests.graph.memory_store import MemoryStore


class ConcurrentStore(MemoryStore):
    """A store that takes several queries at once, like a graph folder."""

    concurrency = 4


def memory_graph(lines: Sequence[str], *, schema: str = "freebase", **options) -> KnowledgeGraph:
    """Return a graph over N-Triples lines."""
    return KnowledgeGraph(ConcurrentStore(lines), bundled_schema(schema), **options)


def turtle_graph(turtle: str) -> KnowledgeGraph:
    """Return a graph under the RDF Schema vocabulary over a Turtle document."""
    triples = ox.parse(turtle.encode(), format=ox.RdfFormat.TURTLE)
    return memory_graph([f"{each.subject} {each.predicate} {each.object} ." for each in triples], schema="rdfs")
