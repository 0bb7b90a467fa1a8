"""Names of a graph of names that match words, by the server's full-text index: all of them, or the shortest ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kgqa.errors import QueryRejected
from kgqa.graph.names.memory import Remembered
from kgqa.graph.names.server.names_graph import entity_of
from kgqa.graph.names.text import LONGEST_TOLD, NameTokens, pattern
from kgqa.graph.store import Row, single_count
from kgqa.model import Entity, Literal

MAX_HITS = 5_000
"""Names that are taken of one pattern. Where more match, the shortest are taken, which BM25 puts first."""
ENOUGH_HITS = 1_000
MAX_REMEMBERED = 200_000
WORD_BATCH = 40
Select = Callable[..., list[Row]]


class Hit(NamedTuple):
    """A name in the graph of names: its entity, its kind, and its tokens as `NameTokens.text` writes them."""

    iri: str
    kind: str
    text: str


class NameHits:
    """Asks one graph of names, by its tokens. Thread-safe.

    Args:
        select: runs queries/names_TEMPLATE.rq, see `ServerNames.select`.
        kinds: the kind of name each predicate of the graph of names stands for.
    """

    def __init__(self, select: Select, tokens: NameTokens, kinds: dict[str, str]) -> None:
        self._select = select
        self._tokens = tokens
        self._kinds = kinds
        self._known: Remembered[str, list[Hit]] = Remembered(MAX_REMEMBERED, size=lambda hits: 1 + len(hits))

    def asking(self, select: Select) -> NameHits:
        """The same, and what it remembers, with another way to run queries."""
        bound = copy.copy(self)
        bound._select = select
        return bound

    def close(self) -> None:
        self._known.clear()

    def matching(self, *groups: Sequence[str], surely: int = 0) -> list[Hit]:
        """Names that have of each group of tokens one at least, in no order.

        Args:
            surely: how many there are at least, if that is known.
        """
        if surely < MAX_HITS and len(found := self._first(groups, MAX_HITS)) < MAX_HITS:
            return found
        return self._shortest(groups)

    def with_words(self, frequencies: dict[str, int]) -> dict[str, list[Hit]]:
        """For each of these words, by their number of names, the names that hold it."""
        return self._known.with_all(frequencies, lambda words: self._with_words(words, frequencies))

    def count(self, tokens: Sequence[str]) -> int:
        """How many names have one of these tokens."""
        return single_count(self._select("matching_count", pattern=pattern(tokens)))

    def with_tokens(self, tokens: Sequence[str]) -> dict[str, list[Hit]]:
        """For each of some tokens the names that have it; of a very frequent one only ENOUGH_HITS."""
        found: dict[str, list[Hit]] = {}
        for start in range(0, len(tokens), WORD_BATCH):
            batch = tokens[start : start + WORD_BATCH]
            hits = self._first([batch], MAX_HITS)
            if len(hits) < MAX_HITS:
                found |= _by_token(hits, batch)
            else:
                found |= {token: self._first([[token]], ENOUGH_HITS) for token in batch}
        return found

    def first(self, tokens: Sequence[str], *, most: int) -> list[Hit] | None:
        """Up to `most` names that have one of these tokens; None where a wildcard among them means too many words."""
        try:
            return self._first([tokens], most)
        except QueryRejected:
            return None

    def _with_words(self, words: Iterable[str], frequencies: dict[str, int]) -> dict[str, list[Hit]]:
        found: dict[str, list[Hit]] = {}
        batch: list[str] = []
        expected = 0
        for word in sorted(words, key=lambda word: frequencies[word]):
            if not frequencies[word]:
                found[word] = []
                continue
            if batch and (expected + frequencies[word] > MAX_HITS or len(batch) == WORD_BATCH):
                found |= self._all_with(batch, surely=frequencies[batch[-1]])
                batch, expected = [], 0
            batch.append(word)
            expected += frequencies[word]
        return found | (self._all_with(batch, surely=frequencies[batch[-1]]) if batch else {})

    def _all_with(self, words: Sequence[str], *, surely: int) -> dict[str, list[Hit]]:
        tokens = {word: self._tokens.word(word) for word in words}
        by_token = _by_token(self.matching(list(tokens.values()), surely=surely), tokens.values())
        return {word: by_token[token] for word, token in tokens.items()}

    def _shortest(self, groups: Sequence[Sequence[str]]) -> list[Hit]:
        found: list[Hit] = []
        for words in range(1, LONGEST_TOLD + 1):
            found += self._first([*groups, [self._tokens.length(words)]], MAX_HITS)
            if len(found) >= ENOUGH_HITS:
                break
        return found

    def _first(self, groups: Sequence[Sequence[str]], most: int) -> list[Hit]:
        rows = self._select("matching", pattern=pattern(*groups), limit=most)
        return [
            Hit(entity_of(node.iri), self._kinds[kind.iri], text.value)
            for node, kind, text in rows
            if isinstance(node, Entity) and isinstance(kind, Entity) and isinstance(text, Literal)
        ]


def _by_token(hits: Iterable[Hit], tokens: Iterable[str]) -> dict[str, list[Hit]]:
    found: dict[str, list[Hit]] = {token: [] for token in tokens}
    for hit in hits:
        for token in set(hit.text.split()):
            if token in found:
                found[token].append(hit)
    return found
