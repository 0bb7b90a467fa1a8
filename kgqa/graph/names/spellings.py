"""Other spellings of a name: without its article, bracket or part after a comma, as one word, or as initials."""

from __future__ import annotations

import re

from kgqa.text.words import normalise

MIN_SQUEEZED = 5
"""Names of more than this many characters are looked up without their spaces too."""
LAST_SPACED = "\u2e7f"
"""Characters above this one belong to scripts without spaces: their names are always looked up without spaces too."""
MAX_INITIALS = 5
_BRACKETS = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
_SMALL_WORDS = frozenset(
    "a an and at by de del der des di du for from in la le of on or the to van von with".split()  # noqa: SIM905 - shorter
)


def spellings(name: str) -> dict[str, str]:
    """Return the other normalised spellings of a name, each with its kind, see `LooseMatch.how`."""
    norm = normalise(name)
    found: dict[str, str] = {}
    without_article = re.sub(r"^(?:the|an?) (?=.)", "", norm)
    without_bracket = normalise(_BRACKETS.sub("", name))
    for spelling, how in (
        (without_article, "article"),
        (without_bracket, "bracket"),
        (normalise(name.split(",")[0]) if "," in name else "", "comma"),
        (norm.replace(" ", "") if len(norm) > MIN_SQUEEZED or norm[:1] > LAST_SPACED else "", "squeezed"),
        (initials_of(norm), "initials"),
    ):
        if spelling and spelling != norm:
            found.setdefault(spelling, how)
    return found


def initials_of(norm: str) -> str:
    """Return the initials of a normalised name, leaving out small words such as `of`.

    The result is empty if only one word remains, or more than MAX_INITIALS words.
    """
    words = [word for word in norm.split() if word not in _SMALL_WORDS]
    return "".join(word[0] for word in words) if 2 <= len(words) <= MAX_INITIALS else ""
