"""Proper names in English text: capitalised words and what joins them."""

from __future__ import annotations

import re
import sys
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from kgqa.corpus.extraction.rules.values import MONTHS

MAX_WORDS = 9
_LINK = (
    r"(?:of the|of|de la|de los|de las|de|da|das|do|dos|di|del|della|des|du|van der|van den|van de|van|von und zu"
    r"|von der|von|der|den|zu|la|le|les|el|al|bin|ibn|bint|y|e|the|af|av|ter|ten"
    r"|mac|mic|ua|ap|ferch)"
)
_ORDINAL = re.compile(r"\s[IVX]+\.\Z")  # at the end of a sentence: "Selim I."
_RANKS = (
    "Duke|Duchess|Earl|Count|Countess|Baron|Baroness|Baronet|Viscount|Viscountess|Marquess|Marquis|Margrave|Landgrave|Elector"
    "|Prince|Princess|Lord|Lady|King|Queen|Archduke|Burgrave|Palatine"
)
"""Ranks that are a part of a name: `George Murray, 5th Earl of Dunmore`."""
# what may follow a name: otherwise it is only the first part of a longer expression ("American singer")
_AFTER = re.compile(
    r"""\s*(?:[,.;:()\]–—!?]|["”]\s?(?:[,.;:)]|$)|$)|\s+(?:and|or|in|on|at|with|for|from|as|who|which|that|by|until|between|during|when|where
    |while|but|to|under|after|before|since|then|was|were|is|are|has|had|starring|based|produced|written|directed|also
    |featuring|about|into|near|through|without|alongside|along|together|respectively)\b""",
    re.VERBOSE,
)
_NO_NAMES = {"He", "She", "It", "They", "This", "That", "The", "In", "On", "His", "Her", "Its", "A", "An", "I", "There"}
_NO_NAMES |= {"These", "One", "Two", "Three", "Four", "Both", "No", "All", "Some", "Many", "Other", "God"}
_NO_NAMES |= {month.capitalize() for month in MONTHS}


@dataclass(frozen=True, slots=True)
class ProperName:
    """A name, and where it stands."""

    name: str
    begin: int
    end: int


@lru_cache(1)
def capitals() -> str:
    """Return all capital letters, for a character class."""
    return "".join(
        character for character in map(chr, range(sys.maxunicode)) if unicodedata.category(character) in ("Lu", "Lt")
    )


@lru_cache(1)
def name_pattern() -> re.Pattern[str]:
    """Return the pattern of a proper name: `J. R. Smith Jr.`, `Ferdinand III of Castile`, `20th Century Fox`."""
    capital = capitals()
    word = (
        rf"(?:[{capital}]\.(?:\s?-?[{capital}]\.)*|(?:Jr|Sr|St|Dr|Mr|Mrs|Ms|Mt|Gen|Col|Capt|Lt|Prof|Rev)\."
        rf"|[{capital}](?:\w|['’]\s?(?!s\b)\w|-\s?\w|&\s?(?=\w))*)"
    )
    rank = rf"(?:Grand\s)?(?:{_RANKS})"
    ranked = rf",\s(?:\d+(?:st|nd|rd|th)\s{rank}|{rank}(?=\sof\s))(?:\s(?:of\s(?:the\s)?)?{word})*"
    more = rf"(?:\s(?:{_LINK}\s)?(?:[dDlL]['’]\s?)?{word}|,?\s(?:Jr|Sr)\b\.?|\s&\s{word}|,\s(?:Inc|Ltd)\b\.?)"
    return re.compile(rf"(?:\d+(?:st|nd|rd|th)\s)?(?:[dDlL]['’]\s?)?{word}{more}{{0,{MAX_WORDS}}}(?:{ranked})?")


@lru_cache(1)
def _skipped() -> re.Pattern[str]:
    """Return the pattern of words between an adjective and the name that it belongs to: `American rock band`."""
    no = r"(?!the\b|of\b|in\b|by\b|from\b|for\b|and\b|to\b|son\b|daughter\b|wife\b|widow\b|sister\b|brother\b)"
    return re.compile(rf"(?:\s{no}[a-z][a-z-]*){{1,3}}\s(?=[{capitals()}])")


def read_name(text: str, begin: int, end: int) -> ProperName | None:
    """Return the proper name that begins at an offset; None if there is none, or it is only a part of something."""
    pattern = name_pattern()
    if text.startswith("the ", begin):
        begin += len("the ")
    found = pattern.match(text, begin, end)
    for _ in range(2):
        if not found:
            return None
        if _AFTER.match(text, found.end(), end):
            break
        skipped = _skipped().match(text, found.end(), end)
        found = pattern.match(text, skipped.end(), end) if skipped else None
    else:
        return None
    text = found[0]
    while text.rpartition(" ")[2] in _NO_NAMES:  # the next sentence, if a full stop is missing
        text = text.rpartition(" ")[0]
    text = text[:-1] if _ORDINAL.search(text) else text
    stop = found.start() + len(text)
    name = " ".join(text.split()).replace("- ", "-").replace("' ", "'").replace("’ ", "’")
    if name in _NO_NAMES or len(name.split()) > MAX_WORDS or (len(name) < 3 and not name.isupper()):
        return None
    return ProperName(name, found.start(), stop)


def read_names(text: str, begin: int, end: int, *, commas: bool = True) -> tuple[list[ProperName], int]:
    """Return the names of a list such as `A, B and C`, and where the list ends.

    Args:
        text: The text.
        begin: Where the first name begins.
        end: Where to stop.
        commas: Whether commas separate names of the list, not only "and".
    """
    names: list[ProperName] = []
    separator = _SEPARATOR if commas else _AND
    at = begin
    while name := read_name(text, at, end):
        names.append(name)
        between = separator.match(text, name.end, end)
        if between is None:
            break
        at = between.end()
        if "and" in between[0] or "&" in between[0]:
            separator = _NOTHING
    return names, names[-1].end if names else begin


_SEPARATOR = re.compile(r"\s?,? (?:and|&) |, ")
_AND = re.compile(r",? (?:and|&) ")
_NOTHING = re.compile(r"(?!)")
