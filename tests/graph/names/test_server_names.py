"""Name search in the full-text index of a real Virtuoso server, compared with the SQLite index."""

from __future__ import annotations

import gzip
import json
import random
import string
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.errors import InvalidTerm
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.full_text import FullText, pattern, written_phrase
from kgqa.graph.names.index import NameIndex, NameMatch
from kgqa.graph.names.reading import count_names, read_names
from kgqa.graph.names.server_index import ServerIndex
from kgqa.model import Entity
from kgqa.schema import bundled_schema
from kgqa.search.linking import find_mentions
from kgqa.text.words import normalise
from tests.conftest import SOAK
from tests.graph.hard_names import NAMES, SCHEMA, GraphPair, lines, load_into_both_stores

operators = "\"|'|(|)|*|\\|AND|OR|NEAR|NOT|}|;|#|\n|\0|kgw|<http://e/x>|.|{|?s".split("|")


@pytest.fixture(scope="module")
def small(virtuoso_server, tmp_path_factory) -> Iterator[GraphPair]:
    folder = tmp_path_factory.mktemp("small")
    file = folder / "names.nt"
    file.write_text("\n".join(lines()) + "\n", encoding="utf-8")
    found = load_into_both_stores(virtuoso_server, [file], SCHEMA, "http://names.test/small", folder)
    assert type(found.local.names) is NameIndex and isinstance(found.remote.names, ServerIndex)
    yield found
    found.close()


@pytest.fixture(scope="module")
def fast_slice(virtuoso_server, tmp_path_factory, data_folder) -> Iterator[GraphPair]:
    file = data_folder / "freebase_fast" / "kg.nt.gz"
    folder = tmp_path_factory.mktemp("slice")
    found = load_into_both_stores(
        virtuoso_server, [file], bundled_schema("freebase"), "http://names.test/slice", folder
    )
    assert isinstance(found.remote.names, ServerIndex)
    yield found
    found.close()


def best(matches: list[NameMatch]) -> list[Entity]:
    """Return the best entity. The others depend on how frequent words are among the names that were read."""
    return [match.entity for match in matches[:1]]


class TestLikeSqlite:
    """All public methods, with the words of the text as they are written."""

    # names that Virtuoso splits into other words than kgqa, and words of more than 65 letters
    DIFFERENT = ("3 5", "½", "strasse", "a" * 300, "a" * 300 + "b")

    @pytest.mark.parametrize("name", [name for names in NAMES.values() for name in names])
    def test_search_for_each_name(self, small, name):
        if name not in self.DIFFERENT:
            assert best(small.remote.search(name)) == best(small.local.search(name))

    @pytest.mark.parametrize("name", [name for names in NAMES.values() for name in names])
    def test_whole_names(self, small, name):
        if name not in self.DIFFERENT:
            names, text = small.remote.names.for_text(name), normalise(name)
            both = [each.exact([text]).get(text, []) for each in (names, small.local.names)]
            found, expected = ([replace(match, spellings=()) for match in matches] for matches in both)
            assert found == expected

    @pytest.mark.parametrize(
        ("text", "how"),
        [
            ("bible", "article"),
            ("alien", "bracket"),
            ("stockholm", "comma"),
            ("superbowl", "squeezed"),
            ("se hinton", "squeezed"),
        ],
    )
    def test_near_identical_names(self, small, text, how):
        texts = [text, *text.split(), text.replace(" ", "")]
        found = small.remote.names.for_text(text).loose(texts)
        expected = small.local.names.loose(texts)
        assert how in {match.how for matches in found.values() for match in matches}
        without_initials = {key: [m for m in matches if m.how != "initials"] for key, matches in expected.items()}
        assert found == {key: matches for key, matches in without_initials.items() if matches}

    @pytest.mark.parametrize("text", ["the", "hit", "united st", "Hitler Adolf you", "bowl alien", "an", "st", "qata"])
    def test_prefixes_and_several_words(self, small, text):
        found = small.local.search(text, limit=100)
        assert best(small.remote.search(text))[0] in [
            match.entity for match in found if not match.exact or found[0].exact
        ]

    def test_words(self, small):
        words = ["hitler", "bowl", "paris", "an", "nowhere"]
        remote, local = small.remote.names, small.local.names
        assert remote.frequencies(words) == local.frequencies(words)
        for word in words:
            assert set(remote.containing([word], limit=1000)) == set(local.containing([word], limit=1000))
        assert small.remote.names.containing(["hitler"])[0] == local.containing(["hitler"])[0]
        similar = remote.similar_words(["parisian", "hilter", "odysey"])
        assert "paris" in similar["parisian"] and "hitler" in similar["hilter"] and "odyssey" in similar["odysey"]

    def test_counts(self, small):
        assert small.remote.names.labelled == small.local.names.labelled
        assert small.remote.names.count == count_names(small.remote.store, SCHEMA, small.remote.view)

    def test_names_of(self, small):
        entities = [Entity(f"http://e/{short}") for short in (*NAMES, "nobody", "m3")] + [
            Entity("_:b1"),
            Entity("no iri"),
        ]
        found = small.remote.names.names_of(entities)
        assert found == small.local.names.names_of(entities)
        assert found[Entity("http://e/nothing")] == ["Nothing"]

    def test_search_from_several_threads(self, small):
        texts = ["Hitler", "united st", "q", "paris", "n", "malmo", "st", "an be"] * 3
        expected = [small.remote.search(text) for text in texts]
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


