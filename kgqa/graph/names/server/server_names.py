"""An index of names on a Virtuoso server: the server's full-text index of a graph of names, see `names_graph`.

`ServerNames` returns the same matches as `SqliteNames`, in the same order, as long as at most MAX_HITS names match.
This module computes the scores itself, from the tokens of names and the counts of words, because the server's own
scores differ from those of SQLite.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from kgqa.errors import QueryRejected
from kgqa.graph.names.interface import MAX_NAMESAKES, MAX_SEARCH_CHARS, MAX_SEARCH_WORDS, LooseMatch, NameMatch
from kgqa.graph.names.name_reader import Limit
from kgqa.graph.names.server.bm25 import NameBM25
from kgqa.graph.names.server.entity_names import ENTITY_BATCH, EntityName, EntityNameReader, spellings_of
from kgqa.graph.names.server.key_lookup import KeyLookup, TextEntities
from kgqa.graph.names.server.name_hits import ENOUGH_HITS, Hit, NameHits
from kgqa.graph.names.server.name_tokens import MAX_TOKENS, NameTokens
from kgqa.graph.names.server.names_graph import TEXTS, NamesFacts
from kgqa.graph.names.server.vocabulary import MAX_PREFIX_TOKENS, Vocabulary
from kgqa.graph.names.spellings import MAX_INITIALS
from kgqa.graph.store import Row, Store
from kgqa.model import Entity
from kgqa.schema import Schema
from kgqa.words import normalise

MAX_EXACT_COUNT = 20_000
"""The largest number of names with a prefix that is counted exactly."""
Rank = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Term:
    """A word or prefix of a search, with its weight and its token."""

    weight: float
    token: str
    is_prefix: bool = False

    def count(self, tokens: Sequence[str]) -> int:
        """Count the tokens that match."""
        return sum(token.startswith(self.token) for token in tokens) if self.is_prefix else tokens.count(self.token)


class ServerNames:
    """An index of names (see `Names`) in a graph of names on a server. Thread-safe.

    For each prefix, only the most frequent words are known, see LISTED_WORDS.

    Args:
        graph: the IRI of the graph of names.
        facts: the counts stored in the graph of names.
        current: whether the index matches the names now in the graph.
    """

    def __init__(
        self,
        store: Store,
        schema: Schema,
        view: Sequence[Entity],
        *,
        graph: str,
        facts: NamesFacts,
        current: bool = True,
    ) -> None:
        self.count = facts.names
        self.longest = facts.longest
        self._current = current
        self._tokens = NameTokens.of(graph)
        self._bm25 = NameBM25(facts.names, facts.tokens)
        self._reader = EntityNameReader(store, schema, view)
        node = Entity(graph)
        self._words = Vocabulary(self._select, node)
        self._hits = NameHits(self._select, self._tokens, {iri: kind for kind, iri in TEXTS.items()})
        self._keyed = KeyLookup(self._select, node, self._tokens, self._hits, self._words)

    def within(self, limit: Limit) -> ServerNames:
        bound = copy.copy(self)
        bound._reader = self._reader.within(limit)
        bound._words = self._words.with_select(bound._select)
        bound._hits = self._hits.with_select(bound._select)
        bound._keyed = self._keyed.with_select(bound._select, bound._hits, bound._words)
        return bound

    @property
    def labelled(self) -> int:
        return self._reader.labelled

    def close(self) -> None:
        for part in (self._reader, self._words, self._hits, self._keyed):
            part.close()

    def exact(self, texts: Sequence[str]) -> dict[str, list[NameMatch]]:
        found: dict[str, list[NameMatch]] = {}
        keyed, names = self._with_names(texts)
        for text, item in keyed.items():
            same = [
                NameMatch(Entity(iri), name.name, name.kind, True)
                for iri in item.exact
                for name in names[iri]
                if name.norm == text
            ]
            if same:
                found[text] = _first_of_each(same)
        return found

    def loose(self, texts: Sequence[str]) -> dict[str, list[LooseMatch]]:
        found: dict[str, list[LooseMatch]] = {}
        keyed, names = self._with_names(texts)
        for text, item in keyed.items():
            kinds = {
                NameMatch(Entity(iri), name.name, name.kind, False): spellings_of(name.name)[text]
                for iri in dict.fromkeys((*item.loose, *item.initials))
                for name in names[iri]
                if text in spellings_of(name.name)
            }
            if kinds:
                found[text] = [LooseMatch(match, kinds[match]) for match in _first_of_each(kinds)]
        return found

    def initials_with_prefix(self, prefix: str, *, limit: int = 50) -> list[NameMatch]:
        lengths = range(len(prefix) + 1, MAX_INITIALS + 1)
        if not prefix or not lengths:
            return []
        wildcards = [self._tokens.initials_prefix(prefix, length) for length in lengths]
        hits = self._hits.first(wildcards, limit=ENOUGH_HITS)
        if hits is None or len(hits) == ENOUGH_HITS:  # too many hits for one search: search each wildcard alone
            hits = []
            for wildcard in wildcards:
                hits += self._hits.first([wildcard], limit=ENOUGH_HITS) or ()
                if len(hits) >= limit:
                    break
        ranked = {hit: (self._tokens.initials_length(hit.text), hit.iri, hit.kind == "alias") for hit in hits}
        # initials that equal another spelling of the name have the kind of that spelling, as in SQLite
        matches = (match for match in self._matches(ranked) if "initials" in spellings_of(match.name).values())
        return list(islice(matches, limit))

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        wanted = list(dict.fromkeys(words))[:500]
        self._words.prefetch(wanted)
        return {word: names for word, names in self._words.frequencies(wanted).items() if names}

    def words_with_prefix(self, prefix: str, *, limit: int = 500) -> dict[str, int]:
        return dict(list(self._words.words_with_prefix(prefix).items())[:limit])

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        return self._reader.names_of(entities)

    def containing(self, words: Sequence[str], *, limit: int = 50) -> list[NameMatch]:
        return list(islice(self._matches(self._any_of(words[:MAX_SEARCH_WORDS])), limit))

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        words = normalise(text[:MAX_SEARCH_CHARS]).split()[:MAX_SEARCH_WORDS]
        if not words:
            return []
        whole = self._tokens.text(" ".join(words))
        best: dict[Entity, NameMatch] = {}
        for match in islice(self._matches(self._all_of(words, whole) or self._any_of(words), whole), 10 * limit):
            best.setdefault(match.entity, match)
            if len(best) >= limit:
                break
        return list(best.values())

    # --- inside

    def _select(self, template: str, **values: object) -> list[Row]:
        # the fingerprint of the data is the key of cached results, and does not show that an index is outdated
        return self._reader.select(template, fresh=not self._current, **values)

    def _with_names(self, texts: Sequence[str]) -> tuple[dict[str, TextEntities], dict[str, tuple[EntityName, ...]]]:
        """Look up the entities for each text, and the names of all these entities."""
        keyed = self._keyed.of(texts)
        iris = [iri for item in keyed.values() for iri in (*item.exact, *item.loose, *item.initials)]
        return keyed, self._reader.of(iris)

    def _any_of(self, words: Sequence[str]) -> dict[Hit, Rank]:
        """Find names that contain any of these words."""
        frequencies = self._words.frequencies(words)
        found = self._hits.with_words(frequencies)
        terms = [_Term(self._bm25.weight(frequencies[word]), self._tokens.word(word)) for word in words]
        return self._ranked({hit for hits in found.values() for hit in hits}, terms)

    def _all_of(self, words: Sequence[str], whole: str) -> dict[Hit, Rank]:
        """Find names that contain all words except the last, and a word that begins with the last word.

        Args:
            whole: the tokens of the whole text, see `NameTokens.text`.
        """
        *full, last = words
        frequencies = self._words.frequencies(full)
        if not all(frequencies.values()):
            return {}
        tokens = [self._tokens.word(word) for word in full]
        hits, last_tokens = self._with_all(tokens, last)
        if len(hits) >= ENOUGH_HITS:  # some hits may be missing: make sure to include those equal to the whole text
            hits = {*hits, *self._equal(" ".join(words), whole)}
        terms = [_Term(self._bm25.weight(frequencies[word]), token) for word, token in zip(full, tokens, strict=True)]
        # with a single word, the weight does not change the order
        weight = self._bm25.weight(self._count_prefix(last, last_tokens)) if full and hits else 1.0
        terms.append(_Term(weight, self._tokens.word_prefix(last).rstrip("*"), is_prefix=True))
        return self._ranked(hits, terms, whole)

    def _with_all(self, tokens: Sequence[str], prefix: str) -> tuple[Collection[Hit], Sequence[str]]:
        """Find names that have all tokens and a word that begins with a prefix.

        Returns:
            The names, and the tokens that were searched for the prefix.
        """
        words = self._words.words_with_prefix(prefix)
        prefix_tokens = self._words.prefix_tokens(prefix, self._tokens)[: MAX_TOKENS - len(tokens)]
        if not prefix_tokens:
            return (), ()
        groups = [[token] for token in tokens]
        at_least = 0 if groups else max(words.values(), default=0)
        try:
            return self._hits.matching(*groups, prefix_tokens, at_least=at_least), prefix_tokens
        except QueryRejected:  # a wildcard matches too many words
            prefix_tokens = [self._tokens.word(word) for word in words][:MAX_PREFIX_TOKENS]
            hits = self._hits.matching(*groups, prefix_tokens, at_least=at_least) if prefix_tokens else ()
            return hits, prefix_tokens

    def _count_prefix(self, prefix: str, tokens: Sequence[str]) -> int:
        """Count the names that have a word with this prefix; for very many names, return an upper bound."""
        listed = sum(self._words.words_with_prefix(prefix).values())
        return min(self.count, self._hits.count(tokens) if listed <= MAX_EXACT_COUNT else listed)

    def _equal(self, norm: str, whole: str) -> list[Hit]:
        """Find the names that equal a normalised name.

        Args:
            whole: the tokens of the normalised name.
        """
        keyed, names = self._with_names([norm])
        return [Hit(iri, name.kind, whole) for iri in keyed[norm].exact for name in names[iri] if name.norm == norm]

    def _ranked(self, hits: Iterable[Hit], terms: Sequence[_Term], whole: str = "") -> dict[Hit, Rank]:
        ranked: dict[Hit, Rank] = {}
        for hit in hits:
            tokens = self._tokens.words_of(hit.text)
            counts = [term.count(tokens) for term in terms]
            score = self._bm25.score([term.weight for term in terms], counts, len(tokens))
            ranked[hit] = (hit.text != whole, score, hit.kind == "alias", hit.iri)
        return ranked

    def _matches(self, ranked: Mapping[Hit, Rank], whole: str = "") -> Iterator[NameMatch]:
        """Yield the names of ranked hits, best first, spelled as in the graph.

        Hits of equal rank have the same kind and entity; they are ordered by name.
        """
        ordered = sorted(ranked, key=lambda hit: ranked[hit])
        groups = [list(group) for _, group in groupby(ordered, key=lambda hit: ranked[hit])]
        for start in range(0, len(groups), ENTITY_BATCH):
            batch = groups[start : start + ENTITY_BATCH]
            names = self._reader.of([group[0].iri for group in batch])
            for group in batch:
                texts = {hit.text for hit in group}
                for name in names[group[0].iri]:
                    if name.kind == group[0].kind and (text := self._tokens.text(name.norm)) in texts:
                        yield NameMatch(Entity(group[0].iri), name.name, name.kind, text == whole)


def _first_of_each(matches: Iterable[NameMatch]) -> list[NameMatch]:
    """Return the best match of each entity: labels before aliases, then by IRI and by name; at most MAX_NAMESAKES."""
    found: dict[Entity, NameMatch] = {}
    for match in sorted(matches, key=lambda match: (match.kind == "alias", match.entity.iri, match.name)):
        found.setdefault(match.entity, match)
    return list(found.values())[:MAX_NAMESAKES]
