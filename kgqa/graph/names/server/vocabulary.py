"""The words in a graph of names: how many names contain a word, and which words have a prefix."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

from kgqa.graph.names.lru_cache import LRUCache
from kgqa.graph.names.server.name_hits import NamesSelect
from kgqa.graph.names.server.name_tokens import MAX_TOKENS, NameTokens, key_number
from kgqa.graph.names.server.names_graph import LISTED_WORDS, WORD, WORDS, count_of, prefix_node
from kgqa.model import Entity, Literal

WORD_BATCH = 50
LIST_BATCH = 20
MAX_WORDS = 100_000
MAX_LISTED_WORDS = 1_000_000
MAX_PREFIX_LENGTH = max(LISTED_WORDS)
MAX_WILDCARD_WORDS = 800
"""Virtuoso rejects wildcards that match more than 1,000 words."""
MAX_PREFIX_TOKENS = MAX_TOKENS - 10


class Vocabulary:
    """Looks up the words of one graph of names. Thread-safe."""

    def __init__(self, select: NamesSelect, graph: Entity) -> None:
        self._select = select
        self._graph = graph
        self._frequencies: LRUCache[str, int] = LRUCache(MAX_WORDS)
        self._lists: LRUCache[str, dict[str, int]] = LRUCache(MAX_LISTED_WORDS, size=lambda words: 1 + len(words))

    def with_select(self, select: NamesSelect) -> Vocabulary:
        """Return a copy with the same cache that runs its queries with `select`."""
        bound = copy.copy(self)
        bound._select = select
        return bound

    def close(self) -> None:
        """Empty the caches."""
        self._frequencies.clear()
        self._lists.clear()

    def frequencies(self, words: Iterable[str]) -> dict[str, int]:
        """Return the number of names that contain each of these words, 0 if none does."""
        return self._frequencies.get_or_find(words, self._count)

    def words_with_prefix(self, prefix: str) -> dict[str, int]:
        """Return the listed words with this prefix, each with its number of names, most frequent first."""
        return {word: names for word, names in self._list_of(prefix).items() if word.startswith(prefix)}

    def prefix_tokens(self, prefix: str, tokens: NameTokens) -> list[str]:
        """Return tokens and wildcards for the words with this prefix.

        They match all these words or, if there are very many, only the most frequent.
        """
        words = list(self.words_with_prefix(prefix))
        start = prefix[:MAX_PREFIX_LENGTH]
        complete = len(self._list_of(prefix)) < LISTED_WORDS[len(start)]
        if complete and len(words) <= MAX_PREFIX_TOKENS:
            return [tokens.word(word) for word in words]
        if not complete:
            # one wildcard is enough for a prefix longer than those in the lists, because few words begin with it
            longer = len(prefix) > MAX_PREFIX_LENGTH
            return [tokens.word_prefix(prefix)] if longer else [tokens.word(word) for word in words[:MAX_PREFIX_TOKENS]]
        return _wildcards(prefix, words, tokens)[:MAX_PREFIX_TOKENS]

    def _count(self, words: list[str]) -> dict[str, int]:
        numbers = {key_number(word): word for word in words}
        found = dict.fromkeys(words, 0)
        keys = list(numbers)
        for start in range(0, len(keys), WORD_BATCH):
            batch = keys[start : start + WORD_BATCH]
            for count, word in self._select("words", graph=self._graph, predicate=Entity(WORD), words=batch):
                if isinstance(count, Entity) and isinstance(word, Literal):
                    found[numbers[int(word.value)]] = count_of(count.iri)
        return found

    def prefetch(self, words: Iterable[str]) -> None:
        """Fetch the lists of similar words in one query. Callers need these lists after they have counted the words."""
        self._lists_of([word[: 4 if len(word) > 5 else 3] for word in words if len(word) > 3])

    def _list_of(self, prefix: str) -> dict[str, int]:
        start = prefix[:MAX_PREFIX_LENGTH]
        return self._lists_of([start])[start]

    def _lists_of(self, starts: Iterable[str]) -> dict[str, dict[str, int]]:
        return self._lists.get_or_find(starts, self._fetch_lists)

    def _fetch_lists(self, starts: list[str]) -> dict[str, dict[str, int]]:
        nodes = {prefix_node(start): start for start in starts if start}
        found: dict[str, dict[str, int]] = {start: {} for start in starts}
        entities = [Entity(node) for node in nodes]
        for first in range(0, len(entities), LIST_BATCH):
            batch = entities[first : first + LIST_BATCH]
            for node, text in self._select("lists", graph=self._graph, predicate=Entity(WORDS), beginnings=batch):
                if isinstance(node, Entity) and isinstance(text, Literal):
                    parts = text.value.split()
                    words = zip(parts[::2], map(int, parts[1::2]), strict=True)
                    found[nodes[node.iri]] = dict(words)
        return found


def _wildcards(prefix: str, words: Sequence[str], tokens: NameTokens) -> list[str]:
    """Return wildcards that match at most MAX_WILDCARD_WORDS words each; wildcards for many words come first."""
    if len(words) <= MAX_WILDCARD_WORDS:
        return [tokens.word_prefix(prefix)]
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(word[: len(prefix) + 1], []).append(word)
    found = [tokens.word(prefix)] if groups.pop(prefix, None) else []
    for longer, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        found += [tokens.word(group[0])] if len(group) == 1 else _wildcards(longer, group, tokens)
    return found
