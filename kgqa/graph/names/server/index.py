"""The index of names on a Virtuoso server: its full-text index over the graph of names, see `names_graph`.

Gives what `names.NameIndex` gives, in the same order, as long as no more than MAX_HITS names match. All order is made here,
from what matches and from counts, because the server's own scores are others.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from kgqa.errors import QueryRejected
from kgqa.graph.names.index import MAX_INITIALS, MAX_NAMESAKES, MAX_QUERY_CHARS, LooseMatch, NameMatch
from kgqa.graph.names.reading import Limit
from kgqa.graph.names.server.full_text import ENTITY_BATCH, EntityName, ServerNames, keys_of_name
from kgqa.graph.names.server.hits import ENOUGH_HITS, Hit, NameHits
from kgqa.graph.names.server.keyed import Keyed, KeyedEntities
from kgqa.graph.names.server.names_graph import TEXTS, NamesFacts
from kgqa.graph.names.server.scores import NameScores
from kgqa.graph.names.server.vocabulary import MAX_BEGUN, Vocabulary
from kgqa.graph.names.text import MAX_TOKENS, NameTokens
from kgqa.graph.store import Row, Store
from kgqa.model import Entity
from kgqa.schema import Schema
from kgqa.words import normalise

MAX_SEARCHED = 32
MAX_COUNTED = 20_000
Rank = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A word that is looked for, or the beginning of one: how telling it is, and which tokens are it."""

    weight: float
    token: str
    begun: bool = False

    def count(self, tokens: Sequence[str]) -> int:
        return sum(token.startswith(self.token) for token in tokens) if self.begun else tokens.count(self.token)


