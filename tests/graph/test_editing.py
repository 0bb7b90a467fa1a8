"""Edits through the `Store` protocol, in every kind of store."""

from __future__ import annotations

import pytest

from kgqa.errors import InvalidTerm
from kgqa.model import Entity, Literal, Triple

XSD = "http://www.w3.org/2001/XMLSchema#"
SUBJECT = Entity("http://e/s")
OBJECTS = [
    Entity("http://e/o"), Entity("http://e/ü😀"), Literal("x"), Literal("x", language="de"), Literal("5", XSD + "integer"),
    Literal("true", XSD + "boolean"), Literal("2.5", XSD + "decimal"), Literal("1868", XSD + "gYear"), Literal(""),
    Literal("y", "http://e/type"), Literal('a "b" \\ \n\t\'c\' 😀 \u202e } } ; DROP ALL #'), Literal("z" * 5000),
]  # fmt: skip
TRIPLES = [Triple(SUBJECT, f"http://e/p{number}", value) for number, value in enumerate(OBJECTS)]


def numbered(*numbers: int) -> list[Triple]:
    return [Triple(Entity(f"http://e/s{number}"), "http://e/p", Entity("http://e/o")) for number in numbers]


@pytest.fixture
def written(graphs):
    """A store with one triple in a graph that may be written, and the IRI of this graph."""
    return graphs.write_facts([])


def content(store, graph: str) -> set[Triple]:
    rows = store.select(f"SELECT ?s ?p ?o FROM <{graph}> WHERE {{ ?s ?p ?o }}", fresh=True)
    return {Triple(s, p.iri, o) for s, p, o in rows}


def test_only_what_changes_is_reported(written):
    store, graph = written
    before = content(store, graph)
    report = store.edit(graph, [*TRIPLES, TRIPLES[0]])
    assert report.graph == graph and set(report.added) == set(TRIPLES) and report.removed == ()
    again = store.edit(graph, TRIPLES[:2], [*TRIPLES[2:4], *numbered(1)])
    assert again.added == () and set(again.removed) == set(TRIPLES[2:4])
    assert content(store, graph) == before | set(TRIPLES) - set(TRIPLES[2:4])
    both = store.edit(graph, TRIPLES[2:5], TRIPLES[:5])
    assert set(both.added) == set(TRIPLES[2:4]) and set(both.removed) == set(TRIPLES[:2])
    assert content(store, graph) == before | set(TRIPLES[2:])
    assert store.edit(graph, [], TRIPLES).added == () and content(store, graph) == before


def test_versions_and_fingerprints(written):
    store, graph = written
    version, fingerprint = store.version_of([graph]), store.fingerprint_of([graph])
    assert store.edits_since(version, [graph]) == []
    first, changed = store.edit(graph, numbered(1, 2)), store.version_of([graph])
    assert changed != version and store.fingerprint_of([graph]) != fingerprint
    nothing = store.edit(graph, numbered(1))
    assert nothing.added == () and store.version_of([graph]) == changed
    second = store.edit(graph, [], numbered(1, 2))
    assert store.fingerprint_of([graph]) == fingerprint
    assert store.edits_since(changed, [graph]) == [second]
    assert store.edits_since(version, [graph]) in (None, [first, second])


def test_many_triples_are_one_edit(written):
    store, graph = written
    report = store.edit(graph, numbered(*range(2500)))
    assert len(report.added) == 2500
    report = store.edit(graph, numbered(*range(2000, 4000)), numbered(*range(1000)))
    assert (len(report.added), len(report.removed)) == (1500, 1000)
    assert content(store, graph) >= set(numbered(*range(1000, 4000)))


@pytest.mark.parametrize(
    "triple",
    [
        Triple(Entity("no iri"), "http://e/p", SUBJECT),
        Triple(SUBJECT, "http://e/p> <http://e/o> } } ; DROP ALL #", SUBJECT),
        Triple(SUBJECT, "http://e/p", Entity("_:b")),
        Triple(SUBJECT, "http://e/p", Literal("x", language="en } ; DROP ALL")),
    ],
)
def test_invalid_terms_change_nothing(written, triple):
    store, graph = written
    before = content(store, graph)
    with pytest.raises(InvalidTerm):
        store.edit(graph, [*numbered(1), triple])
    assert content(store, graph) == before
