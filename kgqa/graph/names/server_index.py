"""The index of the names on a server: it takes in the names that the server's full text finds for the words asked for.

Names are then compared and ranked as in the index of a folder, except that, of words in more than MAX_NAMES names, only
a part of the names is considered: the shortest, or those that equal a text in a usual spelling. Initials are not known:
`uk` finds United Kingdom only if `UK` is one of its names.
"""

from __future__ import annotations

import copy
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from kgqa.errors import InvalidTerm, NamesNotIndexed, QueryRejected
from kgqa.graph.editing import batches
from kgqa.graph.names.index import INDEXES, TABLES, NameIndex
from kgqa.graph.names.reading import MIN_SQUEEZED, Limit, Name, NameReader
from kgqa.graph.store import count_value
from kgqa.graph.tables.labels import is_blank_node, values_of
from kgqa.model import Entity, Literal
from kgqa.text.words import normalise

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
_OUTER_DOTS = re.compile(r"(?<!\w)\.|\.(?!\w)")
MIN_APOSTROPHE = 3


class FullText(NameReader):
    """Searches the names of one graph. Thread-safe.

    No result comes from a cache: its key is the fingerprint of the data, while the index may follow the data later.
    """

    def counts(self, groups: Sequence[Sequence[str]], *, limit: int = MAX_COUNT) -> list[int]:
        """Count, for each group of phrases, the names with any of the phrases, up to `limit`."""
        found = []
        for batch in batches(groups, COUNT_BATCH):
            try:
                rows = self.select("names_counts", patterns=[pattern(phrases) for phrases in batch], limit=limit)
            except QueryRejected:  # one of the phrases has only characters that the server ignores
                found += [len(self.matching_any(phrases)) for phrases in batch]
                continue
            counts = {count_value(number): count_value(names) for number, names in rows}
            found += [counts.get(at, 0) for at in range(len(batch))]
        return found

    def matching(self, *groups: Sequence[str], limit: int = MAX_NAMES, shortest: bool = False) -> list[Name]:
        """Find names with at least one phrase of each group; a phrase may end with the wildcard `*`.

        Args:
            shortest: whether to return the shortest names if more than `limit` match; else, any names are returned.

        Raises:
            QueryRejected: a phrase consists of characters that the server ignores, or a wildcard matches too many
                words.
        """
        if not groups or not all(groups):
            return []
        return self.names(self.select("names_matching", pattern=pattern(*groups), limit=limit, shortest=shortest))

    def matching_any(self, phrases: Sequence[str]) -> list[Name]:
        """Find names with any of these phrases, without the phrases that the server rejects."""
        found: list[Name] = []
        for batch in batches(phrases, MAX_PHRASES):
            try:
                found += self.matching(batch)
            except QueryRejected:
                half = len(batch) // 2
                found += self.matching_any(batch[:half]) + self.matching_any(batch[half:]) if half else []
        return found

    def equal(self, names: Sequence[Literal]) -> list[Name]:
        """Find the names that equal one of these literals."""
        parts = batches(names, EQUAL_BATCH)
        rows = (row for part in parts for row in self.select("names_equal", names=part, limit=MAX_NAMES))
        return self.names(list(rows))


def is_searchable(phrase: str) -> bool:
    """Return whether Virtuoso can find a phrase: it has letters or digits only, and no word is too long."""
    return _has_only_words(phrase) and max(map(len, phrase.split())) <= MAX_WORD_LETTERS


def _has_only_words(phrase: str) -> bool:
    letters = phrase.replace(" ", "").replace(".", "")
    return bool(letters) and all(unicodedata.category(char)[0] in "LMN" for char in letters)


def written_phrase(token: str) -> str:
    """Return the words of a text as the server splits them: `o neill` for `O'Neill`, and `u.s` for `U.S.`."""
    kept = (
        char if char == "." or unicodedata.category(char) == "Nd" or unicodedata.category(char)[0] in "LM" else " "
        for char in unicodedata.normalize("NFC", token)
    )
    return " ".join(_OUTER_DOTS.sub(" ", "".join(kept)).lower().split())


def misspelt(word: str) -> list[str]:
    """Return the words with one letter more, less, exchanged with its neighbour or, for Latin letters, different."""
    if any(char.isdigit() for char in word):
        return []
    letters = ascii_lowercase if word.isascii() else ""
    found = {word[:at] + word[at + 1 :] for at in range(1, len(word))}
    found |= {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(1, len(word) - 1)}
    for letter in letters:
        found |= {word[:at] + letter + word[at:] for at in range(1, len(word) + 1)}
        found |= {word[:at] + letter + word[at + 1 :] for at in range(1, len(word))}
    return sorted(found - {word})


