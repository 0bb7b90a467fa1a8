"""An index of names on a Virtuoso server: the server's own full-text index of the names.

The server returns candidates. This module compares and ranks them as `SqliteNames` does, except that:

- for words in more than MAX_NAMES names, only a part of the names is considered, the shortest or those that equal a
  text in a usual spelling;
- initials are not known: `uk` finds United Kingdom only if `UK` is one of its names.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from itertools import chain
from string import ascii_lowercase

from kgqa.errors import QueryRejected
from kgqa.graph.names.full_text import (
    MAX_NAMES,
    MIN_PREFIX_BYTES,
    FoundName,
    FullText,
    Word,
    phrases_of,
    written_phrase,
)
from kgqa.graph.names.interface import MAX_NAMESAKES, MAX_SEARCH_CHARS, MAX_SEARCH_WORDS, LooseMatch, NameMatch
from kgqa.graph.names.name_reader import EntityNameReader, Limit, spellings_of
from kgqa.graph.names.spellings import MIN_SQUEEZED
from kgqa.model import Entity, Literal
from kgqa.text.words import normalise

MAX_SCANNED_NAMES = 500_000
"""Graphs with more names are not scanned for a prefix that is too short for the full-text index."""
WORDS_PER_NAME = 2.3
MIN_APOSTROPHE = 3
K1 = 1.2
B = 0.75


class ServerNames:
    """An index of names (see `Names`) in the full-text index of a server. Thread-safe.

    Args:
        count: the number of names.
        languages: language tags of the names that are found for texts of very frequent words.
    """

    longest = MAX_SEARCH_WORDS

    def __init__(self, reader: EntityNameReader, *, count: int, languages: Sequence[str]) -> None:
        self.count = count
        self._reader = reader
        self._text = FullText(reader)
        self._languages = tuple(languages)
        self._written: dict[str, Word] = {}

    def within(self, limit: Limit) -> ServerNames:
        bound = copy.copy(self)
        bound._reader = self._reader.within(limit)
        bound._text = self._text.with_reader(bound._reader)
        return bound

    def for_text(self, text: str) -> ServerNames:
        bound = copy.copy(self)
        bound._written = {}
        for token in text.split():
            phrase, key = written_phrase(token), normalise(token)
            for word in key.split():
                bound._written.setdefault(word, (word,) if phrase in ("", key) else (word, phrase))
        return bound

    @property
    def labelled(self) -> int:
        return self._reader.labelled

    def close(self) -> None:
        """Do nothing: no files are open."""

    def exact(self, texts: Sequence[str]) -> dict[str, list[NameMatch]]:
        found: dict[str, list[NameMatch]] = {}
        for text, names in self._candidates(texts).items():
            words = tuple(text.split())
            same = [_match(name, exact=True) for name in names if name.words == words]
            if same:
                found[text] = _first_of_each(same)
        return found

    def loose(self, texts: Sequence[str]) -> dict[str, list[LooseMatch]]:
        found: dict[str, list[LooseMatch]] = {}
        for text, names in self._candidates(texts).items():
            words = tuple(text.split())
            kinds = {
                _match(name): how
                for name in names
                if (
                    name.words[: len(words)] == words
                    or name.words[-len(words) :] == words
                    or "".join(name.words) == text
                )
                and (how := spellings_of(name.name).get(text))
            }
            if kinds:
                found[text] = [LooseMatch(match, kinds[match]) for match in _first_of_each(kinds)]
        return found

    def initials_with_prefix(self, prefix: str, *, limit: int = 50) -> list[NameMatch]:
        return []

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        wanted = {self._word(word): word for word in words[:500]}
        return {wanted[word]: names for word, names in self._text.counts(wanted).items() if names}

    def similar_words(self, words: Sequence[str]) -> dict[str, dict[str, int]]:
        long = [word for word in words if len(word) >= MIN_PREFIX_BYTES and phrases_of((word,))]
        known = self.frequencies(long)
        phrases = [f"{word[: max(4, min(len(word) - 4, 6))]}*" for word in long]
        phrases += [word.removesuffix(ending) for word in long for ending in ("s", "es") if word.endswith(ending)]
        phrases += [edited for word in long if word not in known for edited in _edits(word)]
        names: dict[str, int] = {}
        for name in self._text.matching_any(list(dict.fromkeys(phrases))):
            for word in set(name.words):
                names[word] = names.get(word, 0) + 1
        by_letter: dict[str, dict[str, int]] = {}
        for word in sorted(names, key=lambda word: (-names[word], word)):
            by_letter.setdefault(word[0], {})[word] = names[word]
        return {word: by_letter.get(word[0], {}) for word in long}

    def containing(self, words: Sequence[str], *, limit: int = 50) -> list[NameMatch]:
        return [_match(name) for name in self._ranked(self._with_any(words[:MAX_SEARCH_WORDS]), words)[:limit]]

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        return self._reader.names_of(entities)

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        text = text[:MAX_SEARCH_CHARS]
        words = normalise(text).split()[:MAX_SEARCH_WORDS]
        if not words:
            return []
        bound = self.for_text(text)
        names = bound._with_all(words)
        ranked = bound._ranked(names, words[:-1], words[-1]) if names else bound._ranked(bound._with_any(words), words)
        whole = tuple(words)
        best: dict[str, NameMatch] = {}
        for name in ranked:
            best.setdefault(name.entity, _match(name, exact=name.words == whole))
        return list(best.values())[:limit]

    # --- candidates

    def _word(self, word: str) -> Word:
        found = self._written.get(word, (word,))
        if len(word) > MIN_APOSTROPHE and word.isalpha():
            # the normalised forms of Night's and O'Neill have no space, but the server finds two words
            found += (f"{word[:-1]} s",) if word[-1] == "s" else ()
            found += (f"{word[0]} {word[1:]}",) if word[0] in "dlo" else ()
        return found

    def _candidates(self, texts: Sequence[str]) -> dict[str, list[FoundName]]:
        """Find, for each text, the names with the text's rarest word."""
        # a text with other spaces equals no normalised name
        words = {text: [self._word(word) for word in text.split()] for text in texts if text == " ".join(text.split())}
        names = self._text.names({items[0] for items in words.values() if len(items) == 1})
        counts = self._text.counts({word for items in words.values() for word in items})
        rarest = {text: min(items, key=lambda word: counts[word]) for text, items in words.items() if items}
        names |= self._text.names(rarest.values())
        found = {text: names[word] for text, word in rarest.items()}
        frequent = [text for text, word in rarest.items() if counts[word] > MAX_NAMES]
        equal = self._text.equal([name for text in frequent for name in self._usual_spellings(text)])
        found |= {text: found[text] + equal for text in frequent}
        # names with other spaces
        unknown = {text for text, word in rarest.items() if word[0] == text and not counts[word]}
        joined = [text for text in unknown if text in self._written and len(text) > MIN_SQUEEZED]
        splits = [f"{text[:at]} {text[at:]}" for text in joined for at in range(1, len(text))]
        for name in (*chain.from_iterable(names.values()), *self._text.matching_any(splits)):
            if len(name.words) > 1 and (text := "".join(name.words)) in unknown:
                found[text] = [*found[text], name]
        return found

    def _usual_spellings(self, text: str) -> list[Literal]:
        texts = dict.fromkeys((text, text.title(), text.capitalize(), text.upper()))
        languages = dict.fromkeys((*self._languages, ""))
        return [Literal(spelled, language=language) for spelled in texts for language in languages]

    def _with_any(self, words: Sequence[str]) -> list[FoundName]:
        """Find the names with any of these words, among those words that are not very frequent."""
        wanted = [self._word(word) for word in words]
        counts = self._text.counts(wanted)
        if any(counts.values()) and not any(0 < count <= MAX_NAMES for count in counts.values()):
            rarest = min((word for word in wanted if counts[word]), key=lambda word: counts[word])
            return self._text.matching(phrases_of(rarest), shortest=True)
        return [name for names in self._text.names(wanted).values() for name in names]

    def _with_all(self, words: Sequence[str]) -> list[FoundName]:
        """Find the names with all words except the last, and a word that begins with the last word."""
        *full, last = words
        groups = [phrases for word in full if (phrases := phrases_of(self._word(word)))]
        phrases = phrases_of(self._word(last))
        wildcards = [f"{phrase}*" for phrase in phrases if len(phrase.split()[-1].encode()) >= MIN_PREFIX_BYTES]
        if wildcards:
            names = self._most_similar([*groups, [*phrases, *wildcards]], [*groups, phrases])
        elif groups:
            names = self._most_similar(groups, [*groups, phrases])
        elif self.count <= MAX_SCANNED_NAMES:
            names = self._text.scanned(last)
        else:
            names = self._most_similar([phrases], [])
        return [
            name for name in names if set(full) <= set(name.words) and any(word.startswith(last) for word in name.words)
        ]

    def _most_similar(self, groups: list[list[str]], others: list[list[str]]) -> list[FoundName]:
        """Find names that match, the shortest if there are many; search `others` if the server rejects `groups`."""
        try:
            names = self._text.matching(*groups)
            return names if len(names) < MAX_NAMES else self._text.matching(*groups, shortest=True)
        except QueryRejected:
            return self._most_similar(others, []) if others else []

    def _ranked(self, names: Iterable[FoundName], words: Sequence[str], prefix: str = "") -> list[FoundName]:
        """Sort names: those that equal the text first, then by BM25 score, labels before aliases, and by IRI."""
        found = list(dict.fromkeys(names))
        counts = self._text.counts([self._word(word) for word in words])
        weights = [self._weight(counts[self._word(word)]) for word in words]
        whole = (*words, prefix) if prefix else ()
        last = self._weight(self._prefix_count(prefix, len(found))) if prefix and words else 1.0

        def key(name: FoundName) -> tuple[bool, float, bool, str, str]:
            length = K1 * (1 - B + B * len(name.words) / WORDS_PER_NAME)
            terms = [(weight, name.words.count(word)) for weight, word in zip(weights, words, strict=True)]
            if prefix:
                terms.append((last, sum(word.startswith(prefix) for word in name.words)))
            score = sum(weight * count * (K1 + 1) / (count + length) for weight, count in terms)
            return name.words != whole, -score, name.kind == "alias", name.entity, name.name

        return sorted(found, key=key)

    def _prefix_count(self, prefix: str, least: int) -> int:
        """Return the number of names with a word with this prefix; roughly, if the server cannot count them."""
        whole = self._word(prefix)
        rough = max(least, self.count // int(10 ** min(len(prefix), 9)), self._text.counts([whole])[whole])
        wildcard: Word = (f"{prefix}*",)
        can_count = len(prefix.encode()) >= MIN_PREFIX_BYTES and phrases_of((prefix,))
        return max(rough, self._text.counts([wildcard])[wildcard]) if can_count else rough

    def _weight(self, count: int) -> float:
        return max(math.log((max(self.count, count) - count + 0.5) / (count + 0.5)), 1e-6)


def _match(name: FoundName, *, exact: bool = False) -> NameMatch:
    return NameMatch(Entity(name.entity), name.name, name.kind, exact)


def _edits(word: str) -> set[str]:
    """Return the words with one letter more, less, exchanged with its neighbour or, for Latin letters, different."""
    if any(char.isdigit() for char in word):
        return set()
    letters = ascii_lowercase if word.isascii() else ""
    found = {word[:at] + word[at + 1 :] for at in range(1, len(word))}
    found |= {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(1, len(word) - 1)}
    for letter in letters:
        found |= {word[:at] + letter + word[at:] for at in range(1, len(word) + 1)}
        found |= {word[:at] + letter + word[at + 1 :] for at in range(1, len(word))}
    return found - {word}


def _first_of_each(matches: Iterable[NameMatch]) -> list[NameMatch]:
    """Return the best match of each entity: labels before aliases, then by IRI and by name; at most MAX_NAMESAKES."""
    found: dict[Entity, NameMatch] = {}
    for match in sorted(matches, key=lambda match: (match.kind == "alias", match.entity.iri, match.name)):
        found.setdefault(match.entity, match)
    return list(found.values())[:MAX_NAMESAKES]
