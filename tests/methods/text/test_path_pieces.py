"""Paths as pieces: from the entities that a query names, with the statements and chunks along them."""

from __future__ import annotations

import pytest

from kgqa.corpus.corpus import Corpus
from kgqa.graph.opening import open_graph
from kgqa.methods.text.path_pieces import PathRetriever, search_paths
from tests.corpus.small_corpus import insert, new_editor

QUERY = "Which waterfall is in the country where Bubye lies?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "texts"
    with new_editor(path) as editor:
        insert(editor, "rivers", "Bubye lies_in Zimbabwe", "Bubye has_source Filabusi", "Zambezi lies_in Zambia")
        insert(editor, "falls", "Zimbabwe has_waterfall VictoriaFalls", "Zimbabwe has_capital Harare")
        insert(editor, "prizes", "Ada won Prize Physics")
        editor.publish()
    return path


@pytest.fixture(scope="module")
def opened(folder, session_cache):
    from kgqa.storage.cache import Cache

    with Corpus.open(folder) as corpus, open_graph(folder, cache=Cache(session_cache)) as graph:
        yield corpus, graph


def test_best_path_has_its_statements_and_chunks(opened):
    corpus, graph = opened
    (found,) = PathRetriever(graph, corpus.index).search([QUERY], 9)
    best = found[0]
    assert best.kind == "path" and best.iri.startswith("urn:kgqa:path:")
    assert best.text == "Bubye lies_in Zimbabwe; Zimbabwe has_waterfall VictoriaFalls"
    assert [triple.object.iri.split(":")[-1].split(".")[0] for triple in best.triples] == ["zimbabwe", "victoriafalls"]
    texts = [corpus.chunk(span.chunk).text[span.begin : span.end] for span in best.spans]
    assert texts == ["Bubye lies_in Zimbabwe", "Zimbabwe has_waterfall VictoriaFalls"]
    keys = [(-piece.score, piece.iri) for piece in found]
    assert keys == sorted(keys) and len({piece.iri for piece in found}) == len(found)


def test_paths_on_the_command_line(folder, kgqa):
    done = kgqa("corpus", "search", QUERY, "--graph", folder, "--kind", "path", "--embeddings", "off", "-k", "2")
    assert "Bubye lies_in Zimbabwe; Zimbabwe has_waterfall VictoriaFalls" in done.out
    assert "rivers, falls" in done.out
    assert search_paths(folder, QUERY, k=1).sources
