"""Fixtures of the evaluation tests."""

from __future__ import annotations

import pytest

from kgqa.graph.graph import KnowledgeGraph
from kgqa.schema import bundled_schema
from tests.graph.memory_store import MemoryStore

NS = "http://rdf.freebase.com/ns/"


@pytest.fixture(scope="module")
def make_graph():
    """`make_graph("m.1 people.person.gender m.2", ...)`: a graph of these triples; quoted objects are literals."""
    graphs = []

    def make(*triples: str, walks=None):
        lines = []
        for triple in triples:
            subject, relation, object_ = triple.split(" ", 2)
            object_ = object_ if object_.startswith('"') else f"<{NS}{object_}>"
            lines.append(f"<{NS}{subject}> <{NS}{relation}> {object_} .")
        graphs.append(KnowledgeGraph(MemoryStore(lines), bundled_schema("freebase"), walks=walks))
        return graphs[-1]

    yield make
    for graph in graphs:
        graph.close()
