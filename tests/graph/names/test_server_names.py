"""Name search in the full-text index of a real Virtuoso server, compared with the SQLite index."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.graph.names.index import NameIndex, NameMatch
from kgqa.graph.names.server_index import MAX_NAMES, FullText, ServerIndex
from kgqa.model import Entity, Literal
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
        if name in self.DIFFERENT:
            return
        assert best(small.remote.search(name)) == best(small.local.search(name))
        names, text = small.remote.names.for_text(name), normalise(name)
        both = [each.exact([text]).get(text, []) for each in (names, small.local.names)]
        found, expected = ([replace(match, spellings=()) for match in matches] for matches in both)
        assert found == expected

    def test_near_identical_names(self, small):
        names = {
            "bible": "article",
            "alien": "bracket",
            "stockholm": "comma",
            "superbowl": "squeezed",
            "se hinton": "squeezed",
        }
        for text, how in names.items():
            texts = [text, *text.split(), text.replace(" ", "")]
            found = small.remote.names.for_text(text).loose(texts)
            without_initials = {
                key: [match for match in matches if match.how != "initials"]
                for key, matches in small.local.names.loose(texts).items()
            }
            assert how in {match.how for matches in found.values() for match in matches}
            assert found == {key: matches for key, matches in without_initials.items() if matches}

    def test_words(self, small):
        words = ["hitler", "bowl", "paris", "an", "nowhere"]
        remote, local = small.remote.names, small.local.names
        assert remote.frequencies(words) == local.frequencies(words)
        for word in words:
            assert set(remote.containing([word], limit=1000)) == set(local.containing([word], limit=1000))
        assert small.remote.names.containing(["hitler"])[0] == local.containing(["hitler"])[0]
        similar = remote.similar_words(["parisian", "hilter", "odysey"])
        assert "paris" in similar["parisian"] and "hitler" in similar["hilter"] and "odyssey" in similar["odysey"]

    def test_names_of(self, small):
        entities = [Entity(f"http://e/{short}") for short in (*NAMES, "nobody", "m3")] + [
            Entity("_:b1"),
        ]
        found = small.remote.names.names_of(entities)
        assert found == small.local.names.names_of(entities)
        assert found[Entity("http://e/nothing")] == ["Nothing"]


class FrequentWords(FullText):
    """A reader of names on a server where each word is in more names than are read at once."""

    def __init__(self):
        pass

    def within(self, limit):
        return self

    def select(self, template, *, patterns=(), shortest=False, **_):
        counts = [(Literal(str(number)), Literal(str(MAX_NAMES + 1))) for number, _ in enumerate(patterns)]
        return counts if template == "names_counts" else [("http://e/john", "John", "label")] if shortest else []

    def names(self, rows):
        return rows


def test_very_frequent_words_find_the_shortest_names():
    names = ServerIndex(FrequentWords(), names=10_000)
    assert [match.name for match in names.search("of john")] == ["John"]


class TestHostile:
    @pytest.mark.soak
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


class TestFastSlice:
    """Linking and search on Virtuoso find the best entity and the ten best entities of the SQLite index."""

    @pytest.mark.soak
    def test_linking(self, fast_slice, data_folder):
        with gzip.open(data_folder / "freebase_fast" / "questions.jsonl.gz", "rt", encoding="utf-8") as rows:
            questions = [json.loads(row)["question"] for row in rows]
        for question in questions if SOAK else questions[::32]:
            ours, theirs = (find_mentions(graph, question) for graph in (fast_slice.local, fast_slice.remote))
            assert [m.text for m in theirs] == [m.text for m in ours], question
            assert [m.matches[0].entity for m in theirs] == [m.matches[0].entity for m in ours], question
