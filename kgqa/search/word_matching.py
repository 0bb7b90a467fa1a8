"""The words of a text, and how likely a word of a text means a word of a name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import takewhile

from kgqa.text.words import normalise

_UNSPACED = "\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
UNSPACED = re.compile(f"[{_UNSPACED}]")
"""A character of Chinese, Japanese or Korean: names in these scripts stand in a text without spaces beside them."""
_LETTER = rf"[^\W_{_UNSPACED}]"
_WORD = re.compile(
    rf"(?P<bare>[{_UNSPACED}]|{_LETTER}+(?:['’](?!s(?!{_LETTER})){_LETTER}+)*)"
    rf"(?:['’]s(?!{_LETTER})|(?<=[sS])['’](?=\s))?"  # a possessive ending: Japan's, the Beatles' first album
)
# endings that turn a name into an adjective or a plural: Japanese, Egyptian, Iraqi, Australians
ENDINGS = ("s", "es", "n", "an", "ian", "ese", "ish", "i", "ns", "ans", "ians", "nian", "nians", "ic")
MIN_LETTERS = 4
"""Shorter words are not derived from others, nor misspelled."""
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
    found = _WORD.finditer(text)
    words = (Word(m.start(), m.end("bare"), m.end(), _key(m["bare"]), m["bare"].isupper()) for m in found)
    return [word for word in words if word.key]


def _key(word: str) -> str:
    return normalise(word).replace(" ", "")


@lru_cache(maxsize=100_000)
def word_keys(text: str) -> tuple[str, ...]:
    """Return the words of a name in their normalised form, for comparison."""
    return tuple(word.key for word in words_of(text))


@lru_cache(maxsize=100_000)
def derived_words(name: str) -> frozenset[str]:
    """Return a name with each of the `ENDINGS`, such as Jamaican for Jamaica; none of a short name."""
    stems = {name, name[:-1] if name[-1:] in tuple("aeoy") else name}
    return frozenset(stem + ending for stem in stems for ending in ENDINGS) if len(name) >= MIN_LETTERS else frozenset()


@lru_cache(maxsize=200_000)
def word_certainty(word: str, part: str) -> float:
    """Return how likely a word of a text means a word of a name, from 0 to 1.

    It is 1 for the same word, and less for a plural, a derived word and a misspelling.
    """
    if word[:1] != part[:1]:
        return 0.0
    if word == part:
        return 1.0
    short, long = sorted((word, part), key=len)
    if len(short) >= 3 and long in (f"{short}s", f"{short}es"):
        return 0.97
    if word[:3] == part[:3] and (word in derived_words(part) or part in derived_words(word)):
        return 0.8
    if _same_beginning(word, part):
        return 0.8
    return 0.7 if _is_misspelling(word, part) else 0.0


@lru_cache(maxsize=100_000)
def spelling_similarity(left: str, right: str) -> float:
    """Return the similarity of two words, 0 to 1: twice the number of common letters, in order, per letter of both."""
    return SequenceMatcher(None, left, right, autojunk=False).ratio()


def _is_misspelling(left: str, right: str) -> bool:
    if min(len(left), len(right)) < MIN_LETTERS or abs(len(left) - len(right)) > 2:
        return False
    return not re.search(r"\d", left + right) and spelling_similarity(left, right) >= SAME_SPELLING


def _same_beginning(left: str, right: str) -> bool:
    """Return whether two words have a common beginning with most of their letters, such as Hungarian and Hungary."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right)))
    return common >= 5 and common >= 0.75 * min(len(left), len(right)) and spelling_similarity(left, right) >= 0.7
