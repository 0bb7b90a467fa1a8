"""Paths for patterns of triples: chains, joins, and their fusion with triples."""

from __future__ import annotations

import pytest

from kgqa.corpus.corpus import Corpus
from kgqa.graph.opening import open_graph
from kgqa.methods.text.pattern_paths import PatternPaths
from kgqa.storage.cache import Cache
from tests.corpus.small_corpus import insert, new_editor


@pytest.fixture(scope="module")
def paths(tmp_path_factory, session_cache):
    path = tmp_path_factory.mktemp("corpus") / "texts"
    with new_editor(path) as editor:
        insert(editor, "rivers", "Bubye lies_in Zimbabwe", "Bubye has_source Filabusi", "Zambezi lies_in Zambia")
        insert(editor, "falls", "Zimbabwe has_waterfall VictoriaFalls", "Zambia has_waterfall VictoriaFalls")
        insert(editor, "cities", "Zimbabwe has_capital Harare", "巴黎 首都 法国", "wheat price $1,363.00")
        editor.publish()
    with Corpus.open(path) as corpus, open_graph(path, cache=Cache(session_cache)) as graph:
        yield PatternPaths(graph, corpus.index)


def test_chains_with_the_same_end_are_joined(paths):
    patterns = [("Bubye", "lies in", "#1"), ("Harare", "capital", "#1")]
    found = paths.search(patterns, "lies in capital", 9)
    assert found[0].text == "Bubye lies_in Zimbabwe"
    assert all(piece.kind == "path" for piece in found)
