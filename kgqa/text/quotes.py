"""Finds quotes in texts and verifies them.

Quotes and texts are compared without blanks and without characters that prompts do not show (control characters, soft
hyphens), and in Unicode's canonical form. Letters are compared exactly.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from kgqa.model import Named, QuoteEvidence
from kgqa.text.words import INVISIBLE

# two letters or digits of one word; scripts of East and Southeast Asia attach words to each other
_SPACED = re.compile(
    r"[^\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]{2}"
)
# a number with thousands or decimals, and before its end the part without decimals that are zero
_NUMBER = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+(?=\.\d))(?:\.\d*[1-9]\d*)?()(?:\.0+)?(?!\.?\d)")


def find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """Return where a quote first stands in a text, as `(begin, end)` in code points; None if it does not.

    A match does not begin or end within a letter and its accents.
    """
    return next(_matches(text, quote), None)


def is_quote(text: str, begin: int, end: int, quote: str) -> bool:
    """Return whether a quote is `text[begin:end]`. An empty quote and positions outside the text are never right."""
    wanted = _folded(quote)[0]
    return bool(wanted) and 0 <= begin < end <= len(text) and _folded(text[begin:end])[0] == wanted


def stand_in_quotes(answers: Iterable[Named], quotes: Iterable[QuoteEvidence]) -> bool:
    """Return whether there are answers and the name of each one stands in a verified quote (see `find_name`)."""
    texts = [quote.words for quote in quotes if quote.verified]
    names = [answer.name for answer in answers]
    return bool(names) and all(any(find_name(text, name) for text in texts) for name in names)


def find_name(text: str, name: str, begin: int = 0, end: int | None = None) -> tuple[int, int] | None:
    """Return where a name first stands in a part of a text as whole words and numbers, regardless of case.

    Scripts without spaces between words have no whole words.

    Args:
        text: The text.
        name: The name.
        begin, end: The part of the text that is searched; a name that reaches out of it is not found.
    """
    end = len(text) if end is None else end
    matches = _matches(text, name, ignore_case=True)
    return next((each for each in matches if begin <= each[0] and each[1] <= end and _is_whole(text, *each)), None)


def _matches(text: str, quote: str, *, ignore_case: bool = False) -> Iterator[tuple[int, int]]:
    letters, places = _folded(text, ignore_case)
    wanted = _folded(quote, ignore_case)[0]
    start = letters.find(wanted) if wanted else -1
    while start >= 0:
        stop = start + len(wanted)
        if _is_border(letters, places, start) and _is_border(letters, places, stop):
            yield min(places[start:stop]), max(places[start:stop]) + 1
        start = letters.find(wanted, start + 1)


def _is_whole(text: str, begin: int, end: int) -> bool:
    """Return whether no word or number of the text is cut at `begin` or `end`."""
    pairs = [text[at - 1 : at + 1] for at in (begin, end) if 0 < at < len(text)]
    return not any(_SPACED.fullmatch(pair) for pair in pairs) and not any(
        at != number.start(1) and number.start() < at < number.end()
        for number in _NUMBER.finditer(text)
        for at in (begin, end)
    )


@lru_cache(256)
def _folded(text: str, ignore_case: bool = False) -> tuple[str, tuple[int, ...]]:
    """Return a text in the form in which it is compared, and for each of its characters the index in the text."""
    found: list[tuple[str, int, int]] = []
    for index, char in enumerate(text):
        if char.isspace() or unicodedata.category(char) in INVISIBLE:
            continue
        for part in unicodedata.normalize("NFD", char.casefold() if ignore_case else char):
            order = unicodedata.combining(part)
            at = len(found)
            while order and at and found[at - 1][1] > order:  # the canonical order of the accents of a letter
                at -= 1
            found.insert(at, (part, order, index))
    return "".join(part for part, *_ in found), tuple(index for *_, index in found)


def _is_border(letters: str, places: tuple[int, ...], at: int) -> bool:
    """Return whether a match may begin or end before the character `at`."""
    if at in (0, len(letters)):
        return True
    return places[at - 1] != places[at] and not unicodedata.combining(letters[at])
