"""Triples of records: canonical lines, the same triples for edits and loads, and terms that the ontology explains."""

from __future__ import annotations

import re
from importlib.resources import files

import pyoxigraph as ox
import pytest

from kgqa.corpus.edit_log import Edit, EditSource, Removal, sealed
from kgqa.corpus.items import (
    Addition,
    ChunkItem,
    DocumentItem,
    EntityItem,
    HyperedgeItem,
    LinkItem,
    Party,
    StatementItem,
)
from kgqa.corpus.rdf import vocabulary as v
from kgqa.corpus.rdf.edit_triples import edit_texts, edit_triples
from kgqa.corpus.rdf.terms import iri_term, stored_value, text_term, triple_of, value_term
from kgqa.corpus.rdf.triples import (
    community_texts,
    community_triples,
    constant_triples,
    quad_blocks,
    quad_lines,
    texts_of,
    triples_of,
)
from kgqa.corpus.records import CommunityRecord
from kgqa.corpus.snapshot import Snapshot, role_iri, snapshot_of
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.query.export import evidence_query
from kgqa.graph.rdf.lines import LineReader
from kgqa.model import Triple
from kgqa.model.terms import Entity, Literal
from tests.graph.in_process_loads import in_process_loads

TEXT = 'Ada wrote "notes" \\ in 1843.\r\n\tللغة العربية 北京 😀\x0b\ufffe\ud800\x00 end'
ADA, NOTES, LONDON = Party("Ada", "person"), Party('The "Notes" \\ 😀'), Party("London\u2028", "city")
DOCUMENT = DocumentItem("a b.txt", 'A "title"', "text/plain", "00ff")
CHUNK = ChunkItem(DOCUMENT.document, 0, len(TEXT), TEXT, 3)


def places(begin: int, end: int) -> dict:
    return {"document": DOCUMENT.document, "chunk": CHUNK.chunk, "begin": begin, "end": end}


ADDITIONS = [
    Addition(DOCUMENT, DOCUMENT.document),
    Addition(CHUNK, **places(0, len(TEXT))),
    Addition(EntityItem(ADA, "A mathematician."), **places(0, 3)),
    Addition(StatementItem(ADA, "wrote", NOTES), **places(0, 17), confidence=0.25, model="m\n", prompt="p"),
    Addition(StatementItem(ADA, "born", Literal("01815", f"{v.XSD}integer")), **places(0, 3), confidence=1.0),
    Addition(StatementItem(ADA, "said", Literal("Grüß", language="DE"))),
    Addition(
        HyperedgeItem("Ada wrote in London.", (("author", ADA), ("", LONDON)), 0.5), **places(4, 9), confidence=0.1
    ),
    Addition(LinkItem(LONDON.iri, "http://kg/London (é)")),
]
COMMUNITY = CommunityRecord("urn:kgqa:community:1", 1, "urn:kgqa:community:0", (ADA.iri,), "h", "Ada", "About Ada\n")
EDIT = sealed(
    Edit(
        "", 2, "insert", "someone", "why\t", "s", "q?",
        (EditSource("http://a/b c", 1, 2, "d", "web"), EditSource("notes.txt"), EditSource(CHUNK.chunk)),
        "a hyperedge", "2026-01-02T03:04:05Z", ("urn:kgqa:edit:0",), "", tuple(ADDITIONS), (Removal("e", "", "i"),),
    )
)  # fmt: skip


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return snapshot_of(ADDITIONS)


def all_blocks(snapshot: Snapshot) -> bytes:
    others = [("communities", community_texts(COMMUNITY)), ("edits", edit_texts(EDIT))]
    return b"".join([*quad_blocks(snapshot), *quad_lines(others)])


def test_lines_are_canonical(snapshot):
    malformed = []
    reader = LineReader("tag", ox.RdfFormat.N_QUADS, lambda *problem: malformed.append(problem))
    data = all_blocks(snapshot)
    assert b"".join(reader.read(data).lines) == data and malformed == []
    plain = b"".join(line for line in data.splitlines(keepends=True) if b"\\u" not in line and "é".encode() not in line)
    assert reader.read(plain).lines == plain.splitlines(keepends=True)
    reader._one = None  # type: ignore[assignment]  # a plain block is checked at once, not line by line
    assert reader.read(plain).lines == plain.splitlines(keepends=True)


def test_a_load_and_edits_give_the_same_graphs(snapshot, tmp_path):
    (tmp_path / "all.nq").write_bytes(all_blocks(snapshot))
    with in_process_loads():
        load_graph(tmp_path / "loaded", [tmp_path / "all.nq"])
    expected = triples_of(snapshot)
    expected["communities"] |= community_triples(COMMUNITY)
    expected["edits"] |= edit_triples(EDIT)
    graphs = v.graph_iris()
    with (
        EmbeddedStore(tmp_path / "loaded", workers=1) as loaded,
        EmbeddedStore(tmp_path / "edited", workers=1, writable=True, create=True) as edited,
    ):
        for view, iri in graphs.items():
            edited.edit(iri, expected[view] | constant_triples()[view])
            rows = loaded.select(f"SELECT ?s ?p ?o FROM <{iri}> WHERE {{ ?s ?p ?o }}")
            assert {Triple(s, p.iri, o) for s, p, o in rows} == expected[view] | constant_triples()[view]
            assert loaded.fingerprint_of([iri]) == edited.fingerprint_of([iri]), view


