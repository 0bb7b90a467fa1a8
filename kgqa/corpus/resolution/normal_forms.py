"""The forms in which names are compared: without case, accents, punctuation and differences in writing numbers."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from kgqa.corpus.items import normal_name
from kgqa.corpus.resolution.word_lists import word_list, word_rows, word_sequence

_LETTERS = str.maketrans({"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ħ": "h"})
_DOT_ABOVE = "\u0307"  # what is left of a Turkish capital I with dot, without case
_ARABIC_MARKS = re.compile("[\u0640\u064b-\u0652\u0670]")
_HEBREW_MARKS = re.compile("[\u0591-\u05bd\u05bf-\u05c7]")
_KEPT = frozenset("#%@+")  # C++, C#, 10%
_APOSTROPHES = frozenset("'’‘ʼ`´")
_PLAIN = re.compile("[a-z0-9 ]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_INITIALS = re.compile(r"(?<!\S)(?:[^\W\d_] )+[^\W\d_](?!\S)")
_MIN_FOLDED = 4
_EXPANSIONS = {
    "us": "united states",
    "usa": "united states",
    "uk": "united kingdom",
    "un": "united nations",
    "eu": "european union",
    "ussr": "soviet union",
}
_BETWEEN = r"\.?\s?"
_AS_ACRONYM = {key: re.compile(rf"(?<!\w){_BETWEEN.join(key.upper())}(?!\w)") for key in _EXPANSIONS}  # not "us"
_DIGITS = {word: str(number) for number, word in enumerate(word_sequence("numbers"))}
_ORDINALS = {
    word: f"{number}{('st', 'nd', 'rd')[number - 1] if number < 4 else 'th'}"
    for number, word in enumerate(word_sequence("ordinals"), 1)
}
_MONTHS = {name: number for number, names in enumerate(word_rows("months"), 1) for name in names}
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"(?:{_DAY} (?:of )?(?P<month>[a-z]+)|(?P<month2>[a-z]+) {_DAY.replace('day', 'day2')})(?: (?P<year>\d{{3,4}}))?"
)

_ROMAN = re.compile(r"(?=[mdclxvi])m{0,3}(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})\Z")
_NOT_ROMAN = word_list("not_roman")
_CONTRASTS = word_list("contrasts")


@lru_cache(1 << 17)
def comparison_form(name: str) -> str:
    """Return a name without case, accents, punctuation and spaces between initials.

    Accents are removed from Latin and Greek letters in names of at least four letters, vowel signs from Arabic and
    Hebrew. Numbers keep their sign, point and unit: `-5`, `1.5` and `10%` differ from `5`, `15` and `10`. A name that
    is a date with day and month in English becomes `2001-12-31` or `--12-31`.
    """
    return _form(normal_name(name))


def sentence_form(text: str) -> str:
    """Return the comparison form of a text of any length, which is not kept in memory."""
    return _form(normal_name.__wrapped__(text))


def _form(text: str) -> str:
    plain = text if _PLAIN.fullmatch(text) else _without_punctuation(text)
    plain = _INITIALS.sub(lambda match: match[0].replace(" ", ""), plain) or text
    return _date(plain) if plain[-1:].isalnum() and any(char.isdigit() for char in plain) else plain


def _without_punctuation(text: str) -> str:
    text = _THOUSANDS.sub("", text)
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
    return " ".join("".join(found).split())


@lru_cache(1 << 17)
def wording_form(name: str) -> str:
    """Return the comparison form without articles, with `U.S.` and the like written out and numbers in digits.

    `first`, `two` become `1st`, `2`. Roman numerals are kept: `Part II` differs from `Part 2`.
    """
    words: list[str] = []
    for word in comparison_form(name).split():
        if word in _EXPANSIONS and _AS_ACRONYM[word].search(name):
            words += _EXPANSIONS[word].split()
        elif word != "the":
            words.append(_DIGITS.get(word) or _ORDINALS.get(word) or word)
    if len(words) > 2 and words[0] in ("a", "an"):
        del words[0]
    joined = " ".join(words).replace("united states of america", "united states")
    return joined or comparison_form(name)


@lru_cache(1 << 17)
def distinguishing_words(name: str) -> frozenset[str]:
    """Return the numbers, Roman numerals, single letters and contrasting words of a name."""
    return frozenset(
        word
        for word in wording_form(name).split()
        if word in _CONTRASTS or len(word) == 1 or any(char.isdigit() for char in word) or (is_roman(word))
    )


def is_roman(word: str) -> bool:
    """Return whether a word in lower case is a Roman numeral, such as `xiv`."""
    return bool(_ROMAN.match(word)) and word not in _NOT_ROMAN


def _date(form: str) -> str:
    match = _DATE.fullmatch(form)
    if not match:
        return form
    month, day = _MONTHS.get(match["month"] or match["month2"]), int(match["day"] or match["day2"])
    if not month or not 1 <= day <= 31:
        return form
    return f"{match['year'] or '-'}-{month:02}-{day:02}"


def _without_marks(text: str) -> str:
    text = _HEBREW_MARKS.sub("", _ARABIC_MARKS.sub("", text)).replace(_DOT_ABOVE, "")
    if sum(char.isalpha() for char in text) < _MIN_FOLDED:
        return text
    plain = []
    for char in text.translate(_LETTERS):
        parts = unicodedata.normalize("NFD", char)
        folds = len(parts) > 1 and unicodedata.name(parts[0], "").startswith(("LATIN", "GREEK"))
        plain.append(parts[0] if folds else char)
    return "".join(plain)
