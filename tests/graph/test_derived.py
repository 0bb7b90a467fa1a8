"""Tables of a whole graph: made anew when the graph has changed, or when what was kept is not what it should be."""

from __future__ import annotations

import json

import pytest

from kgqa.cache import Cache
from kgqa.graph.embedded import EmbeddedStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity, Step
from kgqa.schema import bundled_schema, parse_schema

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
INVERSE = "<http://www.w3.org/2002/07/owl#inverseOf>"
RANGE = "<http://www.w3.org/2000/01/rdf-schema#range>"
LINES = [
    f'<http://e/a> {LABEL} "Ann"@en .',
    "<http://e/a> <http://e/knows> <http://e/b> .",
    f'<http://e/knows> {LABEL} "is friends with"@en .',
    f"<http://e/knows> {INVERSE} <http://e/known> .",
    f"<http://e/knows> {RANGE} <http://e/Person> .",
]
MORE = [
    f'<http://e/b> {LABEL} "Bob"@en .',
    "<http://e/b> <http://e/likes> <http://e/c> .",
    f'<http://e/likes> {LABEL} "is fond of"@en .',
    f"<http://e/likes> {INVERSE} <http://e/liked> .",
]
SCHEMA = bundled_schema("rdfs")


def look(graph) -> tuple:
    return (
        set(graph.relations) & {"http://e/knows", "http://e/likes"},
        graph.inverses.get("http://e/likes"),
        graph.relation_labels.get("http://e/likes"),
        [match.name for match in graph.search("bob")],
        graph.labels([Entity("http://e/b")]),
        {step.relation for step in graph.next_steps(_from("http://e/b")).steps if step.direction == "out"},
    )


def _from(iri):
    from kgqa.model import RelationPath

    return RelationPath(Entity(iri))


BEFORE = ({"http://e/knows"}, None, None, [], {}, set())
AFTER = (
    {"http://e/knows", "http://e/likes"},
    "http://e/liked",
    "is fond of",
    ["Bob"],
    {Entity("http://e/b"): "Bob"},
    {"http://e/likes"},
)


def test_after_an_update(load, tmp_path):
    with EmbeddedStore(load(LINES), writable=True) as store:
        graph = KnowledgeGraph(store, SCHEMA, cache=Cache(tmp_path / "c"))
        assert look(graph) == BEFORE
        store.update("INSERT DATA { " + " ".join(MORE) + " }")
        assert look(graph) == AFTER
        graph.close()


def test_after_a_load(load, tmp_path):
    with EmbeddedStore(load(LINES)) as store:
        graph = KnowledgeGraph(store, SCHEMA, cache=Cache(tmp_path / "c"))
        assert look(graph) == BEFORE
        (tmp_path / "more.nt").write_text("\n".join(MORE) + "\n")
        store.load([tmp_path / "more.nt"])
        assert look(graph) == AFTER
        graph.close()


@pytest.mark.parametrize("wrong", ["[]", "7", '{"out": [3]}', '{"leads": []}', '{"http://e/x": {}}', "null", "{"])
@pytest.mark.parametrize("name", ["relations", "mediators", "inverses", "relation-labels", "types"])
def test_what_is_kept_wrongly_is_made_anew(opened, tmp_path, name, wrong):
    store, cache = opened(LINES), Cache(tmp_path / "c")

    def all_of(graph):
        return graph.relations, graph.mediators, graph.inverses, graph.relation_labels, graph.derived.types

    right = all_of(KnowledgeGraph(store, SCHEMA, cache=cache))
    file = KnowledgeGraph(store, SCHEMA, cache=cache).derived.folder / f"{name}.json"
    kept = file.read_text()
    file.write_text(wrong)
    assert all_of(KnowledgeGraph(store, SCHEMA, cache=cache)) == right
    assert json.loads(file.read_text()) == json.loads(kept)


def test_types_by_range_and_domain(opened):
    graph = KnowledgeGraph(opened(LINES), SCHEMA)
    assert graph.leads_to_type(Step("http://e/knows")) == "http://e/Person"
    assert graph.leads_to_type(Step("http://e/knows", "in")) is None


def test_ends_are_described_where_no_type_is_declared(opened):
    films = ["<http://e/f> <http://e/by> <http://e/p> .", '<http://e/f> <http://e/year> "1999" .']
    graph = KnowledgeGraph(opened(films), SCHEMA)
    assert graph.described_by(Step("http://e/by")) == ("http://e/by",)
    assert set(graph.described_by(Step("http://e/by", "in"))) == {"http://e/by", "http://e/year"}
    typed = KnowledgeGraph(opened(LINES), SCHEMA)
    assert typed.described_by(Step("http://e/knows")) == typed.described_by(Step("http://e/knows", "in")) == ()


def test_a_mediator_known_by_its_iri_is_found_as_an_object(opened):
    schema = parse_schema(
        'name = "own"\n[names]\nlabel = ["rdfs:label"]\n[mediators]\niri_prefixes = ["http://e/statement/"]\n'
    )
    store = opened(["<http://e/a> <http://e/r> <http://e/statement/1> .", "<http://e/a> <http://e/q> <http://e/b> ."])
    graph = KnowledgeGraph(store, schema)
    assert graph.leads_to_mediator(Step("http://e/r")) and not graph.leads_to_mediator(Step("http://e/q"))


def test_a_text_that_looks_like_one_is_none(opened):
    schema = parse_schema(
        'name = "own"\n[names]\nlabel = ["rdfs:label"]\n[mediators]\niri_prefixes = ["http://e/statement/"]\n'
    )
    graph = KnowledgeGraph(opened(['<http://e/a> <http://e/r> "http://e/statement/1" .']), schema)
    assert graph.mediators.extent(Step("http://e/r")) == "none"
