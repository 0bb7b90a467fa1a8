"""Small graphs by their triples, opened by the real engine."""

from __future__ import annotations

import pytest

from kgqa.cache import Cache
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.opening import open_graph

NS = "http://rdf.freebase.com/ns/"


@pytest.fixture(scope="module")
def make_graph(tmp_path_factory):
    """`make_graph("m.1 people.person.gender m.2", ...)`: a graph of these triples; objects in quotes are literals."""
    graphs = []

    def make(*triples: str, walks=None):
        place = tmp_path_factory.mktemp("graph")
        lines = []
        for triple in triples:
            subject, relation, object_ = triple.split(" ", 2)
            object_ = object_ if object_.startswith('"') else f"<{NS}{object_}>"
            lines.append(f"<{NS}{subject}> <{NS}{relation}> {object_} .\n")
        (place / "facts.nt").write_text("".join(lines))
        load_graph(place / "graph", [place / "facts.nt"])
        graphs.append(open_graph(place / "graph", schema="freebase", walks=walks, cache=Cache(place / "cache")))
        return graphs[-1]

    yield make
    for graph in graphs:
        graph.close()
