"""Regular expressions for reading choices: how a reply names an option, accepts an option or rejects it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

LINE = 300
"""Number of characters read after a label such as "Answer:"; a longer text is not an option."""
_NOUN = r"(?:(?:relation )?path|option|choice|candidate|answer)"
_OPEN, _CLOSE = r"""[\[({<"'`*_ ]{0,12}""", r"""[\])}>"'`*_ ]{0,12}"""
_CHOOSING = (
    r"\b(?:choos(?:e|ing)|chose|pick(?:ed|ing)?|select(?:ed|ing)?|prefer(?:red)?|go(?:ing)? with|opt(?:ing)? for) "
    r"(?:the )?"
)
_BETTER = (
    r" is (?:the |clearly |much |therefore |also |far )*"
    r"(?:better|best|correct|closer|prefer\w+|superior|stronger|winner|"
    r"more (?:direct|directly|relevant|likely|suitable|appropriate|useful|helpful|promising|precise|informative))\b"
)
UNSURE = re.compile(
    r"\b(?:not (?:\w+ )?(?:sure|certain|clear|decided)|unsure|uncertain|unclear|maybe|perhaps|possibly|undecided|"
    r"(?:can ?not|can't|unable to) (?:decide|tell|determine|say|choose|judge)|hard to (?:say|tell)|depends?)\b",
    re.IGNORECASE,
)
BUT = re.compile(r"\b(?:but|however|although|though|or rather|except)\b", re.IGNORECASE)
IF = re.compile(r"\b(?:if|unless|whether|while|not|never|neither|nor|cannot|hardly)\b|n't\b", re.IGNORECASE)
PROVIDED = re.compile(r"[,;]? ?(?:only )?(?:if|unless|provided|assuming)\b", re.IGNORECASE)
NEGATIVE = re.compile(
    r"\b(?:no|not|never|neither|nor|cannot|without|wrong|incorrect|irrelevant|unrelated|worse|worst|less|reject\w*|"
    r"exclud\w+|eliminat\w+|discard\w*|rule[sd]? out|unlikely|than|over|unlike|insufficient)\b|n't\b",
    re.IGNORECASE,
)
DECIDES = re.compile(
    r"\b(?:better|best|prefer\w*|chosen|choose|correct|wins?|winner|closer|closest|stronger)\b", re.IGNORECASE
)
REASON = re.compile(r" ?(?:because|since|as it|due to)\b", re.IGNORECASE)
INSTEAD = re.compile(r" ?(?:over|rather than|instead of)\b", re.IGNORECASE)
UNDECIDED = re.compile(
    r"\W*(?:(?:both|neither|either|none)(?: of (?:them|these|the \w+))?(?: (?:is|are) \w+)?|tie|equal(?:ly)?(?: \w+)?|"
    r"unknown|null|n/a|undecided|" + UNSURE.pattern + r")\W*",
    re.IGNORECASE,
)
GOES_ON = re.compile(r"[.:]? ?\d|\. ?[A-Z]\.")
"""Matches after a text that only looks like an option, as in "No. 1" or "A. R. Rahman"."""
_NOT = r"(?<!or )\b(?:not|non|never|isn't)(?:[^\w.!?;]|_)"  # "B does not. [A]", "asks it or not\n[YES]" do not match
NOT_BEFORE = re.compile(rf"{_NOT}*$", re.IGNORECASE)
SENTENCE = re.compile(r"(?<=[.!?;]) |\n")


class Options:
    """The patterns of a few options. An option does not match inside a longer option or inside a word."""

    def __init__(self, options: Sequence[str]) -> None:
        self._named = {_name(option): option for option in options if _name(option)}
        names = sorted(self._named, key=len, reverse=True)
        words = "|".join(r"[ _-]{1,2}".join(map(re.escape, name.split())) for name in names) or r"(?!)"
        option = rf"(?<![\w-])(?<!not )(?<!not_)({words})(?!\w|-\w|'\w)"
        self.marker = re.compile(
            rf"[\[{{]{_OPEN}(?:{_NOUN}[ :]{{1,2}})?{option}{_CLOSE}[\]}}]+[*_`\"')]*", re.IGNORECASE
        )
        self.first = re.compile(rf"{_OPEN}(?:{_NOUN} )?{_OPEN}{option}({_CLOSE})", re.IGNORECASE)
        self.joined = re.compile(rf"[ ,/|&]*(?:(?:and|or|but|also|vs\.?) ?)*{_OPEN}{option}", re.IGNORECASE)
        self.chosen = re.compile(rf"{_CHOOSING}(?={self.first.pattern})", re.IGNORECASE)
        self._negated = re.compile(rf"{_NOT}{{1,30}}(?:{words})(?!\w)", re.IGNORECASE)
        self.better = re.compile(rf"(?:{self.marker.pattern}){_BETTER}", re.IGNORECASE)

    def without_negated(self, text: str) -> str:
        """Replace options that follow a "not" by "~", unless the "not" is part of the option."""
        return self._negated.sub(lambda found: found.group() if self.get(found.group()) else "not ~", text)

    def get(self, text: Any) -> str | None:
        """Return the option that the whole text names; None if the text is not an option."""
        return self._named.get(_name(text)) if isinstance(text, str) and len(text) <= LINE else None


@lru_cache(maxsize=64)
def known_options(options: tuple[str, ...]) -> Options:
    """Return the compiled patterns of the given options."""
    return Options(options)


def _name(option: str) -> str:
    return " ".join(re.sub(r"[\s_-]+", " ", option).casefold().split())
