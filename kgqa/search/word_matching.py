"""Comparison of the words of a name with the words of a text, regardless of case, accents, endings and small mistakes.

Both masking and linking compare words with these functions. Masking searches for the names of the question's topics;
linking searches for all names in the graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from kgqa.text.words import normalise

_UNSPACED = "\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
UNSPACED = re.compile(f"[{_UNSPACED}]")
"""A character of Chinese, Japanese or Korean: names in these scripts stand in a text without spaces beside them."""
_LETTER = rf"[^\W_{_UNSPACED}]"
_WORD = re.compile(rf"[{_UNSPACED}]|{_LETTER}+(?:['’]{_LETTER}+)*")
_POSSESSIVE = re.compile(r"['’]s?$")
# endings that turn a name into an adjective or a plural: Japanese, Egyptian, Iraqi, Australians
ENDINGS = ("s", "es", "n", "an", "ian", "ese", "ish", "i", "ns", "ans", "ians", "nian", "nians", "ic")
MIN_DERIVED = 4
MIN_MISSPELT = 4
SAME_SPELLING = 0.8


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text, or a character of a script without spaces between words.

    Attributes:
        start: Index of the first character in the text.
        end: Index after the last character, without a possessive ending.
        tail: Index after the last character, including a possessive ending.
        key: The normalised form in which words are compared.
        capitals: Whether the word is written in capitals.
    """

    start: int
    end: int
    tail: int
    key: str
    capitals: bool = False


def words_of(text: str) -> list[Word]:
    """Return the words of a text with their positions."""
    found = []
    for match in _WORD.finditer(text):
        bare = _POSSESSIVE.sub("", match.group())
        key = normalise(bare).replace(" ", "")
        if key:
            tail = match.end()
            if tail < len(text) and text[tail] in "'’" and bare[-1] in "sS" and text[tail + 1 : tail + 2].isspace():
                tail += 1  # "the Beatles' first album"
            found.append(Word(match.start(), match.start() + len(bare), tail, key, bare.isupper()))
    return found


@lru_cache(maxsize=100_000)
def word_keys(text: str) -> tuple[str, ...]:
    """Return the words of a name in their normalised form, for comparison."""
    return tuple(word.key for word in words_of(text))


def same_word(left: str, right: str) -> bool:
    """Return whether two words are equal except for a plural ending."""
    short, long = sorted((left, right), key=len)
    return left == right or (len(short) >= 3 and long in (f"{short}s", f"{short}es"))


def is_derived(word: str, name: str) -> bool:
    """Return whether a word is a name plus an ending, such as Jamaican from Jamaica."""
    if len(name) < MIN_DERIVED or word[:3] != name[:3]:
        return False
    return any(
        word == stem + ending
        for stem in {name, name[:-1] if name[-1] in "aeoy" else name}
        for ending in ENDINGS
        if len(stem) >= MIN_DERIVED - 1
    )


@lru_cache(maxsize=100_000)
def spelling_similarity(left: str, right: str) -> float:
    """Return the similarity of two words, 0 to 1: twice the number of common letters, in order, per letter of both."""
    return SequenceMatcher(None, left, right, autojunk=False).ratio()


def is_misspelling(left: str, right: str) -> bool:
    """Return whether two words of four or more letters are similar, have the same first letter, and have no digits."""
    if left[:1] != right[:1] or min(len(left), len(right)) < MIN_MISSPELT or abs(len(left) - len(right)) > 2:
        return False
    if any(char.isdigit() for char in left + right):
        return False
    return spelling_similarity(left, right) >= SAME_SPELLING


def _windows(count: int, end_at: Callable[[int], int]) -> list[tuple[int, int]]:
    """Return windows of words without overlap; `end_at` maps a start to an end, or to 0 if no window starts there."""
    found = []
    start = 0
    while start < count:
        end = end_at(start)
        if end:
            found.append((start, end))
        start = end or start + 1
    return found


def windows_of(keys: Sequence[str], name: Sequence[str], same: Callable[[str, str], bool]) -> list[tuple[int, int]]:
    """Return where the words of a name occur consecutively in a text, as (start, end) word indices without overlap."""
    size = len(name)
    starts = len(keys) - size + 1 if size else 0
    return _windows(starts, lambda start: start + size if all(map(same, keys[start : start + size], name)) else 0)


def squeezed_windows(keys: Sequence[str], name: Sequence[str], *, least: int = 5) -> list[tuple[int, int]]:
    """Return where a name occurs in a text with different spaces (superbowl), as (start, end) word indices.

    Names of fewer letters than `least` are not searched for.
    """
    wanted = "".join(name)

    def end_at(start: int) -> int:
        end, letters = start, ""
        while end < len(keys) and len(letters) < len(wanted) and wanted.startswith(letters + keys[end]):
            letters += keys[end]
            end += 1
        return end if letters == wanted else 0

    return _windows(len(keys), end_at) if len(wanted) >= least else []


def shortened_windows(keys: Sequence[str], name: Sequence[str]) -> list[tuple[int, int]]:
    """Return where a name without some of its middle words occurs in a text, as (start, end) word indices.

    For example, the text James Polk matches the name James Knox Polk.
    """
    return _windows(len(keys) if len(name) > 2 else 0, lambda start: _shortened(keys, name, start))


def initials_windows(words: Sequence[Word], name: Sequence[str], ignored: Container[str]) -> list[tuple[int, int]]:
    """Return where the initials of a name, such as UK, occur in a text, as (start, end) word indices.

    If the word is in capitals, the first of the initials are enough: US for the United States of America.
    """
    initials = "".join(part[0] for part in name if part not in ignored)
    if len(initials) < 2:
        return []
    return [
        (index, index + 1)
        for index, word in enumerate(words)
        if len(word.key) > 1
        and (word.capitals or word.key not in ignored)
        and (word.key == initials or (word.capitals and initials.startswith(word.key)))
    ]


def _shortened(keys: Sequence[str], name: Sequence[str], start: int) -> int:
    """Return the index after a shortened name that begins at `start`; 0 if there is no such name."""
    at, part = (start + 1, 1) if same_word(keys[start], name[0]) else (len(keys), 1)
    while at < len(keys):
        if same_word(keys[at], name[-1]):
            return at + 1
        # an initial may replace a word, as in James K Polk
        while part < len(name) - 1 and not (same_word(keys[at], name[part]) or keys[at] == name[part][0]):
            part += 1
        if part >= len(name) - 1:
            return 0
        at, part = at + 1, part + 1
    return 0
