"""Full-text search of the names on a Virtuoso server.

Virtuoso splits literals into words, and ignores case and accents, by rules of its own. The search therefore returns
candidates: names that probably have the words. They are normalised and compared here.
"""

from __future__ import annotations

import copy
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kgqa.errors import InvalidTerm, QueryRejected
from kgqa.graph.names.lru_cache import LRUCache
from kgqa.graph.names.name_reader import EntityNameReader, normalised
from kgqa.graph.store import Row, count_value
from kgqa.model import Entity, Literal

MAX_NAMES = 3_000
"""The largest number of names that are read for one word or one search."""
MAX_COUNT = 20_000
"""Names with a word are counted up to this number."""
MAX_WORD_LETTERS = 60
"""Virtuoso neither indexes nor finds words of more than 65 letters."""
MIN_PREFIX_BYTES = 4
"""Virtuoso rejects wildcards after fewer bytes of UTF-8."""
MAX_PHRASES = 300
COUNT_BATCH = 50
EQUAL_BATCH = 200
MAX_CACHED_WORDS = 100_000
MAX_CACHED_NAMES = 200_000
_OUTER_DOTS = re.compile(r"(?<!\w)\.|\.(?!\w)")
Word = tuple[str, ...]
"""A normalised word, followed by other phrases that a name may have in its place, such as `o neill` for `oneill`."""


class FoundName(NamedTuple):
    """A name of an entity, its kind (`label` or `alias`), and the words of its normalised form."""

    entity: str
    name: str
    kind: str
    words: tuple[str, ...]


class FullText:
    """Searches the names of one graph. Thread-safe."""

    def __init__(self, reader: EntityNameReader) -> None:
        self._reader = reader
        self._counts: LRUCache[Word, int] = LRUCache(MAX_CACHED_WORDS)
        self._names: LRUCache[Word, list[FoundName]] = LRUCache(MAX_CACHED_NAMES, size=lambda names: 1 + len(names))

    def with_reader(self, reader: EntityNameReader) -> FullText:
        """Return a copy with the same cache that runs its queries with `reader`."""
        bound = copy.copy(self)
        bound._reader = reader
        return bound

    def counts(self, words: Iterable[Word]) -> dict[Word, int]:
        """Return the number of names with each word, at most MAX_COUNT."""
        return self._counts.get_or_find(words, self._count)

    def finds_all(self, phrases: Sequence[str]) -> bool:
        """Return whether each phrase is in a name. Raises QueryRejected if the server has no full-text search."""
        patterns = [pattern([phrase]) for phrase in dict.fromkeys(phrases)]
        batches = (patterns[start : start + COUNT_BATCH] for start in range(0, len(patterns), COUNT_BATCH))
        return all(
            count_value(names) for batch in batches for _, names in self._rows("counts", patterns=batch, limit=1)
        )

    def names(self, words: Iterable[Word]) -> dict[Word, list[FoundName]]:
        """Return the names with each word; an empty list for a word in more than MAX_NAMES names."""
        return self._names.get_or_find(words, self._find)

    def matching(self, *groups: Sequence[str], limit: int = MAX_NAMES, shortest: bool = False) -> list[FoundName]:
        """Find names with at least one phrase of each group; a phrase may end with the wildcard `*`.

        Args:
            shortest: whether to return the shortest names if more than `limit` match; else, any names are returned.

        Raises:
            QueryRejected: a phrase consists of characters that the server ignores, or a wildcard matches too many
                words.
        """
        if not groups or not all(groups):
            return []
        return self._select("matching", pattern=pattern(*groups), limit=limit, shortest=shortest)

    def matching_any(self, phrases: Sequence[str]) -> list[FoundName]:
        """Find names with any of these phrases, without the phrases that the server rejects."""
        found: list[FoundName] = []
        for start in range(0, len(phrases), MAX_PHRASES):
            batch = phrases[start : start + MAX_PHRASES]
            try:
                found += self.matching(batch)
            except QueryRejected:
                half = len(batch) // 2
                found += self.matching_any(batch[:half]) + self.matching_any(batch[half:]) if half else []
        return found

    def equal(self, names: Sequence[Literal]) -> list[FoundName]:
        """Find the names that equal one of these literals."""
        return [
            name
            for start in range(0, len(names), EQUAL_BATCH)
            for name in self._select("equal", names=names[start : start + EQUAL_BATCH], limit=MAX_NAMES)
        ]

    def scanned(self, prefix: str) -> list[FoundName]:
        """Find the shortest names with a word that begins with a prefix; the server reads all names."""
        letters = "['’]?".join(prefix)
        expression = Literal(f"(^|[^a-z0-9])({letters}|[^ -~])")
        return self._select("scanned", pattern=expression, limit=MAX_NAMES)

    def _select(self, template: str, **values: object) -> list[FoundName]:
        found = [
            FoundName(entity.iri, name.value, kind, tuple(normalised(name.value).split()))
            for entity, predicate, name in self._rows(template, **values)
            if isinstance(entity, Entity) and isinstance(predicate, Entity) and isinstance(name, Literal)
            for kind in self._reader.kinds[predicate.iri]
        ]
        return list(dict.fromkeys(found))

    def _rows(self, template: str, **values: object) -> list[Row]:
        # not from the cache: its key is the fingerprint of the data, while the index may follow the data later
        return self._reader.select(
            template, fresh=True, view=self._reader.view, predicates=self._reader.predicates, **values
        )

    def _count(self, words: list[Word]) -> dict[Word, int]:
        found = dict.fromkeys(words, 0)
        usable = [(word, phrases) for word in words if (phrases := phrases_of(word))]
        for start in range(0, len(usable), COUNT_BATCH):
            batch = usable[start : start + COUNT_BATCH]
            patterns = [pattern(phrases) for _, phrases in batch]
            try:
                rows = self._rows("counts", patterns=patterns, limit=MAX_COUNT)
            except QueryRejected:  # one of the words has only characters that the server ignores
                found |= {word: len(self.matching_any(phrases)) for word, phrases in batch}
                continue
            found |= {batch[count_value(number)][0]: count_value(names) for number, names in rows}
        return found

    def _find(self, words: list[Word]) -> dict[Word, list[FoundName]]:
        found: dict[Word, list[FoundName]] = {word: [] for word in words}
        known = self._counts.get_many(words)
        batch: list[Word] = []
        expected = 0
        for word in sorted(words, key=lambda word: known.get(word, 0)):
            if not 0 < known.get(word, 1) <= MAX_NAMES:
                continue
            if batch and (expected + known.get(word, 0) > MAX_NAMES or len(batch) == MAX_PHRASES):
                found |= self._find_batch(batch)
                batch, expected = [], 0
            batch.append(word)
            expected += known.get(word, 0)
        return found | self._find_batch(batch)

    def _find_batch(self, words: list[Word]) -> dict[Word, list[FoundName]]:
        names = self.matching_any([phrase for word in words for phrase in phrases_of(word)])
        known = self._counts.get_many(words)
        if len(names) >= MAX_NAMES and len(known) < len(words):  # some of them are frequent and hide the others
            self.counts(words)
            return self._find(words)
        found: dict[str, list[FoundName]] = {}
        for name in names:
            for text in set(name.words):
                found.setdefault(text, []).append(name)
        by_word = {word: found.get(word[0], []) for word in words}
        self._counts.put_many({word: len(names) for word, names in by_word.items() if word not in known})
        return by_word


