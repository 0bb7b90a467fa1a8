"""The store on rdflib, written against the protocol alone, answers questions as the embedded store does."""

from __future__ import annotations

from importlib.resources import files

import pytest

from kgqa.errors import PartialResult, QueryRejected, StoreUnavailable
from kgqa.evaluation.datasets.registry import dataset_questions
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.methods.ask import ask
from kgqa.methods.resources import Resources
from kgqa.settings.values import resolve
from kgqa.testing.rdflib_store import RdflibStore
from tests.graph.test_both_stores import comparable_answer, graph_results

QUESTIONS = 6


@pytest.fixture(scope="module")
def demo():
    """The demo graph in the embedded store and in a store on rdflib."""
    store = RdflibStore()
    store.load([str(files("kgqa.demo") / "graph.nt")])
    with open_graph() as embedded:
        yield embedded, KnowledgeGraph(store, embedded.schema, walks=embedded.paths.walk_rule)


def test_tables_of_the_demo_graph(demo):
    embedded, other = map(graph_results, demo)
    assert embedded == other


@pytest.mark.parametrize("given_topics", [True, False])
def test_answers_on_the_demo_graph(demo, given_topics):
    settings = resolve({"rank.embeddings": "off"}, environment={})
    answered = 0
    for question in dataset_questions("demo")[:QUESTIONS]:
        topics = question.topics if given_topics else []
        embedded, other = (
            comparable_answer(ask(question.text, topics=topics, resources=Resources(graph, None, settings)))
            for graph in demo
        )
        assert embedded == other
        answered += embedded["status"][0] == "answered"
    assert answered >= QUESTIONS // 2


def test_errors():
    store = RdflibStore()
    for query in ("nonsense", "ASK { ?s ?p ?o }", "SELECT ?x WHERE { SERVICE <http://e/> { ?x ?p ?o } }"):
        with pytest.raises(QueryRejected):
            store.select(query)
    with pytest.raises(PartialResult):
        store.select("SELECT ?x WHERE { VALUES ?x { 1 2 } }", max_rows=1)
    store.close()
    with pytest.raises(StoreUnavailable):
        store.ask("ASK { ?s ?p ?o }")
