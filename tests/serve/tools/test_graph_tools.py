"""Entities by name or id, and neighbours in pages."""

from __future__ import annotations

import threading

import pytest

from kgqa.errors import QuestionError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.store import Capabilities
from kgqa.schema import bundled_schema
from kgqa.serve.tools.graph_tools import neighbours, search
from tests.graph.memory_store import MemoryStore
from tests.memory_graph import memory_graph


def test_entities_are_found_by_name_and_id(demo):
    (first, *_) = search(demo, "marie cur")
    assert (first["id"], first["name"]) == ("m.demo_marie_curie", "Marie Curie") and "person" in first["types"]
    assert [each["name"] for each in search(demo, "m.demo_tokyo")] == ["Tokyo"]
    assert search(demo, "") == [] and search(demo, "\x00\u202e") == [] and search(demo, "qqqzz") == []


def test_neighbours_have_both_directions_and_counts(demo):
    found = neighbours(demo, "m.demo_japan")
    relations = {(each["words"], each["direction"]): each for each in found["relations"]}
    assert [node["name"] for node in relations["country capital", "out"]["nodes"]] == ["Tokyo"]
    assert relations["national anthem of a country country", "in"]["nodes"][0]["words"] == "Kimigayo"
    assert all(each["count"] >= len(each["nodes"]) for each in found["relations"])


def test_pages_together_are_all_neighbours_once(demo):
    first = neighbours(demo, "m.demo_europe", limit=5)
    (large, *_) = [each for each in first["relations"] if each["more"]]
    asked = {"relation": large["iri"], "direction": large["direction"], "limit": 5}
    ids: list[str] = []
    while True:
        (page,) = neighbours(demo, "m.demo_europe", offset=len(ids), **asked)["relations"]
        ids += [node["id"] for node in page["nodes"]]
        if not page["more"]:
            break
    assert len(ids) == len(set(ids)) == large["count"] and ids[:5] == [node["id"] for node in large["nodes"]]


def test_one_very_long_name_does_not_hide_the_others():
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    lines = [
        f'<urn:a> {label} "Very {"long " * 50_000}" .',
        f'<urn:b> {label} "Very short" .',
        "<urn:b> <urn:p> <urn:a> .",
    ]
    graph = memory_graph(lines)
    assert len(neighbours(graph, "urn:b")["relations"][0]["nodes"][0]["name"]) == 1001


class TogetherStore(MemoryStore):
    """A store that answers about two relations only when it is asked about both at once."""

    def __init__(self, lines):
        super().__init__(lines)
        self.capabilities = Capabilities(concurrency=2, identity=self.capabilities.identity)
        self.both = threading.Barrier(2, timeout=10)

    def select(self, query, **options):
        if ("<urn:p1>" in query) != ("<urn:p2>" in query):
            self.both.wait()
        return super().select(query, **options)


def test_relations_are_looked_up_at_once():
    store = TogetherStore(["<urn:a> <urn:p1> <urn:b> .", "<urn:a> <urn:p2> <urn:c> ."])
    graph = KnowledgeGraph(store, bundled_schema("rdfs"))
    assert [each["count"] for each in neighbours(graph, "urn:a")["relations"]] == [1, 1]


@pytest.mark.parametrize("id", ["", "m.nothing", "http://rdf.freebase.com/ns/m.demo_tokyo> . <x", "../../etc/passwd"])
def test_an_unknown_entity_is_an_error(demo, id):
    with pytest.raises(QuestionError):
        neighbours(demo, id)
