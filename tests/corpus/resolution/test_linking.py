"""Links from entities of a text to entities of a knowledge graph."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgqa.corpus.items import LinkItem
from kgqa.corpus.resolution.linking import kinds_agree, link_entities
from kgqa.graph.opening import load_into_folder, open_graph
from tests.corpus.resolution.names import entity, fact

E = "http://example.org/e/"
NODES = {  # id: name, type, alias
    "barlow_city": ("Barlow", "city", ""),
    "barlow_person": ("Barlow", "person", ""),
    "halden": ("Halden", "town", "Fredrikshald"),
    "bridge": ("Halden Bridge", "bridge", ""),
    "ann": ("Ann Li", "person", "Li Ann"),
    "ann2": ("Ann Li", "person", ""),
    "solaris_film": ("Solaris", "film", ""),
    "solaris_novel": ("Solaris", "novel", ""),
    "ostmark": ("Ostmark Railway", "", ""),
    "who": ("Who", "band", ""),
}
EDGES = [("ann", "designed", "bridge"), ("ann2", "wrote", "solaris_novel"), ("bridge", "in", "halden")]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("beside")
    label, alias = "http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/2004/02/skos/core#altLabel"
    type_ = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    lines = []
    for key, (name, kind, other) in NODES.items():
        lines.append(f'<{E}{key}> <{label}> "{name}" .')
        if kind:
            lines.append(f"<{E}{key}> <{type_}> <http://example.org/type/{kind}> .")
        if other:
            lines.append(f'<{E}{key}> <{alias}> "{other}" .')
    lines += [f"<{E}{one}> <http://example.org/r/{name}> <{E}{other}> ." for one, name, other in EDGES]
    (folder / "g.nt").write_text("\n".join(lines) + "\n")
    load_into_folder([folder / "g.nt"], folder=folder / "graph")
    with open_graph(folder / "graph", schema="rdfs") as opened:
        yield opened


def linked(graph, *entities, **more) -> dict[str, str]:
    names = {each.iri: each.name for each in entities}
    found = link_entities(entities, graph, **more)
    for each in found.additions:
        assert isinstance(each.item, LinkItem) and each.reason and 0 < each.confidence < 1 and each.model
    assert all(each.reason for each in found.unlinked)
    return {names[each.item.entity]: each.item.target.removeprefix(E) for each in found.additions}


@pytest.mark.parametrize(
    ("name", "type_", "target"),
    [
        ("Halden Bridge", "bridge", "bridge"),
        ("Halden Bridge", "", "bridge"),  # several words, one candidate
        ("halden bridge", "", None),  # no name
        ("Halden", "city", "halden"),  # a town is a city
        ("Halden", "", None),  # one word without a type
        ("Fredrikshald", "place", "halden"),  # an alias
        ("Barlow", "city", "barlow_city"),
        ("Barlow", "writer", "barlow_person"),
        ("Barlow", "", None),  # two candidates
        ("Barlow", "company", None),
        ("Solaris", "film", "solaris_film"),
        ("Solaris", "work", None),  # fits both
        ("Ann Li", "person", None),  # two persons
        ("Li Ann", "person", "ann"),
        ("Ostmark Railway", "company", "ostmark"),  # no type in the graph, several words
        ("Who", "company", "who"),  # a band is an organisation
        ("WHO", "agency", "who"),
        ("Nowhere", "city", None),
        ("3 May 1921", "date", None),
    ],
)
def test_types_and_names(graph, name, type_, target):
    assert linked(graph, entity(name, type_)) == ({name: target} if target else {})


def test_neighbours_tell_namesakes_apart(graph):
    ann, bridge = entity("Ann Li", "person"), entity("Halden Bridge", "bridge")
    designed = fact("Ann Li", "built", "Halden Bridge", ("person", "bridge"))
    assert linked(graph, ann, bridge, statements=[designed]) == {"Ann Li": "ann", "Halden Bridge": "bridge"}
    assert linked(graph, ann, bridge, statements=[designed], only={ann.iri}) == {"Ann Li": "ann"}
    wrote = fact("Ann Li", "author of", "Solaris", ("person", "novel"))
    assert linked(graph, ann, entity("Solaris", "novel"), statements=[wrote])["Ann Li"] == "ann2"
    assert "Ann Li" not in linked(graph, ann, bridge, entity("Solaris", "novel"), statements=[designed, wrote])


def test_names_of_one_entity_and_what_is_linked_already(graph):
    ann = replace(entity("A. Li", "person"), aliases=("Li Ann",))
    assert linked(graph, ann) == {"A. Li": "ann"}
    assert linked(graph, replace(ann, iri=f"{E}ann")) == {}


def test_order_does_not_matter_and_candidates_are_named(graph):
    entities = [entity(name, type_) for name, type_ in (("Barlow", ""), ("Halden Bridge", ""), ("Solaris", "work"))]
    found = link_entities(entities, graph)
    assert link_entities(reversed(entities), graph) == found
    assert {each.entity: len(each.candidates) for each in found.unlinked} == {entities[0].iri: 2, entities[2].iri: 2}


def test_types_in_words():
    assert kinds_agree("person", ["people person"]) and kinds_agree("film", ["topic", "Film"])
    assert kinds_agree("writer", ["human", "person"])
    assert not kinds_agree("city", ["film"]) and not kinds_agree("city", []) and not kinds_agree("", ["film"])
