"""Places at which text may be cut: between sections, paragraphs, lines, sentences, words, or at least graphemes.

Sentences are found by the library sentencex, about 200,000 passages per second; a small splitter of our own replaces it
for text that the library cannot split.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import IntEnum
from itertools import chain


class Strength(IntEnum):
    """How good a place for a cut is."""

    GRAPHEME = 0
    WORD = 1
    LINE = 2
    """A line break in a paragraph, or the end of a heading."""
    SENTENCE = 3
    ITEM = 4
    """A list item, a table row or another element on lines of its own."""
    PARAGRAPH = 5
    SECTION = 6


Cut = tuple[int, Strength]
"""An offset in a text, and how good a place for a cut it is."""

_BLANK_LINES = re.compile(r"\s*?\n[^\S\n]*\r?\n\s*")
# Chinese and Japanese have no spaces between words, so long sentences are cut after commas
_WORD = re.compile(r"[^\s，、；：]+[\s，、；：]*|[，、；：]+\s*")
_SENTENCE = re.compile(r"[.!?…]+[\"'”’»)\]]*\s+|[。！？｡؟۔।॥]+[\"'”’」』»)）\]]*\s*")
# sentencex counts some of these characters wrongly, and stops with an error
_SPACES = str.maketrans(dict.fromkeys("\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000", " ")) | dict.fromkeys(
    range(0x2000, 0x200B), " "
)
_ZWJ = "\u200d"


def sentence_cuts(text: str, begin: int, end: int, language: str = "en") -> Iterator[Cut]:
    """Yield the cuts between the paragraphs and sentences in `text[begin:end]`, in order; the ends are no cuts."""
    at = begin
    while at < end:
        blank = _BLANK_LINES.search(text, at, end)
        stop = blank.end() if blank else end
        for length in _sentence_lengths(text[at:stop], language)[:-1]:
            at += length
            yield at, Strength.SENTENCE
        at = stop
        if at < end:
            yield at, Strength.PARAGRAPH


def _sentence_lengths(paragraph: str, language: str) -> list[int]:
    from sentencex import segment

    try:
        lengths: list[int] = [
            len(sentence)
            for sentence in segment(language, paragraph if paragraph.isascii() else paragraph.translate(_SPACES))
        ]
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit, MemoryError)):
            raise
        lengths = []  # the library's Rust code panicked, which is not an Exception
    if sum(lengths) == len(paragraph):
        return lengths
    ends: list[int] = [*(found.end() for found in _SENTENCE.finditer(paragraph)), len(paragraph)]
    return [end - begin for begin, end in zip([0, *ends], ends) if end > begin]


def word_cuts(text: str, begin: int, end: int) -> Iterator[Cut]:
    """Yield the cuts between the words of `text[begin:end]`; between lines where a line ends."""
    for found in _WORD.finditer(text, begin, end):
        if found.end() < end:
            yield found.end(), Strength.LINE if "\n" in found[0] else Strength.WORD


def grapheme_cut(text: str, begin: int, end: int, at: int) -> int:
    """Return the cut nearest to `at`, at most `at` if possible, that keeps characters with their accents and joiners.

    The result is greater than `begin` and less than `end`; if the whole range is one grapheme, it is `at`.
    """
    for cut in chain(range(at, begin, -1), range(at + 1, end)):
        if is_grapheme_start(text, cut):
            return cut
    return at


def is_grapheme_start(text: str, at: int) -> bool:
    """Return whether a grapheme starts at an offset: not at a combining mark, in an emoji sequence, or in a flag."""
    character, before = text[at], text[at - 1] if at else ""
    if not at or (character < "\u0300" and before < "\u0300"):
        return not (character == "\n" and before == "\r")
    if unicodedata.category(character) in ("Mn", "Mc", "Me") or character == _ZWJ or "🏻" <= character <= "🏿":
        return False
    if "\U000e0020" <= character <= "\U000e007f":  # tags, which spell the name of a flag
        return False
    if before == _ZWJ:
        return unicodedata.category(character) != "So"
    if _is_flag_letter(character):
        first = at
        while first and _is_flag_letter(text[first - 1]):
            first -= 1
        return (at - first) % 2 == 0
    # vowels and final consonants of a Korean syllable written as single letters
    return not ("\u1160" <= character <= "\u11ff" and "\u1100" <= before <= "\u11ff")


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
