"""Name search on a real Virtuoso server equals the SQLite index for any text."""

from __future__ import annotations

import gzip
import json
import random
import string
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.explore.linking import find_mentions
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.name_reader import count_names, read_names
from kgqa.graph.names.server.server_names import ServerNames
from kgqa.graph.names.spellings import spellings
from kgqa.graph.names.sqlite_index import SqliteNames
from kgqa.model import Entity
from kgqa.schema import bundled_schema
from kgqa.words import normalise
from tests.conftest import SOAK
from tests.graph.hard_names import NAMES, SCHEMA, GraphPair, lines, load_into_both_stores

letters = st.sampled_from("abehilmnorstu qzAÉö東М'\"()*,.-_0519")
search_texts = st.one_of(
    st.sampled_from([name for names in NAMES.values() for name in names]),
    st.text(letters, max_size=12),
    st.text(max_size=20),
    st.sampled_from(
        ["the", "a hat", "of the", "hit", "unit", "st", "u", "united st", "hitler adolf youth", "bowl alien"]
    ),
)
operators = "\"|'|(|)|*|\\|AND|OR|NEAR|NOT|}|;|#|\n|\0|kgw|<http://e/x>|.|{|?s".split("|")


@pytest.fixture(scope="module")
def small(virtuoso_server, tmp_path_factory) -> Iterator[GraphPair]:
    folder = tmp_path_factory.mktemp("small")
    file = folder / "names.nt"
    file.write_text("\n".join(lines()) + "\n", encoding="utf-8")
    found = load_into_both_stores(virtuoso_server, [file], SCHEMA, "http://names.test/small", folder)
    assert isinstance(found.local.names, SqliteNames) and isinstance(found.remote.names, ServerNames)
    yield found
    found.close()


@pytest.fixture(scope="module")
def fast_slice(virtuoso_server, tmp_path_factory, data_folder) -> Iterator[GraphPair]:
    file = data_folder / "freebase_fast" / "kg.nt.gz"
    folder = tmp_path_factory.mktemp("slice")
    found = load_into_both_stores(
        virtuoso_server, [file], bundled_schema("freebase"), "http://names.test/slice", folder
    )
    assert isinstance(found.remote.names, ServerNames)
    yield found
    found.close()


