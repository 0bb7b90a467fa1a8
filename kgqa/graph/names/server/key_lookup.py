"""Finds entities in a graph of names by their whole name or by another spelling of the name."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from kgqa.graph.names.interface import MAX_NAMESAKES
from kgqa.graph.names.lru_cache import LRUCache
from kgqa.graph.names.server.name_hits import MAX_HITS, NameHits, NamesSelect
from kgqa.graph.names.server.name_tokens import NameTokens, key_number
from kgqa.graph.names.server.names_graph import KEY, TEXTS, entity_of
from kgqa.graph.names.server.vocabulary import Vocabulary
from kgqa.graph.names.spellings import MAX_INITIALS
from kgqa.graph.store import Row
from kgqa.model import Entity, Literal

TEXT_BATCH = 60
"""The number of texts per query. Each text is looked up as a name and as another spelling of a name."""
MAX_TEXTS = 20_000
MAX_LOOSE = 2 * MAX_NAMESAKES


@dataclass(frozen=True, slots=True)
class TextEntities:
    """The IRIs of the entities found for a text.

    Attributes:
        exact: entities that have the text as a name.
        loose: entities that have the text as another spelling of a name.
        initials: entities that have the text as the initials of a name.
    """

    exact: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    initials: tuple[str, ...] = ()


class KeyLookup:
    """Finds the entities for a text in one graph of names. Thread-safe."""

    def __init__(
        self, select: NamesSelect, graph: Entity, tokens: NameTokens, hits: NameHits, vocabulary: Vocabulary
    ) -> None:
        self._select = select
        self._graph = graph
        self._tokens = tokens
        self._hits = hits
        self._vocabulary = vocabulary
        self._kinds = [Entity(iri) for iri in (*TEXTS.values(), KEY)]
        self._cache: LRUCache[str, TextEntities] = LRUCache(MAX_TEXTS)

    def with_select(self, select: NamesSelect, hits: NameHits, vocabulary: Vocabulary) -> KeyLookup:
        """Return a copy with the same cache that runs its queries with `select`."""
        bound = copy.copy(self)
        bound._select, bound._hits, bound._vocabulary = select, hits, vocabulary
        return bound

    def close(self) -> None:
        """Empty the cache."""
        self._cache.clear()

    def of(self, texts: Sequence[str]) -> dict[str, TextEntities]:
        """Find the entities for each of these normalised texts."""
        return self._cache.get_or_find(texts, self._find)

    def _find(self, texts: list[str]) -> dict[str, TextEntities]:
        # a single short word may be initials
        short = {
            self._tokens.initials(text): text for text in texts if 2 <= len(text) <= MAX_INITIALS and " " not in text
        }
        initials = {short[token]: hits for token, hits in self._hits.with_tokens(list(short)).items()}
        found: dict[str, TextEntities] = {}
        usable = self._without_unknown_words(texts)
        for start in range(0, len(usable), TEXT_BATCH):
            for text, (exact, loose) in self._look_up(usable[start : start + TEXT_BATCH]).items():
                of_initials = _ranked([(kind, iri) for iri, kind, _ in initials.get(text, ())])
                found[text] = TextEntities(_ranked(exact), tuple(sorted(set(loose)))[:MAX_LOOSE], of_initials)
        return {text: found.get(text, TextEntities()) for text in texts}

    def _without_unknown_words(self, texts: list[str]) -> list[str]:
        """Leave out texts of several words if one of the words is in no name: no name or spelling equals the text."""
        # a text with extra spaces equals no normalised name, although it would have the tokens of a name
        normalised = {text: words for text in texts if (words := text.split()) and text == " ".join(words)}
        counts = self._vocabulary.frequencies(word for words in normalised.values() if len(words) > 1 for word in words)
        return [text for text, words in normalised.items() if len(words) == 1 or all(counts[word] for word in words)]

    def _look_up(self, texts: list[str]) -> dict[str, tuple[list[tuple[str, str]], list[str]]]:
        """Look up texts in the graph of names.

        Returns:
            For each text, two lists: the kind and IRI of each entity with the text as a name, and the IRI of each
            entity with the text as another spelling of a name.
        """
        names = {self._tokens.text(text): text for text in texts}
        keys = {str(key_number(text)): text for text in texts}
        rows = self._rows(names, keys)
        if len(rows) >= MAX_HITS and len(texts) > 1:  # one frequent text may fill the result and hide the others
            half = len(texts) // 2
            return self._look_up(texts[:half]) | self._look_up(texts[half:])
        found: dict[str, tuple[list[tuple[str, str]], list[str]]] = {text: ([], []) for text in texts}
        kinds = {iri: kind for kind, iri in TEXTS.items()}
        for node, kind, key in rows:
            if isinstance(node, Entity) and isinstance(kind, Entity) and isinstance(key, Literal):
                if kind.iri == KEY:
                    found[keys[key.value]][1].append(entity_of(node.iri))
                else:
                    found[names[key.value]][0].append((kinds[kind.iri], entity_of(node.iri)))
        return found

    def _rows(self, names: dict[str, str], keys: dict[str, str]) -> list[Row]:
        values = [*map(Literal, names), *map(int, keys)]
        return self._select("keys", graph=self._graph, keys=values, kinds=self._kinds, limit=MAX_HITS)


def _ranked(found: list[tuple[str, str]]) -> tuple[str, ...]:
    """Sort IRIs by kind of name, labels first, then by IRI; return each IRI once, and at most MAX_NAMESAKES."""
    ranked = sorted(found, key=lambda item: (item[0] == "alias", item[1]))
    return tuple(dict.fromkeys(iri for _, iri in ranked))[:MAX_NAMESAKES]
