"""The words of a graph of names: in how many names each stands, and which words begin in one way."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

from kgqa.graph.names.memory import Remembered
from kgqa.graph.names.server.hits import Select
from kgqa.graph.names.server.names_graph import LISTED_WORDS, WORD, WORDS, beginning_node, count_of
from kgqa.graph.names.text import MAX_TOKENS, NameTokens, key_number
from kgqa.model import Entity, Literal

WORD_BATCH = 50
LIST_BATCH = 20
MAX_WORDS = 100_000
MAX_LISTED = 1_000_000
LONGEST_LISTED = max(LISTED_WORDS)
MAX_WILDCARD_WORDS = 800
"""Virtuoso refuses wildcards that stand for more than 1,000 words."""
MAX_BEGUN = MAX_TOKENS - 10


class Vocabulary:
    """Asks one graph of names. Thread-safe."""

    def __init__(self, select: Select, graph: Entity) -> None:
        self._select = select
        self._graph = graph
        self._frequencies: Remembered[str, int] = Remembered(MAX_WORDS)
        self._lists: Remembered[str, dict[str, int]] = Remembered(MAX_LISTED, size=lambda words: 1 + len(words))

    def asking(self, select: Select) -> Vocabulary:
        """The same, and what it remembers, with another way to run queries."""
        bound = copy.copy(self)
        bound._select = select
        return bound

    def close(self) -> None:
        self._frequencies.clear()
        self._lists.clear()

    def frequencies(self, words: Iterable[str]) -> dict[str, int]:
        """In how many names each of these words stands, 0 for none."""
        return self._frequencies.with_all(words, self._count)

    def words_from(self, beginning: str) -> dict[str, int]:
        """The listed words that begin so and their numbers of names, most frequent first."""
        listed = self._listed(beginning)
        return {word: names for word, names in listed.items() if word.startswith(beginning)}

    def tokens_from(self, beginning: str, tokens: NameTokens) -> list[str]:
        """Tokens and wildcards that stand for all words that begin so, or, where those are very many, for the most
        frequent ones.
        """
        words = list(self.words_from(beginning))
        start = beginning[:LONGEST_LISTED]
        complete = len(self._listed(beginning)) < LISTED_WORDS[len(start)]
        if complete and len(words) <= MAX_BEGUN:
            return [tokens.word(word) for word in words]
        if not complete:
            # few enough for one wildcard, if the beginning is longer than those of lists
            longer = len(beginning) > LONGEST_LISTED
            return [tokens.words_from(beginning)] if longer else [tokens.word(word) for word in words[:MAX_BEGUN]]
        return _wildcards(beginning, words, tokens)[:MAX_BEGUN]

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

    def look_ahead(self, words: Iterable[str]) -> None:
        """Fetch the lists in which words like these stand, all at once: whoever counts words asks for those next."""
        self._listed_all([word[: 4 if len(word) > 5 else 3] for word in words if len(word) > 3])

    def _listed(self, beginning: str) -> dict[str, int]:
        start = beginning[:LONGEST_LISTED]
        return self._listed_all([start])[start]

    def _listed_all(self, starts: Iterable[str]) -> dict[str, dict[str, int]]:
        return self._lists.with_all(starts, self._list)

    def _list(self, starts: list[str]) -> dict[str, dict[str, int]]:
        nodes = {beginning_node(start): start for start in starts if start}
        found: dict[str, dict[str, int]] = {start: {} for start in starts}
        asked = [Entity(node) for node in nodes]
        for place in range(0, len(asked), LIST_BATCH):
            batch = asked[place : place + LIST_BATCH]
            for node, text in self._select("lists", graph=self._graph, predicate=Entity(WORDS), beginnings=batch):
                if isinstance(node, Entity) and isinstance(text, Literal):
                    parts = text.value.split()
                    words = zip(parts[::2], map(int, parts[1::2]), strict=True)
                    found[nodes[node.iri]] = dict(words)
        return found


def _wildcards(beginning: str, words: Sequence[str], tokens: NameTokens) -> list[str]:
    """Wildcards for these words, each for no more than MAX_WILDCARD_WORDS; those of most words first."""
    if len(words) <= MAX_WILDCARD_WORDS:
        return [tokens.words_from(beginning)]
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(word[: len(beginning) + 1], []).append(word)
    found = [tokens.word(beginning)] if groups.pop(beginning, None) else []
    for longer, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        found += [tokens.word(group[0])] if len(group) == 1 else _wildcards(longer, group, tokens)
    return found
