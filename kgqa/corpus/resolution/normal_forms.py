"""The forms in which names are compared: without case, accents, punctuation and a leading "the"."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from kgqa.corpus.items import normal_name

_LETTERS = str.maketrans({"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ħ": "h"})
_ARABIC_MARKS = re.compile("[ًٌٍَُِّْٰـ]")
_HEBREW_MARKS = re.compile("[֑-ׇ]")
_KEPT = frozenset("#%@+")  # C++, C#, 10%
_APOSTROPHES = frozenset("'’‘ʼ`´")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_INITIALS = re.compile(r"\b(?:[^\W\d_] )+[^\W\d_]\b")
_MIN_FOLDED = 4


@lru_cache(1 << 17)
def comparison_form(name: str) -> str:
    """Return a name without case, accents, punctuation and spaces between initials.

    Accents are removed from Latin and Greek letters in names of at least four letters, vowel signs from Arabic and
    Hebrew. Numbers keep their sign, point and unit: `-5`, `1.5` and `10%` differ from `5`, `15` and `10`.
    """
    text = _THOUSANDS.sub("", normal_name(name))
    if not text.isascii():
        text = _without_marks(text)
    text = text.replace("&", " and ")
    found = []
    for position, char in enumerate(text):
        before, after = text[position - 1 : position], text[position + 1 : position + 2]
        if char.isalnum() or char in _KEPT or unicodedata.category(char)[0] in "SM":
            found.append(char)
        elif char in _APOSTROPHES:
            continue
        elif (char in ".:" and before.isdigit() and after.isdigit()) or (
            char in "-−." and after.isdigit() and not before.strip()
        ):
            found.append("-" if char == "−" else char)
        else:
            found.append(" ")
    plain = " ".join("".join(found).split())
    return _INITIALS.sub(lambda match: match[0].replace(" ", ""), plain) or text


def without_article(form: str) -> str:
    """Return a comparison form without a leading "the"."""
    return form.removeprefix("the ")


def _without_marks(text: str) -> str:
    text = _HEBREW_MARKS.sub("", _ARABIC_MARKS.sub("", text))
    if sum(char.isalpha() for char in text) < _MIN_FOLDED:
        return text
    plain = []
    for char in text.translate(_LETTERS):
        parts = unicodedata.normalize("NFD", char)
        folds = len(parts) > 1 and unicodedata.name(parts[0], "").startswith(("LATIN", "GREEK"))
        plain.append(parts[0] if folds else char)
    return "".join(plain)