class TestEqualResults:
    """All public methods of both indexes."""

    def test_counts(self, small):
        for name in ("count", "labelled", "longest"):
            assert getattr(small.remote.names, name) == getattr(small.local.names, name)

    @settings(max_examples=500 if SOAK else 80)
    @given(search_texts, st.sampled_from([1, 5, 20]))
    def test_search(self, small, text, limit):
        assert small.remote.search(text, limit=limit) == small.local.search(text, limit=limit)

    @settings(max_examples=300 if SOAK else 40)
    @given(st.lists(search_texts.map(normalise), max_size=8))
    def test_whole_names(self, small, texts):
        keys = [key for text in texts for key in spellings(text)]
        assert small.remote.names.exact(texts) == small.local.names.exact(texts)
        assert small.remote.names.loose(texts + keys) == small.local.names.loose(texts + keys)

    @settings(max_examples=300 if SOAK else 40)
    @given(st.lists(search_texts, max_size=5), st.sampled_from([1, 10, 50]))
    def test_words(self, small, texts, limit):
        words = [word for text in texts for word in normalise(text).split()]
        assert small.remote.names.frequencies(words) == small.local.names.frequencies(words)
        assert small.remote.names.containing(words, limit=limit) == small.local.names.containing(words, limit=limit)
        for start in {word[:length] for word in words[:3] for length in (1, 2, 3, 4, 6)}:
            ours, theirs = (graph.names.words_with_prefix(start, limit=limit) for graph in (small.local, small.remote))
            assert list(theirs.items()) == list(ours.items())

    @pytest.mark.parametrize("beginning", ["u", "us", "ab", "th", "hh", "usa", "uslmn", "é", "m", "hm", "*"])
    def test_initials(self, small, beginning):
        for limit in (2, 50):
            ours, theirs = (
                graph.names.initials_with_prefix(beginning, limit=limit) for graph in (small.local, small.remote)
            )
            assert theirs == ours

    def test_names_of(self, small):
        entities = [Entity(f"http://e/{short}") for short in (*NAMES, "nobody", "m3")] + [
            Entity("_:b1"),
            Entity("no iri"),
        ]
        found = small.remote.names.names_of(entities)
        assert found == small.local.names.names_of(entities)
        assert found[Entity("http://e/nothing")] == ["Nothing"]

    def test_every_name_is_found(self, small):
        texts = sorted({normalise(name) for names in NAMES.values() for name in names} - {""})
        assert set(small.remote.names.exact(texts)) == set(texts)

    def test_search_from_several_threads(self, small):
        texts = ["Hitler", "united st", "q", "paris", "n", "malmo", "st", "an be"] * 3
        expected = [small.local.search(text) for text in texts]
        small.remote.names.close()  # clears its cache
        found: dict[int, object] = {}

        def search(index: int) -> None:
            found[index] = small.remote.search(texts[index])

        threads = [threading.Thread(target=search, args=(index,)) for index in range(len(texts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [found[index] for index in range(len(texts))] == expected


class TestOtherClients:
    """Clients that name no graph and so query all graphs of the server."""

    @pytest.mark.parametrize("pattern", ["?entity ?relation ?other", "?other ?relation ?entity"])
    def test_index_relations_do_not_touch_data_nodes(self, small, pattern):
        entities = " ".join(f"<http://e/{short}>" for short in NAMES)
        rows = small.remote.store.select(
            f"SELECT DISTINCT ?relation WHERE {{ VALUES ?entity {{ {entities} }} {pattern} }}", fresh=True
        )
        relations = {row[0].iri for row in rows}
        assert not [iri for iri in relations if "kgqa" in iri]
        assert relations or "?other ?relation" in pattern, "the data itself is seen"


class TestManyHits:
    """Searches with more hits than are fetched, where the shortest names are kept."""

    def test_shortest_names_are_found(self, small, monkeypatch):
        monkeypatch.setattr("kgqa.graph.names.server.name_hits.MAX_HITS", 40)
        for module in ("name_hits", "server_names"):
            monkeypatch.setattr(f"kgqa.graph.names.server.{module}.ENOUGH_HITS", 30)
        small.remote.names.close()
        found = small.remote.search("an", limit=10)
        assert found[:3] == small.local.search("an", limit=3) and all(match.exact for match in found[:3])
        assert {len(match.name.split()) for match in found} <= {1, 2}
        assert {len(match.name.split()) for match in small.remote.names.containing(["an"], limit=10)} <= {1, 2}
        small.remote.names.close()

    def test_every_word_finds_names(self, small, monkeypatch):
        monkeypatch.setattr("kgqa.graph.names.server.key_lookup.MAX_HITS", 20)
        small.remote.names.close()
        texts = sorted({normalise(name) for names in NAMES.values() for name in names} - {""})
        found = small.remote.names.exact(texts)
        assert found == small.local.names.exact(texts)
        small.remote.names.close()


class TestHostile:
    @settings(max_examples=400 if SOAK else 60)
    @given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(operators)).map(" ".join)))
    def test_only_own_queries_are_sent(self, small, text):
        names = small.remote.names
        for words in ([text], text.split()):
            names.exact(words)
            names.loose(words)
            names.containing(words)
            names.frequencies(words)
        names.search(text)
        names.words_with_prefix(text)
        names.initials_with_prefix(text[:3])

    def test_graph_is_unchanged(self, small):
        assert count_names(small.remote.store, SCHEMA, small.remote.view) == len(lines())


class TestFastSlice:
    """Linking and search on Virtuoso's full-text index equal the embedded index."""

    def test_linking(self, fast_slice, data_folder):
        with gzip.open(data_folder / "freebase_fast" / "questions.jsonl.gz", "rt", encoding="utf-8") as rows:
            questions = [json.loads(row)["question"] for row in rows]
        for question in questions if SOAK else questions[::16]:
            assert find_mentions(fast_slice.remote, question) == find_mentions(fast_slice.local, question), question

    def test_search(self, fast_slice):
        for text in texts_to_search(fast_slice.local, 100 if SOAK else 8):
            assert fast_slice.remote.search(text) == fast_slice.local.search(text), text


def texts_to_search(graph: KnowledgeGraph, many: int) -> list[str]:
    """Return search texts: names, prefixes, words, pairs of words, accents and typos."""
    rng = random.Random(11)
    names = sorted({name for _, name, _ in read_names(graph.store, graph.schema, graph.view)})
    words = sorted({word for name in names for word in name.split()})
    texts = rng.sample(names, many)
    texts += [name[: rng.randint(1, len(name))] for name in rng.sample(names, many)]
    texts += rng.sample(words, many) + [" ".join(rng.sample(words, 2)) for _ in range(many)]
    texts += rng.sample([name for name in names if not name.isascii()], many)
    for name in rng.sample(names, many):
        index = rng.randrange(len(name))
        texts.append(name[:index] + rng.choice(string.ascii_lowercase) + name[index + 1 :])
    return [*texts, "a", "the", "of the", "s", "MALAGA", "united s"]
