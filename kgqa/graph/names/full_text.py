"""The full-text search of a Virtuoso server: finds names with given words.

Virtuoso splits literals into words, and ignores case and accents, by rules of its own. The search therefore returns
candidates: names that probably have the words. `ServerIndex` normalises and compares them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from string import ascii_lowercase

from kgqa.errors import InvalidTerm, QueryRejected
from kgqa.graph.names.reading import Name, NameReader
from kgqa.graph.store import count_value
from kgqa.model import Literal

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


class FullText(NameReader):
    """Searches the names of one graph. Thread-safe.

    No result comes from a cache: its key is the fingerprint of the data, while the index may follow the data later.
    """

    def counts(self, groups: Sequence[Sequence[str]], *, limit: int = MAX_COUNT) -> list[int]:
        """Count, for each group of phrases, the names with any of the phrases, up to `limit`."""
        found = []
        for start in range(0, len(groups), COUNT_BATCH):
            batch = groups[start : start + COUNT_BATCH]
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
        for start in range(0, len(phrases), MAX_PHRASES):
            batch = phrases[start : start + MAX_PHRASES]
            try:
                found += self.matching(batch)
            except QueryRejected:
                half = len(batch) // 2
                found += self.matching_any(batch[:half]) + self.matching_any(batch[half:]) if half else []
        return found

    def equal(self, names: Sequence[Literal]) -> list[Name]:
        """Find the names that equal one of these literals."""
        batches = (names[start : start + EQUAL_BATCH] for start in range(0, len(names), EQUAL_BATCH))
        rows = (row for batch in batches for row in self.select("names_equal", names=batch, limit=MAX_NAMES))
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