def pattern(*groups: Sequence[str]) -> Literal:
    """Build a full-text pattern for texts with at least one phrase of each group.

    Raises:
        InvalidTerm: a phrase has characters other than letters, marks, digits, spaces, dots and a wildcard at its end.
    """
    for phrase in (phrase for group in groups for phrase in group):
        if not _has_only_words(phrase.removesuffix("*")):
            raise InvalidTerm("A full-text pattern may contain only words.")
    text = " AND ".join("(" + " OR ".join(f'"{phrase}"' for phrase in group) + ")" for group in groups)
    return Literal(unicodedata.normalize("NFC", text))  # normalised Korean words consist of parts of syllables


class ServerIndex(NameIndex):
    """An index that asks the server's full text for each text whose names it has not read yet. Thread-safe.

    Args:
        names: the number of names; None if counting took too long.
        languages: language tags of the names that are found for texts of very frequent words.
        missing: why the server cannot search, as the parts of a message; empty if it can. Methods that find entities by
            name then raise NamesNotIndexed, and only names of given entities are known.
    """

    initials = False

    def __init__(
        self,
        reader: FullText,
        *,
        names: int | None,
        languages: Sequence[str] = (),
        missing: Sequence[Any] = (),
    ) -> None:
        self._reader = reader
        self._names, self.counted = names, names is not None
        self._languages = tuple(languages)
        self._missing = missing
        self._written: dict[str, tuple[str, ...]] = {}
        self._begin()

    def _begin(self) -> None:
        """Start without names."""
        super().__init__(sqlite3.connect(":memory:", check_same_thread=False))
        self._connection.executescript(TABLES + INDEXES)
        self._known: set[Name] = set()
        self._counts: dict[str, int] = {}
        self._read: set[str] = set()

    def follow(self, added: Sequence[Name], removed: Sequence[Name]) -> bool:
        return not (added or removed)

    def save(self, folder: Path) -> None: ...

    @property
    def count(self) -> int:
        return 1 if self._names is None else self._names

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        named = [entity for entity in dict.fromkeys(entities) if not is_blank_node(entity)]
        select = partial(self._reader.select, fresh=False)
        other = copy.copy(self)
        other._begin()  # so that the ranks of matches do not depend on these names
        other._take(self._reader.names(values_of(named, self._reader.kinds, select=select, remote=True)))
        return NameIndex.names_of(other, entities)

    def within(self, limit: Limit) -> ServerIndex:
        bound = copy.copy(self)
        bound._reader = self._reader.within(limit)
        bound._begin()
        return bound

    def for_text(self, text: str) -> ServerIndex:
        bound = copy.copy(self)
        bound._written = {}
        bound._begin()  # so that the ranks of matches do not depend on other lookups
        for token in text.split():
            phrase, key = written_phrase(token), normalise(token)
            for word in key.split():
                bound._written.setdefault(word, (word,) if phrase in ("", key) else (word, phrase))
        return bound

    @property
    def _text(self) -> FullText:
        if self._missing:
            raise NamesNotIndexed(*self._missing)
        return self._reader

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        counts = self._count(words[:MAX_NAMES])
        return {word: counts[word] for word in words[:MAX_NAMES] if counts[word]}

    # --- what is read before each kind of lookup

    def _read_texts(self, texts: Sequence[str]) -> None:
        """Read, for each text, the names with its rarest word, and names with other spaces."""
        # a text with other spaces equals no normalised name
        words = {text: text.split() for text in texts if text and text == " ".join(text.split())}
        counts = self._count([word for items in words.values() for word in items])
        rarest = {text: min(items, key=lambda word: counts[word]) for text, items in words.items()}
        self._read_any(list(rarest.values()))
        new = [text for text in rarest if f"={text}" not in self._read]
        self._read |= {f"={text}" for text in new}
        frequent = [text for text in new if counts[rarest[text]] > MAX_NAMES]
        self._take(self._text.equal([name for text in frequent for name in self._usual_spellings(text)]))
        unknown = (text for text in new if text in self._written and not counts[rarest[text]])
        splits = [
            f"{text[:at]} {text[at:]}" for text in unknown for at in range(1, len(text)) if len(text) > MIN_SQUEEZED
        ]
        self._take(self._text.matching_any([split for split in splits if is_searchable(split)]))

    def _usual_spellings(self, text: str) -> list[Literal]:
        texts = dict.fromkeys((text, text.title(), text.capitalize(), text.upper()))
        languages = dict.fromkeys((*self._languages, ""))
        return [Literal(spelled, language=language) for spelled in texts for language in languages]

    def _read_any(self, words: Sequence[str]) -> None:
        """Read the names with each of these words, among those that are in at most MAX_NAMES names.

        If all words are in more names, read the shortest names with the rarest word.
        """
        counts = self._count(words)
        known = sorted({word for word in words if counts[word]}, key=lambda word: (counts[word], word))
        rare = [word for word in known if counts[word] <= MAX_NAMES and word not in self._read]
        batches: list[list[str]] = [[]]
        for word in rare:
            if sum(counts[each] for each in batches[-1]) + counts[word] > MAX_NAMES or len(batches[-1]) == MAX_PHRASES:
                batches.append([])
            batches[-1].append(word)
        for batch in batches:
            self._take(self._text.matching_any([phrase for word in batch for phrase in self._phrases(word)]))
            self._read |= set(batch)
        if known and counts[known[0]] > MAX_NAMES and known[0] not in self._read:
            self._take(self._text.matching(self._phrases(known[0]), shortest=True))
            self._read.add(known[0])

    def _read_similar(self, words: Sequence[str]) -> None:
        """Read names with words that may be another form, or the correct spelling, of a word."""
        long = [word for word in words if len(word) >= MIN_PREFIX_BYTES and is_searchable(word)]
        known = self._count(long)
        phrases = [f"{word[: max(4, min(len(word) - 4, 6))]}*" for word in long]
        phrases += [word.removesuffix(ending) for word in long for ending in ("s", "es") if word.endswith(ending)]
        phrases += [edited for word in long if not known[word] for edited in misspelt(word)]
        self._take(self._text.matching_any(list(dict.fromkeys(phrases))))

    def _read_beginning(self, words: Sequence[str]) -> None:
        """Read names with all words except the last, and a word that begins with the last word."""
        *full, last = words
        groups = [phrases for word in full if (phrases := self._phrases(word))]
        phrases = self._phrases(last)
        wildcards = [f"{phrase}*" for phrase in phrases if len(phrase.split()[-1].encode()) >= MIN_PREFIX_BYTES]
        if wildcards:
            self._take(self._most_similar([*groups, [*phrases, *wildcards]], [*groups, phrases]))
        else:  # the beginning is too short for the server
            self._take(self._most_similar(groups or [phrases], [*groups, phrases]))

    def _most_similar(self, groups: list[list[str]], others: list[list[str]]) -> list[Name]:
        """Find names that match, the shortest if there are many; search `others` if the server rejects `groups`."""
        try:
            names = self._text.matching(*groups)
            return names if len(names) < MAX_NAMES else self._text.matching(*groups, shortest=True)
        except QueryRejected:
            return self._most_similar(others, []) if others else []

    def _phrases(self, word: str) -> list[str]:
        """Return the phrases that the server may have for a word, such as `o neill` for `oneill`."""
        found = self._written.get(word, (word,))
        if len(word) > MIN_APOSTROPHE and word.isalpha():
            # the normalised forms of Night's and O'Neill have no space, but the server finds two words
            found += (f"{word[:-1]} s",) if word[-1] == "s" else ()
            found += (f"{word[0]} {word[1:]}",) if word[0] in "dlo" else ()
        return [phrase for phrase in found if is_searchable(phrase)]

    def _count(self, words: Iterable[str]) -> dict[str, int]:
        """Return the number of names with each word, at most MAX_COUNT."""
        wanted = list(dict.fromkeys(words))
        new = [(word, phrases) for word in wanted if word not in self._counts and (phrases := self._phrases(word))]
        counts = self._text.counts([phrases for _, phrases in new]) if wanted else []
        self._counts |= {word: count for (word, _), count in zip(new, counts)}
        return {word: self._counts.get(word, 0) for word in wanted}

    def _take(self, names: Iterable[Name]) -> None:
        with self._lock:
            new = dict.fromkeys(name for name in names if name not in self._known)
            self._known.update(new)
            self.insert(new)
