"""Where names stand in a text.

Names and texts are compared word by word, without regard to case, accents and punctuation: "Person-centered" is found
in "Person - centered". Scripts without blanks between words are compared letter by letter.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache

# scripts that attach words to each other: Thai to Myanmar, Khmer, Chinese, Japanese, Korean
_ATTACHED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
# accents of Latin, Greek, Cyrillic, Hebrew and Arabic letters, which many writers leave out
_OPTIONAL_MARKS = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]"
)
_SYMBOLS = "+#&%$€£¥"


class NameFinder:
    """Finds names in one text. Positions count code points in this text."""

    def __init__(self, text: str) -> None:
        found = [(word.start(), word.end(), folded) for word in words(text) if (folded := _folded(word[0]))]
        self._begins = [begin for begin, _, _ in found]
        self._ends = [end for _, end, _ in found]
        self._joined = f" {' '.join(folded for _, _, folded in found)} "
        self._at: list[int] = []  # where each word begins in the joined words
        position = 0
        for _, _, folded in found:
            self._at.append(position)
            position += len(folded) + 1

    def find(self, name: str, begin: int = 0) -> tuple[int, int] | None:
        """Return the first place of a name from `begin` on, as `(begin, end)`; None if there is none."""
        return next((place for place in self.places(name) if place[0] >= begin), None)

    def places(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield all places of a name, in order. A name without letters and digits stands nowhere."""
        wanted = folded_name(name)
        if not wanted:
            return
        length, wanted = wanted.count(" ") + 1, f" {wanted} "
        start = self._joined.find(wanted)
        while start >= 0:
            word = bisect_left(self._at, start)
            yield self._begins[word], self._ends[word + length - 1]
            start = self._joined.find(wanted, start + 1)

    def __contains__(self, name: str) -> bool:
        return next(self.places(name), None) is not None


def words(text: str) -> Iterator[re.Match[str]]:
    """Yield the words and meaningful symbols of a text as matches."""
    return _word_pattern().finditer(text)


@lru_cache(1 << 16)
def folded_name(name: str) -> str:
    """Return the words of a name in the form in which they are compared, joined by blanks; "" if it has no words."""
    return " ".join(folded for word in words(name) if (folded := _folded(word[0])))


@lru_cache(1 << 16)
def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()
    plain = unicodedata.normalize("NFKD", word).casefold()
    return "".join(unicodedata.normalize("NFC", _OPTIONAL_MARKS.sub("", plain)).split())


@lru_cache(1)
def _word_pattern() -> re.Pattern[str]:
    """Return the pattern of a word: a letter of an attached script, or letters, digits and the marks on them."""
    marks = [chr(code) for code in range(sys.maxunicode) if unicodedata.category(chr(code)) in ("Mn", "Mc")]
    outside = re.compile(f"[{_ATTACHED}]")
    inner = "".join(mark for mark in marks if not outside.match(mark))
    return re.compile(f"[{_ATTACHED}]|(?:[^\\W_{_ATTACHED}]|[{re.escape(inner)}])+|[{re.escape(_SYMBOLS)}]")
