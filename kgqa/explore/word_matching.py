"""Where a name stands in a text: words compared one by one, whatever their case, accents, endings and small mistakes.

Masking looks for names it knows, linking for any name of the graph; both compare words here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from kgqa.words import normalise

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s?$")
# what makes a name an adjective or a plural: Japanese, Egyptian, Iraqi, Australians
ENDINGS = ("s", "es", "n", "an", "ian", "ese", "ish", "i", "ns", "ans", "ians", "nian", "nians", "ic")
MIN_DERIVED = 4
MIN_MISSPELT = 4
SAME_SPELLING = 0.8


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text: its characters `start` to `end` without a possessive ending, which reaches to `tail`.

    `key` is what it is compared by; `capitals`: it is written in them.
    """

    start: int
    end: int
    tail: int
    key: str
    capitals: bool = False


def words_of(text: str) -> list[Word]:
    """The words of a text with their places."""
    found = []
    for match in _WORD.finditer(text):
        bare = _POSSESSIVE.sub("", match.group())
        key = normalise(bare).replace(" ", "")
        if key:
            tail = match.end()
            if tail < len(text) and text[tail] in "'’" and bare[-1] in "sS" and text[tail + 1 : tail + 2].isspace():
                tail += 1  # the Beatles' first album
            found.append(Word(match.start(), match.start() + len(bare), tail, key, bare.isupper()))
    return found


def word_keys(text: str) -> tuple[str, ...]:
    """The words of a name as they are compared."""
    return tuple(word.key for word in words_of(text))


def same_word(left: str, right: str) -> bool:
    """Whether two words are one but for a plural ending."""
    if left == right:
        return True
    short, long = sorted((left, right), key=len)
    return len(short) >= 3 and long in (f"{short}s", f"{short}es")


def is_derived(word: str, name: str) -> bool:
    """Whether a word is made from a name by an ending: Jamaican, Brazilians, Hungarian."""
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
    """How alike two words are in spelling, 0 to 1: twice the letters in common, in order, over all letters."""
    return SequenceMatcher(None, left, right, autojunk=False).ratio()


def is_misspelling(left: str, right: str) -> bool:
    """Whether two words of some length differ by a letter or two, the first one the same; digits never differ."""
    if left[:1] != right[:1] or min(len(left), len(right)) < MIN_MISSPELT or abs(len(left) - len(right)) > 2:
        return False
    if any(char.isdigit() for char in left + right):
        return False
    return spelling_similarity(left, right) >= SAME_SPELLING


def windows_of(keys: Sequence[str], name: Sequence[str], same: Callable[[str, str], bool]) -> list[tuple[int, int]]:
    """Where the words of a name follow each other in a text, as (start, end) word indices, not overlapping."""
    found = []
    start = 0
    while name and start + len(name) <= len(keys):
        if all(same(keys[start + offset], part) for offset, part in enumerate(name)):
            found.append((start, start + len(name)))
            start += len(name)
        else:
            start += 1
    return found


def squeezed_windows(keys: Sequence[str], name: Sequence[str]) -> list[tuple[int, int]]:
    """Where a text has the letters of a name with other gaps between words: superbowl, se hinton."""
    wanted = "".join(name)
    if len(wanted) < 5:
        return []
    found = []
    start = 0
    while start < len(keys):
        end, letters = start, ""
        while end < len(keys) and len(letters) < len(wanted) and wanted.startswith(letters + keys[end]):
            letters += keys[end]
            end += 1
        if letters == wanted:
            found.append((start, end))
            start = end
        else:
            start += 1
    return found


def shortened_windows(keys: Sequence[str], name: Sequence[str]) -> list[tuple[int, int]]:
    """Where a text has the first and the last word of a name, and of those between them some or none, in order:
    James Polk for James Knox Polk.
    """
    found = []
    start = 0
    while len(name) > 2 and start < len(keys):
        end = _shortened(keys, name, start) if same_word(keys[start], name[0]) else 0
        if end:
            found.append((start, end))
        start = end or start + 1
    return found


def initials_windows(words: Sequence[Word], name: Sequence[str], ignored: Container[str]) -> list[tuple[int, int]]:
    """Where a text has the initials of a name: UK, usa. The first of them are enough in capitals: US."""
    initials = "".join(part[0] for part in name if part not in ignored)
    if len(initials) < 2:
        return []
    return [
        (place, place + 1)
        for place, word in enumerate(words)
        if len(word.key) > 1
        and (word.capitals or word.key not in ignored)
        and (word.key == initials or (word.capitals and initials.startswith(word.key)))
    ]


def _shortened(keys: Sequence[str], name: Sequence[str], start: int) -> int:
    """The end of a shortened name that begins here, 0 where none does."""
    at, place = start + 1, 1
    while at < len(keys):
        if same_word(keys[at], name[-1]):
            return at + 1
        # an initial stands for a word: James K Polk
        while place < len(name) - 1 and not (same_word(keys[at], name[place]) or keys[at] == name[place][0]):
            place += 1
        if place >= len(name) - 1:
            return 0
        at, place = at + 1, place + 1
    return 0
