"""The SQLite name index: name variants, words and parts of names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity
from kgqa.schema import bundled_schema
from kgqa.storage.cache import Cache

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
ALIAS = "<http://www.w3.org/2004/02/skos/core#altLabel>"
NAMES = {
    "alien": ["Alien (film)"],
    "stockholm": ["Stockholm, Sweden"],
    "bible": ["The Bible", "Holy Scripture"],
    "bowl": ["Super Bowl"],
    "uk": ["United Kingdom"],
    "usa": ["United States of America"],
    "hinton": ["S. E. Hinton"],
    "hitler": ["Adolf Hitler"],
    "youth": ["Hitler Youth"],
}


def entity(name: str) -> Entity:
    return Entity(f"http://e/{name}")


@pytest.fixture(scope="module")
def graph_of(tmp_path_factory):
    """Return `graph_of(lines) -> EmbeddedStore`; the stores are closed after the module."""
    with ExitStack() as stores:

        def graph_of(lines: list[str]) -> EmbeddedStore:
            folder = tmp_path_factory.mktemp("names")
            (folder / "lines.nt").write_text("\n".join(lines) + "\n", encoding="utf-8")
            load_graph(folder / "graph", [folder / "lines.nt"])
            return stores.enter_context(EmbeddedStore(folder / "graph", workers=1))

        yield graph_of


@pytest.fixture(scope="module")
def names(graph_of, tmp_path_factory):
    lines = []
    for short, texts in NAMES.items():
        for index, name in enumerate(texts):
            lines.append(f'<http://e/{short}> {ALIAS if index else LABEL} "{name}" .')
    graph = KnowledgeGraph(graph_of(lines), bundled_schema("rdfs"), cache=Cache(tmp_path_factory.mktemp("cache")))
    yield graph.names
    graph.tables.close()


@pytest.mark.parametrize(
    ("text", "found", "how"),
    [
        ("alien", "alien", "bracket"),
        ("stockholm", "stockholm", "comma"),
        ("bible", "bible", "article"),
        ("superbowl", "bowl", "squeezed"),
        ("uk", "uk", "initials"),
    ],
)
def test_loose_matches_are_not_exact(names, text, found, how):
    (item,) = names.loose([text])[text]
    assert (item.match.entity, item.how, item.match.exact) == (entity(found), how, False)
    assert text not in names.exact([text])


def test_words_of_names(names):
    assert names.frequencies(["hitler", "united", "nobody", "hitler"]) == {"hitler": 2, "united": 2}
    assert names.similar_words(["hitlers", "hinton"])["hinton"] == {"hinton": 1}
    assert "hitler" in names.similar_words(["hilter"])["hilter"] and names.similar_words(["zz"]) == {"zz": {}}


@pytest.fixture(scope="module")
def store(graph_of) -> EmbeddedStore:
    return graph_of([f'<http://e/{n}> {LABEL} "Name {n} of many" .' for n in range(400)])


class TestCache:
    """An index that the cache cannot store is built in memory, with a note."""

    @pytest.fixture
    def graph(self, store) -> Callable[[Path], KnowledgeGraph]:
        return lambda folder: KnowledgeGraph(store, bundled_schema("rdfs"), cache=Cache(folder))

    def test_folder_name_with_url_characters(self, graph, tmp_path):
        folder = tmp_path / "100%20 # of ?mode=rw&x"
        for _ in range(2):  # built, then read
            names = graph(folder).names
            assert names.search("name 7")[0].entity == entity("7") and names.count == 400
        (kept,) = folder.rglob("names-*.sqlite")
        assert kept.stat().st_size > 10_000