def test_facts_hold_no_provenance(snapshot):
    predicates = {text.split(" ")[1] for text in texts_of(snapshot)["facts"]}
    relations = {f"<{each.iri}>" for each in snapshot.relations if each.name != "author"}
    assert predicates == {f"<{v.LABEL}>", f"<{v.TYPE_OF}>", *relations}


def test_a_known_role_is_a_relation_below_party(snapshot):
    hyper = triples_of(snapshot)["hyper"]
    (hyperedge,) = snapshot.hyperedges
    london = "http://kg/London%20(é)"
    assert {Triple(Entity(hyperedge.iri), role_iri("author"), Entity(ADA.iri)),
            Triple(Entity(hyperedge.iri), v.PARTY, Entity(london)),
            Triple(Entity(role_iri("Author")), v.SUB_RELATION_OF, Entity(v.PARTY)),
            Triple(Entity(london), v.LABEL, Literal("London"))} <= hyper  # fmt: skip
    assert not any(triple.subject.iri == NOTES.iri for triple in hyper)


def test_places_are_found_by_the_evidence_query(snapshot, tmp_path):
    (tmp_path / "all.nq").write_bytes(all_blocks(snapshot))
    with in_process_loads():
        load_graph(tmp_path / "graph", [tmp_path / "all.nq"])
    wrote = next(each for each in snapshot.statements if each.relation_name == "wrote")
    view = [Entity(v.graph_iris()[name]) for name in ("statements", "text")]
    query = evidence_query(view, [Entity(wrote.iri)], [Entity(CHUNK.chunk)], v.STATEMENT_VOCABULARY)
    with EmbeddedStore(tmp_path / "graph", workers=1) as store:
        rows = {
            tuple(getattr(value, "iri", getattr(value, "value", None)) for value in row) for row in store.select(query)
        }
        stored = store.select(f"SELECT ?text FROM <{view[1].iri}> WHERE {{ <{CHUNK.chunk}> <{v.TEXT}> ?text }}")
    assert rows == {
        (wrote.iri, ADA.iri, wrote.relation, NOTES.iri, DOCUMENT.document, "0", "17"),
        (CHUNK.chunk, None, None, None, DOCUMENT.document, "0", str(len(TEXT))),
    }
    (text,) = [row[0].value for row in stored]
    assert len(text) == len(TEXT) and text == TEXT.replace("\ud800", "\ufffd").replace("\0", "\ufffd")


def test_each_own_term_is_in_the_ontology():
    data = (files("kgqa.corpus.rdf") / "ontology.ttl").read_bytes()
    quads = list(ox.parse(data, format=ox.RdfFormat.TURTLE))
    described = {
        predicate: {quad.subject.value for quad in quads if quad.predicate.value == v.RDFS + predicate}
        for predicate in ("label", "comment")
    }
    used = {value for value in vars(v).values() if isinstance(value, str) and re.fullmatch(f"{v.KC}[A-Za-z]+", value)}
    assert used and used == described["label"] - {v.KC} == described["comment"] - {v.KC}


@pytest.mark.parametrize(
    "text, datatype, kept",
    [
        ("12", "integer", True), ("twelve", "integer", False), ("１２", "integer", False), ("1,5", "decimal", False), ("-.5", "decimal", True),
        ("1e5", "double", True), ("yes", "boolean", False), ("1815", "gYear", True), ("1815-10", "gYear", False),
        ("-0044-03", "gYearMonth", True), ("1815-13", "gYearMonth", False), ("1900-02-29", "date", False),
        ("2000-02-29", "date", True), ("-0044-03-15", "date", True), ("10.12.1815", "date", False),
        ("2020-01-02T03:04:05Z", "dateTime", True), ("2020-01-02T25:00:00", "dateTime", False), ("P1D", "duration", True),
    ],
)  # fmt: skip
def test_a_value_that_its_datatype_does_not_allow_is_a_string(text, datatype, kept):
    assert (stored_value(Literal(text, v.XSD + datatype)).datatype == v.XSD + datatype) == kept


def test_hostile_terms():
    assert iri_term('http://x/a> <b "%zz') == "<http://x/a%3E%20%3Cb%20%22%25zz>"
    for text in ("relative", "", "://x", "a b"):
        with pytest.raises(ValueError):
            iri_term(text)
    assert text_term('"> .\n<x>') == '"\\"> .\\n<x>"'
    assert stored_value(Literal("x", "urn:a> <b")) == Literal("x", "urn:a%3E%20%3Cb")
    assert stored_value(Literal("x", language="not a tag")) == Literal("x")
    for value in (Literal('a"\\\t\x01\uffff'), Literal("1.50", f"{v.XSD}decimal"), Literal("x", language="en-gb")):
        stored = stored_value(value)
        assert triple_of(f"<urn:a> <urn:b> {value_term(stored)}") == Triple(Entity("urn:a"), "urn:b", stored)
