"""The graph named in an answer."""

from __future__ import annotations

import pytest

from kgqa.errors import ModelUnavailable, QuestionError, SettingsError
from kgqa.graph.endpoint.options import Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.ask import ask, open_resources
from kgqa.model import GraphId
from kgqa.schema import bundled_schema
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache
from tests.sparql_server import TRIPLES, SparqlServer

QUICK = {"rank.embeddings": "off"}


@pytest.fixture
def server():
    server = SparqlServer()
    yield server
    server.close()


@pytest.fixture
def graph(server, tmp_path):
    store = EndpointStore(server.url, access=Access(patience=0.0))
    with KnowledgeGraph(store, bundled_schema("rdfs"), cache=Cache(tmp_path)) as graph:
        yield graph


def test_answer_names_an_embedded_graph():
    with open_resources(settings=resolve(QUICK)) as resources:
        answer = ask("Who directed the film Parasite?", resources=resources)
        store = resources.graph.store
        assert answer.graph == GraphId(store.location, (), store.fingerprint_of(), 9064, "freebase")
        assert ask("", resources=resources).graph == answer.graph  # a question that fails was asked of a graph as well


def test_server_graph_is_measured_once(server, graph):
    with open_resources(graph, settings=resolve(QUICK)) as resources:
        found = []
        for _ in range(2):
            found.append(ask("what is r1 of s1", topics="http://e/s1", resources=resources).graph)
            counts = sum("?triples" in query for query in server.queries)
            found.append(counts)
    assert found[0] == found[2] == GraphId(server.url, (), graph.store.fingerprint_of(), TRIPLES, "rdfs")
    assert found[1] == found[3] and found[0].fingerprint


def test_trained_ranker_needs_an_encoder(tmp_path):
    settings = resolve({**QUICK, "rank.ranker": str(tmp_path / "my.ranker")})
    with pytest.raises(ModelUnavailable, match=r"needs the embedding model it was trained with.*pip install"):
        open_resources(settings=settings)


@pytest.mark.parametrize("name", ["rank.chooser", "rank.prefilter"])
def test_trained_ranking_needs_a_file(name):
    with open_resources(settings=resolve({**QUICK, name: "trained"})) as resources:
        answer = ask("Who directed the film Parasite?", resources=resources)
    assert answer.status == "failed" and "ranker=" in answer.reason


def test_settings_are_given_by_keyword(monkeypatch):
    """By the option's name or the key; they override environment variables."""
    monkeypatch.setenv("KGQA_EXPLORE_BEAM", "7")
    with open_resources(depth=1, explore_beam=3, embeddings="off") as resources:
        settings = resources.settings
        assert (settings.explore.depth, settings.explore.beam) == (1, 3)
        assert ask("Who directed Parasite?", resources=resources).answers[0].name == "Bong Joon-ho"
        for call in (ask, open_resources):
            with pytest.raises(SettingsError, match=r"Unknown setting dept\. Did you mean depth"):
                call("Who directed Parasite?", dept=3)
        with pytest.raises(SettingsError, match="depth cannot be given together with resources"):
            ask("Who directed Parasite?", resources=resources, depth=3)
        with pytest.raises(SettingsError, match="timeout has no effect on a graph that is already open"):
            ask("Who directed Parasite?", graph=resources.graph, timeout=3)


@pytest.mark.parametrize(
    "question, topics, message",
    [
        (None, (), "The question None is not text."),
        ("who?", ["m.0abc", 3], "are not entities"),
    ],
)
def test_arguments_of_wrong_types_are_named(question, topics, message):
    with pytest.raises(QuestionError, match=message):
        ask(question, topics=topics)
