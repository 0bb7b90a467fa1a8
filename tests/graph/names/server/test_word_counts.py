"""Word counts in bounded memory, and the LRU cache."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kgqa.graph.names.lru_cache import LRUCache
from kgqa.graph.names.server.word_counts import PrefixLists, WordCounts

NAMES = st.lists(st.sets(st.text("abcé東", min_size=1, max_size=5), max_size=4), max_size=30)


@given(NAMES, st.integers(1, 50))
def test_counts_do_not_depend_on_the_memory_limit(names, most):
    with tempfile.TemporaryDirectory() as folder:
        counts = WordCounts(Path(folder), max_words=most)
        for words in names:
            counts.add(words)
        assert list(counts.sorted()) == sorted(Counter(word for words in names for word in words).items())


@given(st.dictionaries(st.text("abcé東", min_size=1, max_size=5), st.integers(1, 9)), st.integers(1, 4))
def test_prefixes(counts, most):
    beginnings = PrefixLists({1: 2 * most, 3: most})
    found = [item for word, names in sorted(counts.items()) for item in beginnings.add(word, names)]
    found += beginnings.rest()
    expected = {}
    for length, kept in ((1, 2 * most), (3, most)):
        for start in {word[:length] for word in counts if len(word) >= length}:
            words = sorted(
                (item for item in counts.items() if item[0].startswith(start)), key=lambda item: (-item[1], item[0])
            )
            expected[start] = words[:kept]
    assert dict(found) == expected and len(found) == len(expected)


def test_growing_list_is_cut():
    beginnings = PrefixLists({1: 3})
    words = [f"a{number:05}" for number in range(5000)]
    assert not [item for number, word in enumerate(words) for item in beginnings.add(word, number)]
    ((start, kept),) = beginnings.rest()
    assert start == "a" and kept == [("a04999", 4999), ("a04998", 4998), ("a04997", 4997)]


class TestLRUCache:
    def test_least_recently_used_is_evicted(self):
        memory: LRUCache[str, list[int]] = LRUCache(5, size=len)
        memory.put_many({"a": [1, 2], "b": [3, 4]})
        assert memory.get_many("ab") == {"a": [1, 2], "b": [3, 4]}
        memory.get_many("a")
        memory.put_many({"c": [5, 6]})
        assert memory.get_many("abc") == {"a": [1, 2], "c": [5, 6]}
        memory.put_many({"d": [0] * 9})
        assert memory.get_many("abcd") == {}, "larger than all of the memory"

    def test_only_missing_keys_are_computed(self):
        memory: LRUCache[str, int] = LRUCache(10)
        requested_keys: list[list[str]] = []

        def find(keys: list[str]) -> dict[str, int]:
            requested_keys.append(keys)
            return {key: ord(key) for key in keys}

        assert memory.get_or_find("aba", find) == {"a": 97, "b": 98}
        assert memory.get_or_find("bc", find) == {"b": 98, "c": 99}
        memory.clear()
        assert memory.get_or_find("b", find) == {"b": 98}
        assert requested_keys == [["a", "b"], ["c"], ["b"]]
