"""Texts of chunks survive on a server as in a folder: other scripts, tabs, line breaks, control characters, length."""

from __future__ import annotations

import pytest

from kgqa.corpus.items import Addition, ChunkItem
from kgqa.corpus.rdf import vocabulary as v
from kgqa.corpus.rdf.triples import quad_blocks, triples_of
from kgqa.corpus.snapshot import snapshot_of
from kgqa.graph.endpoint.store import EndpointStore
from tests.graph.graph_factories import VirtuosoGraphFactory

TEXTS = (
    "Grüße, 北京 and مرحبا 😀 \U0001f468\u200d\U0001f469",
    'quotes " and \\ and \\u0041 and <b> & {x} ?y $z',
    "tab\tand\r\nCRLF\n\n\x0cform feed\x0b\x1b[0m\x7f",
    "\ufeff\u2028\u2029\u0085\u00a0 combining e\u0301",
    "long " * 4000,
)


@pytest.mark.parametrize("text", TEXTS, ids=["scripts", "marks", "controls", "separators", "long"])
def test_text_of_a_chunk_comes_back(virtuoso_server, text):
    maker, graph = VirtuosoGraphFactory(virtuoso_server), "urn:test:texts"
    chunk = ChunkItem("urn:d", 0, len(text), text)
    triples = triples_of(snapshot_of([Addition(chunk)]))["text"]
    with EndpointStore(maker.url, writable=graph, access=maker.access(), profile="virtuoso") as store:
        assert set(store.edit(graph, triples).added) == triples
        (row,) = store.select(f"SELECT ?text FROM <{graph}> WHERE {{ <{chunk.chunk}> <{v.TEXT}> ?text }}", fresh=True)
        assert row[0].value == text
        assert store.edit(graph, triples).added == ()
        assert set(store.edit(graph, (), triples).removed) == triples
    maker.close()


def test_texts_of_a_bulk_load(virtuoso_server):
    maker, base = VirtuosoGraphFactory(virtuoso_server), "urn:test:loaded:"
    chunks = [ChunkItem("urn:d", 0, len(text), text) for text in TEXTS]
    lines = b"".join(quad_blocks(snapshot_of(map(Addition, chunks)), base=base)).decode().rstrip("\n").split("\n")
    graph = maker.make(lines, "corpus")
    rows = graph.store.select(f"SELECT ?chunk ?text FROM <{base}text> WHERE {{ ?chunk <{v.TEXT}> ?text }}")
    assert {chunk.iri: text.value for chunk, text in rows} == {each.chunk: each.text for each in chunks}
    maker.close()