class TestFrequentWords:
    """Searches with more hits than are read."""

    @pytest.fixture(autouse=True)
    def few(self, small, monkeypatch):
        for module in ("full_text", "server_index"):
            monkeypatch.setattr(f"kgqa.graph.names.{module}.MAX_NAMES", 30)
        monkeypatch.setattr(FullText.matching, "__kwdefaults__", {"limit": 30, "shortest": False})
        small.remote.names.close()
        yield
        small.remote.names.close()

    def test_shortest_names_are_found(self, small):
        assert max(len(match.name.split()) for match in small.remote.search("an", limit=10)) <= 2
        assert small.remote.search("an")[0] == small.local.search("an")[0]
        assert small.remote.names.frequencies(["an"]) == small.local.names.frequencies(["an"])

    def test_names_of_frequent_words_only(self, small):
        (first, *_) = small.local.names.exact(["an"])["an"]
        assert first in small.remote.names.exact(["an"])["an"]


class TestPatterns:
    @pytest.mark.parametrize(
        ("token", "phrase"),
        [
            ("O'Neill", "o neill"),
            ("U.S.", "u.s"),
            ("3.5", "3.5"),
            ("(film)", "film"),
            ('"x*', "x"),
            ("Việt", "việt"),
            ("½", ""),
            ("...", ""),
            ("Москва́?", "москва́"),
        ],
    )
    def test_words_as_the_server_splits_them(self, token, phrase):
        assert written_phrase(token) == phrase

    def test_pattern(self):
        assert pattern(["a"], ["b c", "bc*"]).value == '("a") AND ("b c" OR "bc*")'
        assert pattern(["서울"]).value == '("서울")'

    @pytest.mark.parametrize("phrase", ['"', "a*b", "a'", "a\\", "", "*", "(", "a\nb", "\x00", "a OR/b"])
    def test_only_words(self, phrase):
        with pytest.raises(InvalidTerm):
            pattern(["fine", phrase])


class TestHostile:
    @settings(max_examples=400 if SOAK else 60)
    @given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(operators)).map(" ".join)))
    def test_only_own_queries_are_sent(self, small, text):
        names = small.remote.names
        for words in ([normalise(text)], normalise(text).split()):
            names.exact(words)
            names.loose(words)
            names.containing(words)
            names.frequencies(words)
        names.search(text)
        names.similar_words(text.split())
        names.initials_with_prefix(text[:3])

    def test_graph_is_unchanged(self, small):
        assert count_names(small.remote.store, SCHEMA, small.remote.view) == len(lines())


class TestFastSlice:
    """Linking and search on Virtuoso find the best entity and the ten best entities of the SQLite index."""

    def test_linking(self, fast_slice, data_folder):
        with gzip.open(data_folder / "freebase_fast" / "questions.jsonl.gz", "rt", encoding="utf-8") as rows:
            questions = [json.loads(row)["question"] for row in rows]
        for question in questions if SOAK else questions[::32]:
            ours, theirs = (find_mentions(graph, question) for graph in (fast_slice.local, fast_slice.remote))
            assert [m.text for m in theirs] == [m.text for m in ours], question
            assert [m.matches[0].entity for m in theirs] == [m.matches[0].entity for m in ours], question

    def test_search(self, fast_slice):
        texts = texts_to_search(fast_slice.local, 100 if SOAK else 8)
        different = [
            text for text in texts if best(fast_slice.remote.search(text)) != best(fast_slice.local.search(text))
        ]
        assert len(different) <= len(texts) // 10, different


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
