"""Tables of small random graphs, compared with a count in Python."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.model import Candidate, Entity, RelationPath, Triple
from kgqa.schema import Schema, bundled_schema
from tests.conftest import SOAK
from tests.graph.memory_store import MemoryStore
from tests.graph.tables.test_following_edits import KINDS


def counted(schema: Schema, triples: set[Triple]) -> dict[str, tuple[int, int, int]]:
    """Return for each relation the number of its edges, and of those whose object or subject is a mediator."""
    types = set(map(Entity, schema.mediator_types))
    if schema.mediator_marked_by:
        marker, value = schema.mediator_marked_by
        types |= {t.subject for t in triples if t.relation == marker and getattr(t.object, "value", None) == value}
    mediators = {t.subject for t in triples if t.relation in schema.types and t.object in types}

    def is_mediator(node) -> bool:
        return isinstance(node, Entity) and (node in mediators or node.iri.startswith(schema.mediator_iri_prefixes))

    edges, out, into = (
        Counter(t.relation for t in triples if test(t))
        for test in (lambda t: True, lambda t: is_mediator(t.object), lambda t: is_mediator(t.subject))
    )
    return {relation: (count, out[relation], into[relation]) for relation, count in edges.items()}


@pytest.mark.soak
@settings(max_examples=200 if SOAK else 40, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.integers(0, 60), st.integers(0, 2**32), st.booleans())
def test_edges_of_random_graphs(name, size, seed, several):
    kind, rng, store = KINDS[name], random.Random(seed), MemoryStore()
    graphs = ["http://g/1", "http://g/2"] if several else [""]
    triples = {kind.triple(rng) for _ in range(size)}
    for graph in graphs:  # a triple in two graphs of a view counts once
        store.edit(graph, [triple for triple in triples if not several or graph == graphs[0] or rng.random() < 0.5])
    graph = KnowledgeGraph(store, kind.schema, view=graphs if several else ())
    expected = counted(kind.schema, triples)
    assert graph.tables.mediators.edges == expected
    assert graph.tables.relations == {relation: edges for relation, (edges, *_) in expected.items()}


@pytest.mark.parametrize("schema", ["wikidata", "freebase", "corpus", "grbench", "rdfs"])
@pytest.mark.parametrize("triples", [[], [Triple(Entity("http://e/a"), "http://e/p", Entity("http://e/b"))]])
def test_a_graph_that_declares_nothing(schema, triples):
    store = MemoryStore()
    store.edit("", triples)
    graph = KnowledgeGraph(store, bundled_schema(schema))
    graph.tables.prepare()
    assert (
        len(graph.tables.relations)
        == len(triples)
        == len(graph.paths.steps([Candidate(RelationPath(Entity("http://e/a")))])[0].steps)
    )


def test_load_makes_the_tables(kgqa, tmp_path, monkeypatch):
    (tmp_path / "facts.nt").write_text("<http://e/a> <http://e/p> <http://e/b> .\n")
    assert kgqa("graph", "load", "facts.nt", "--into", "g").returncode == 0
    monkeypatch.setattr(GraphTables, "read", lambda *_, **__: pytest.fail("a table is computed again"))
    with open_graph(tmp_path / "g") as graph:
        graph.tables.prepare()
        assert graph.tables.relations == {"http://e/p": 1}
