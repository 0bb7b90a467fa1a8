"""Full-text search in a graph of names. If very many names match, only the shortest are found."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kgqa.errors import QueryRejected
from kgqa.graph.names.lru_cache import LRUCache
from kgqa.graph.names.server.name_tokens import MAX_LENGTH, NameTokens, pattern
from kgqa.graph.names.server.names_graph import entity_of
from kgqa.graph.store import Row, single_count
from kgqa.model import Entity, Literal

MAX_HITS = 5_000
"""The largest number of names found by a search. If more match, only the shortest are used: BM25 ranks these first."""
ENOUGH_HITS = 1_000
MAX_CACHED_HITS = 200_000
WORD_BATCH = 40
NamesSelect = Callable[..., list[Row]]
"""Runs a template of queries/names_*.rq."""


class Hit(NamedTuple):
    """A name in the graph of names: the IRI of the entity, the kind of name, and its tokens, see `NameTokens.text`."""

    iri: str
    kind: str
    text: str


class NameHits:
    """Searches one graph of names by tokens. Thread-safe.

    Args:
        select: function that runs a query template, see `EntityNameReader.select`.
        kinds: the kind of name, `label` or `alias`, for each predicate of the graph of names.
    """

    def __init__(self, select: NamesSelect, tokens: NameTokens, kinds: dict[str, str]) -> None:
        self._select = select
        self._tokens = tokens
        self._kinds = kinds
        self._cache: LRUCache[str, list[Hit]] = LRUCache(MAX_CACHED_HITS, size=lambda hits: 1 + len(hits))

    def with_select(self, select: NamesSelect) -> NameHits:
        """Return a copy with the same cache that runs its queries with `select`."""
        bound = copy.copy(self)
        bound._select = select
        return bound

    def close(self) -> None:
        """Empty the cache."""
        self._cache.clear()

    def matching(self, *groups: Sequence[str], at_least: int = 0) -> list[Hit]:
        """Find the names that have at least one token from each group. The result is not sorted.

        Args:
            at_least: a known lower bound on the number of these names.
        """
        if at_least < MAX_HITS and len(found := self._select_hits(groups, MAX_HITS)) < MAX_HITS:
            return found
        return self._shortest(groups)

    def with_words(self, frequencies: dict[str, int]) -> dict[str, list[Hit]]:
        """Find the names that contain each word.

        Args:
            frequencies: the words to find, each with the number of names that contain the word.
        """
        return self._cache.get_or_find(frequencies, lambda words: self._find(words, frequencies))

    def count(self, tokens: Sequence[str]) -> int:
        """Count the names with one of these tokens."""
        return single_count(self._select("matching_count", pattern=pattern(tokens)))

    def with_tokens(self, tokens: Sequence[str]) -> dict[str, list[Hit]]:
        """Find the names that have each token; at most ENOUGH_HITS names for a very frequent token."""
        found: dict[str, list[Hit]] = {}
        for start in range(0, len(tokens), WORD_BATCH):
            batch = tokens[start : start + WORD_BATCH]
            hits = self._select_hits([batch], MAX_HITS)
            if len(hits) < MAX_HITS:
                found |= _group_by_token(hits, batch)
            else:
                found |= {token: self._select_hits([[token]], ENOUGH_HITS) for token in batch}
        return found

    def first(self, tokens: Sequence[str], *, limit: int) -> list[Hit] | None:
        """Find up to `limit` names with one of these tokens; return None if a wildcard matches too many words."""
        try:
            return self._select_hits([tokens], limit)
        except QueryRejected:
            return None

    def _find(self, words: Iterable[str], frequencies: dict[str, int]) -> dict[str, list[Hit]]:
        found: dict[str, list[Hit]] = {}
        batch: list[str] = []
        expected = 0
        for word in sorted(words, key=lambda word: frequencies[word]):
            if not frequencies[word]:
                found[word] = []
                continue
            if batch and (expected + frequencies[word] > MAX_HITS or len(batch) == WORD_BATCH):
                found |= self._find_batch(batch, at_least=frequencies[batch[-1]])
                batch, expected = [], 0
            batch.append(word)
            expected += frequencies[word]
        return found | (self._find_batch(batch, at_least=frequencies[batch[-1]]) if batch else {})

    def _find_batch(self, words: Sequence[str], *, at_least: int) -> dict[str, list[Hit]]:
        tokens = {word: self._tokens.word(word) for word in words}
        by_token = _group_by_token(self.matching(list(tokens.values()), at_least=at_least), tokens.values())
        return {word: by_token[token] for word, token in tokens.items()}

    def _shortest(self, groups: Sequence[Sequence[str]]) -> list[Hit]:
        found: list[Hit] = []
        for words in range(1, MAX_LENGTH + 1):
            found += self._select_hits([*groups, [self._tokens.length(words)]], MAX_HITS)
            if len(found) >= ENOUGH_HITS:
                break
        return found

    def _select_hits(self, groups: Sequence[Sequence[str]], limit: int) -> list[Hit]:
        rows = self._select("matching", pattern=pattern(*groups), limit=limit)
        return [
            Hit(entity_of(node.iri), self._kinds[kind.iri], text.value)
            for node, kind, text in rows
            if isinstance(node, Entity) and isinstance(kind, Entity) and isinstance(text, Literal)
        ]


def _group_by_token(hits: Iterable[Hit], tokens: Iterable[str]) -> dict[str, list[Hit]]:
    found: dict[str, list[Hit]] = {token: [] for token in tokens}
    for hit in hits:
        for token in set(hit.text.split()):
            if token in found:
                found[token].append(hit)
    return found
