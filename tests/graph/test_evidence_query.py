"""The query of an answer's evidence, on both stores: statements and chunks, views, classes, answers in the query."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgqa.graph.query.export import AnswerInQuery, evidence_query
from kgqa.methods.grounding import MAX_PIECES, with_evidence_query
from kgqa.model import (
    Answer,
    Entity,
    HyperedgeEvidence,
    Literal,
    Named,
    Question,
    QuoteEvidence,
    Span,
    StatementEvidence,
    Triple,
)

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TEXT = "http://text.example/"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
VOCABULARY = {
    "subject": Entity(f"{RDF}subject"),
    "predicate": Entity(f"{RDF}predicate"),
    "object": Entity(f"{RDF}object"),
    "mention": Entity(f"{TEXT}mentionedIn"),
    "document": Entity(f"{TEXT}document"),
    "begin": Entity(f"{TEXT}begin"),
    "end": Entity(f"{TEXT}end"),
}
OTHER_GRAPH = "http://text.example/other-view"


def place(name: str, begin: int, end: int) -> list[str]:
    values = {"document": f"<{DOCUMENT}>", "begin": f'"{begin}"^^<{INTEGER}>', "end": f'"{end}"^^<{INTEGER}>'}
    return [f"<{TEXT}{name}> <{TEXT}{relation}> {value} ." for relation, value in values.items()]


def statement(name: str, s: str, o: str, *places: str) -> list[str]:
    iri = f"<{TEXT}{name}>"
    return [
        f"{iri} <{RDF}subject> <{TEXT}{s}> .",
        f"{iri} <{RDF}predicate> <{TEXT}bornIn> .",
        f"{iri} <{RDF}object> {o} .",
        *(f"{iri} <{TEXT}mentionedIn> <{TEXT}{each}> ." for each in places),
    ]


DOCUMENT, CHUNK = f"{TEXT}doc1", f"{TEXT}chunk1"
LINES = [
    *place("chunk1", 0, 500),
    *place("chunk2", 480, 900),
    *place("place1", 10, 40),
    *place("place2", 500, 530),
    *statement("s1", "ada", f"<{TEXT}london>", "place1", "place2"),
    *statement("s2", "ada", '"1815"', "place1"),
    *statement("s3", "byron", f"<{TEXT}london>", "place2"),
]
QUADS = [
    f"{line[:-2]} <{OTHER_GRAPH}> ."
    for line in [*statement("s9", "eve", f"<{TEXT}paris>", "place9"), *place("place9", 1, 2)]
]


def stated(name: str) -> StatementEvidence:
    triple = Triple(Entity(f"{TEXT}ada"), f"{TEXT}bornIn", Literal("x"))
    return StatementEvidence(f"{TEXT}{name}", triple, "in words")


def quoted(chunk: str, verified: bool = True) -> QuoteEvidence:
    return QuoteEvidence(Span(DOCUMENT, chunk, 3, 9), "words", verified)


def answer(*evidence) -> Answer:
    london = Named(Entity(f"{TEXT}london"), "london", "London")
    return Answer(Question("Where?"), "answered", (london,), evidence=evidence, grounding="text")


@pytest.fixture(scope="module")
def graph(graphs):
    return graphs.make([*LINES, *QUADS], "rdfs")


def found(graph, statements=(), chunks=()) -> set[tuple]:
    iris = [[Entity(f"{TEXT}{name}") for name in names] for names in (statements, chunks)]
    rows = graph.queries.rows(evidence_query(graph.view, *iris, VOCABULARY))
    assert rows.variables == ("piece", "s", "p", "o", "document", "begin", "end")
    short = (tuple(getattr(v, "iri", getattr(v, "value", v)) for v in row) for row in rows)
    return {tuple(v.removeprefix(TEXT) if isinstance(v, str) else v for v in row) for row in short}


S1 = {("s1", "ada", "bornIn", "london", "doc1", "10", "40"), ("s1", "ada", "bornIn", "london", "doc1", "500", "530")}
S2 = {("s2", "ada", "bornIn", "1815", "doc1", "10", "40")}
C1 = {("chunk1", None, None, None, "doc1", "0", "500")}


@pytest.mark.parametrize(
    ("statements", "chunks", "rows"),
    [
        (["s1"], [], S1),
        ([], ["chunk1"], C1),
        (["s1", "s2"], ["chunk1"], S1 | S2 | C1),
        (["absent"], ["chunk1"], C1),
        (["chunk1"], [], set()),
        (["s9"], [], set()),  # it stands in another graph
    ],
)
def test_rows_of_statements_and_chunks(graph, statements, chunks, rows):
    assert found(graph, statements, chunks) == rows


def test_view_decides_which_statements_are_found(graph, graphs):
    assert found(graphs.reopen(graph, view=[OTHER_GRAPH]), ["s1", "s9"]) == {
        ("s9", "eve", "bornIn", "paris", "doc1", "1", "2")
    }


def test_answer_gets_an_exact_query(graph):
    segment = HyperedgeEvidence("urn:h", "a segment", spans=(Span(DOCUMENT, f"{TEXT}chunk2", 0, 5),))
    got = with_evidence_query(graph, answer(stated("s1"), quoted(CHUNK), segment, stated("s1")), VOCABULARY)
    assert got.evidence_class == "exact" and got.defects == () and got.notes == ()
    rows = graph.queries.rows(got.evidence_sparql)
    assert {row[0] for row in rows} == {Entity(f"{TEXT}{name}") for name in ("s1", "chunk1", "chunk2")}
    assert "london" not in got.evidence_sparql
    assert replace(got, evidence_sparql="", evidence_class="none") == answer(*got.evidence)


def test_what_cannot_be_returned_is_said(graph):
    for evidence in ((), (quoted(CHUNK, verified=False),), (quoted(""),)):
        assert with_evidence_query(graph, answer(*evidence), VOCABULARY) == answer(*evidence)
    got = with_evidence_query(graph, answer(stated("s1"), stated("absent")), VOCABULARY)
    assert got.evidence_class == "none" and got.evidence_sparql
    assert got.defects == ("The evidence query returned 1 of 2 statements and texts.",)
    got = with_evidence_query(graph, answer(*(stated(f"x{n}") for n in range(80)), quoted(CHUNK)), VOCABULARY)
    assert got.evidence_sparql.count(f"<{TEXT}x") == MAX_PIECES
    assert got.notes == (f"The evidence query returns the first {MAX_PIECES} of 81 statements and texts.",)


def test_query_never_contains_an_answer(graph):
    evil = replace(answer(stated("s1")), answers=(Named(Entity(f"{TEXT}s1"), "s1", "s1"),))
    with pytest.raises(AnswerInQuery):
        with_evidence_query(graph, evil, VOCABULARY)