class RemoteNames:
    """Names by a graph of names. See `names.Names`. Thread-safe.

    Beginnings of words are looked up by up to four letters, and of each the most frequent words, see LISTED_WORDS.

    Args:
        graph: the IRI of the graph of names.
        facts: what it says of itself.
        current: whether it was made of the names as they are now.
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
        self._scores = NameScores(facts.names, facts.tokens)
        self._server = ServerNames(store, schema, view)
        node = Entity(graph)
        self._words = Vocabulary(self._select, node)
        self._hits = NameHits(self._select, self._tokens, {iri: kind for kind, iri in TEXTS.items()})
        self._keyed = KeyedEntities(self._select, node, self._tokens, self._hits, self._words)

    def within(self, limit: Limit) -> RemoteNames:
        bound = copy.copy(self)
        bound._server = self._server.within(limit)
        bound._words = self._words.asking(bound._select)
        bound._hits = self._hits.asking(bound._select)
        bound._keyed = self._keyed.asking(bound._select, bound._hits, bound._words)
        return bound

    @property
    def labelled(self) -> int:
        return self._server.labelled

    def close(self) -> None:
        for part in (self._server, self._words, self._hits, self._keyed):
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
            ways = {
                NameMatch(Entity(iri), name.name, name.kind, False): keys_of_name(name.name)[text]
                for iri in dict.fromkeys((*item.loose, *item.initials))
                for name in names[iri]
                if text in keys_of_name(name.name)
            }
            if ways:
                found[text] = [LooseMatch(match, ways[match]) for match in _first_of_each(ways)]
        return found

    def initials_from(self, beginning: str, *, limit: int = 50) -> list[NameMatch]:
        lengths = range(len(beginning) + 1, MAX_INITIALS + 1)
        if not beginning or not lengths:
            return []
        wildcards = [self._tokens.initials_from(beginning, length) for length in lengths]
        hits = self._hits.first(wildcards, most=ENOUGH_HITS)
        if hits is None or len(hits) == ENOUGH_HITS:  # too many: the shortest first
            hits = []
            for wildcard in wildcards:
                hits += self._hits.first([wildcard], most=ENOUGH_HITS) or ()
                if len(hits) >= limit:
                    break
        ranked = {hit: (self._tokens.initials_length(hit.text), hit.iri, hit.kind == "alias") for hit in hits}
        # initials that are a key of another kind as well count as that one
        matches = (match for match in self._matches(ranked) if "initials" in keys_of_name(match.name).values())
        return list(islice(matches, limit))

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        wanted = list(dict.fromkeys(words))[:500]
        self._words.look_ahead(wanted)
        return {word: names for word, names in self._words.frequencies(wanted).items() if names}

    def words_from(self, beginning: str, *, limit: int = 500) -> dict[str, int]:
        return dict(list(self._words.words_from(beginning).items())[:limit])

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        return self._server.names_of(entities)

    def holding(self, words: Sequence[str], *, limit: int = 50) -> list[NameMatch]:
        return list(islice(self._matches(self._any_of(words[:MAX_SEARCHED])), limit))

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        words = normalise(text[:MAX_QUERY_CHARS]).split()[:MAX_SEARCHED]
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
        # results are kept by the fingerprint of the graph itself, of which this index may not be the newest
        return self._server.select(template, fresh=not self._current, **values)

    def _with_names(self, texts: Sequence[str]) -> tuple[dict[str, Keyed], dict[str, tuple[EntityName, ...]]]:
        """What texts lead to, and the names of all of that: who asks for exact matches asks for loose ones too."""
        keyed = self._keyed.of(texts)
        iris = [iri for item in keyed.values() for iri in (*item.exact, *item.loose, *item.initials)]
        return keyed, self._server.of(iris)

    def _any_of(self, words: Sequence[str]) -> dict[Hit, Rank]:
        """Names that hold any of these words."""
        frequencies = self._words.frequencies(words)
        found = self._hits.with_words(frequencies)
        phrases = [_Phrase(self._scores.weight(frequencies[word]), self._tokens.word(word)) for word in words]
        return self._ranked({hit for hits in found.values() for hit in hits}, phrases)

    def _all_of(self, words: Sequence[str], whole: str) -> dict[Hit, Rank]:
        """Names that hold all of these words, the last one perhaps begun only. `whole`: the text that is best of all."""
        *full, last = words
        frequencies = self._words.frequencies(full)
        if not all(frequencies.values()):
            return {}
        tokens = [self._tokens.word(word) for word in full]
        hits, begun = self._with_all(tokens, last)
        if len(hits) >= ENOUGH_HITS:  # perhaps not all of them, but whole names must not be missing
            hits = {*hits, *self._equal(" ".join(words), whole)}
        phrases = [
            _Phrase(self._scores.weight(frequencies[word]), token) for word, token in zip(full, tokens, strict=True)
        ]
        # of a single word all that matters is how often it stands in a name
        weight = self._scores.weight(self._count_begun(last, begun)) if full and hits else 1.0
        phrases.append(_Phrase(weight, self._tokens.words_from(last).rstrip("*"), begun=True))
        return self._ranked(hits, phrases, whole)

    def _with_all(self, tokens: Sequence[str], last: str) -> tuple[Collection[Hit], Sequence[str]]:
        """Names with all of some tokens and a word that begins so, and the tokens that this was taken to mean."""
        begins = self._words.words_from(last)
        begun = self._words.tokens_from(last, self._tokens)[: MAX_TOKENS - len(tokens)]
        if not begun:
            return (), ()
        groups = [[token] for token in tokens]
        surely = 0 if groups else max(begins.values(), default=0)
        try:
            return self._hits.matching(*groups, begun, surely=surely), begun
        except QueryRejected:  # a wildcard that stands for too many words
            begun = [self._tokens.word(word) for word in begins][:MAX_BEGUN]
            return (self._hits.matching(*groups, begun, surely=surely) if begun else ()), begun

    def _count_begun(self, beginning: str, begun: Sequence[str]) -> int:
        """In how many names a word stands that begins so; where that is very many, how many at most."""
        listed = sum(self._words.words_from(beginning).values())
        return min(self.count, self._hits.count(begun) if listed <= MAX_COUNTED else listed)

    def _equal(self, norm: str, whole: str) -> list[Hit]:
        """The hits that are this whole normalised name, with its text."""
        keyed, names = self._with_names([norm])
        return [Hit(iri, name.kind, whole) for iri in keyed[norm].exact for name in names[iri] if name.norm == norm]

    def _ranked(self, hits: Iterable[Hit], phrases: Sequence[_Phrase], whole: str = "") -> dict[Hit, Rank]:
        ranked: dict[Hit, Rank] = {}
        for hit in hits:
            tokens = self._tokens.words_of(hit.text)
            counts = [phrase.count(tokens) for phrase in phrases]
            score = self._scores.score([phrase.weight for phrase in phrases], counts, len(tokens))
            ranked[hit] = (hit.text != whole, score, hit.kind == "alias", hit.iri)
        return ranked

    def _matches(self, ranked: Mapping[Hit, Rank], whole: str = "") -> Iterator[NameMatch]:
        """The names behind ranked hits, best first, as they stand in the graph; those that do no more are left out.

        A rank tells kinds and entities apart; hits that share one are put in order by their names.
        """
        ordered = sorted(ranked, key=lambda hit: ranked[hit])
        groups = [list(group) for _, group in groupby(ordered, key=lambda hit: ranked[hit])]
        for start in range(0, len(groups), ENTITY_BATCH):
            batch = groups[start : start + ENTITY_BATCH]
            names = self._server.of([group[0].iri for group in batch])
            for group in batch:
                texts = {hit.text for hit in group}
                for name in names[group[0].iri]:
                    if name.kind == group[0].kind and (text := self._tokens.text(name.norm)) in texts:
                        yield NameMatch(Entity(group[0].iri), name.name, name.kind, text == whole)


def _first_of_each(matches: Iterable[NameMatch]) -> list[NameMatch]:
    """The best match of each entity, labels before aliases, then by IRI and by name; MAX_NAMESAKES at most."""
    found: dict[Entity, NameMatch] = {}
    for match in sorted(matches, key=lambda match: (match.kind == "alias", match.entity.iri, match.name)):
        found.setdefault(match.entity, match)
    return list(found.values())[:MAX_NAMESAKES]
