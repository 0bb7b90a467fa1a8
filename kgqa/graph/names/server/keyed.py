"""Entities that have a text as a name, or nearly so: looked up in a graph of names by texts and numbers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from kgqa.graph.names.index import MAX_INITIALS, MAX_NAMESAKES
from kgqa.graph.names.memory import Remembered
from kgqa.graph.names.server.hits import MAX_HITS, NameHits, Select
from kgqa.graph.names.server.names_graph import KEY, TEXTS, entity_of
from kgqa.graph.names.server.vocabulary import Vocabulary
from kgqa.graph.names.text import NameTokens, key_number
from kgqa.graph.store import Row
from kgqa.model import Entity, Literal

TEXT_BATCH = 60
"""Texts that are looked up at once, each as a name and as a key."""
MAX_TEXTS = 20_000
MAX_LOOSE = 2 * MAX_NAMESAKES


@dataclass(frozen=True, slots=True)
class Keyed:
    """IRIs of the entities that have a text as a name, as another key but initials, and as initials."""

    exact: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    initials: tuple[str, ...] = ()


class KeyedEntities:
    """Asks one graph of names. Thread-safe."""

    def __init__(
        self, select: Select, graph: Entity, tokens: NameTokens, hits: NameHits, vocabulary: Vocabulary
    ) -> None:
        self._select = select
        self._graph = graph
        self._tokens = tokens
        self._hits = hits
        self._vocabulary = vocabulary
        self._kinds = [Entity(iri) for iri in (*TEXTS.values(), KEY)]
        self._known: Remembered[str, Keyed] = Remembered(MAX_TEXTS)

    def asking(self, select: Select, hits: NameHits, vocabulary: Vocabulary) -> KeyedEntities:
        """The same, and what it remembers, with another way to run queries."""
        bound = copy.copy(self)
        bound._select, bound._hits, bound._vocabulary = select, hits, vocabulary
        return bound

    def close(self) -> None:
        self._known.clear()

    def of(self, texts: Sequence[str]) -> dict[str, Keyed]:
        """What each of these normalised texts leads to."""
        return self._known.with_all(texts, self._find)

    def _find(self, texts: list[str]) -> dict[str, Keyed]:
        # what is one word may be initials
        short = {
            self._tokens.initials(text): text for text in texts if 2 <= len(text) <= MAX_INITIALS and " " not in text
        }
        initials = {short[token]: hits for token, hits in self._hits.with_tokens(list(short)).items()}
        found: dict[str, Keyed] = {}
        usable = self._possible(texts)
        for start in range(0, len(usable), TEXT_BATCH):
            for text, (exact, loose) in self._keyed(usable[start : start + TEXT_BATCH]).items():
                of_initials = _ranked([(kind, iri) for iri, kind, _ in initials.get(text, ())])
                found[text] = Keyed(_ranked(exact), tuple(sorted(set(loose)))[:MAX_LOOSE], of_initials)
        return {text: found.get(text, Keyed()) for text in texts}

    def _possible(self, texts: list[str]) -> list[str]:
        """Those that can be names or keys: a key with several words has only such as stand in names."""
        # a text with blanks of other kinds is not normalised; no name is like that, but its tokens would be those of one
        proper = {text: words for text in texts if (words := text.split()) and text == " ".join(words)}
        counts = self._vocabulary.frequencies(word for words in proper.values() if len(words) > 1 for word in words)
        return [text for text, words in proper.items() if len(words) == 1 or all(counts[word] for word in words)]

    def _keyed(self, texts: list[str]) -> dict[str, tuple[list[tuple[str, str]], list[str]]]:
        """For each text kind and IRI of those that have it as a name, and the IRIs of those that have it as a key."""
        names = {self._tokens.text(text): text for text in texts}
        keys = {str(key_number(text)): text for text in texts}
        rows = self._rows(names, keys)
        if len(rows) >= MAX_HITS and len(texts) > 1:  # one of them crowds out the others
            half = len(texts) // 2
            return self._keyed(texts[:half]) | self._keyed(texts[half:])
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
        asked = [*map(Literal, names), *map(int, keys)]
        return self._select("keys", graph=self._graph, keys=asked, kinds=self._kinds, limit=MAX_HITS)


def _ranked(found: list[tuple[str, str]]) -> tuple[str, ...]:
    """IRIs by kind and themselves, each once; no more than can be matches."""
    ranked = sorted(found, key=lambda item: (item[0] == "alias", item[1]))
    return tuple(dict.fromkeys(iri for _, iri in ranked))[:MAX_NAMESAKES]