def phrases_of(word: Word) -> list[str]:
    """Return the phrases to search for a word, without those that Virtuoso cannot find."""
    return [phrase for phrase in word if _is_searchable(phrase) and max(map(len, phrase.split())) <= MAX_WORD_LETTERS]


def _is_searchable(phrase: str) -> bool:
    letters = phrase.replace(" ", "").replace(".", "")
    return bool(letters) and all(unicodedata.category(char)[0] in "LMN" for char in letters)


def written_phrase(token: str) -> str:
    """Return the words of a text as the server splits them: `o neill` for `O'Neill`, and `u.s` for `U.S.`."""
    kept = (
        char if char == "." or unicodedata.category(char) == "Nd" or unicodedata.category(char)[0] in "LM" else " "
        for char in unicodedata.normalize("NFC", token)
    )
    return " ".join(_OUTER_DOTS.sub(" ", "".join(kept)).lower().split())


def pattern(*groups: Sequence[str]) -> Literal:
    """Build a full-text pattern for texts with at least one phrase of each group.

    Raises:
        InvalidTerm: a phrase has characters other than letters, marks, digits, spaces, dots and a wildcard at its end.
    """
    for phrase in (phrase for group in groups for phrase in group):
        if not _is_searchable(phrase.removesuffix("*")):
            raise InvalidTerm("A full-text pattern may contain only words.")
    text = " AND ".join("(" + " OR ".join(f'"{phrase}"' for phrase in group) + ")" for group in groups)
    return Literal(unicodedata.normalize("NFC", text))  # normalised Korean words consist of parts of syllables
