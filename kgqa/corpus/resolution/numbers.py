"""What must agree in two names before a similarity counts: numbers, ordinals, and words that tell things apart."""

from __future__ import annotations

import re
from functools import lru_cache

from kgqa.corpus.resolution.normal_forms import wording_form

_ROMAN = re.compile(r"(?=[mdclxvi])m{0,3}(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})\Z")
_NOT_ROMAN = frozenset(("mix", "mild", "civil", "dim", "lid", "mid", "vivid", "di", "mi", "dil", "mill", "ill", "vi"))
_CONTRASTS = frozenset(
    ["north", "south", "east", "west", "northern", "southern", "eastern", "western", "northeast", "northwest", "southeast", "southwest", "northeastern", "northwestern", "southeastern", "southwestern", "central", "upper", "lower", "inner", "outer", "mid", "middle", "early", "late", "new", "old", "great", "greater", "lesser", "little", "big", "small", "major", "minor", "junior", "senior", "jr", "sr", "elder", "younger", "father", "mother", "son", "daughter", "brother", "sister", "wife", "husband", "men", "women", "mens", "womens", "man", "woman", "boys", "girls", "male", "female", "king", "queen", "prince", "princess", "duke", "duchess", "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "spring", "summer", "autumn", "fall", "winter", "morning", "evening", "day", "night", "not", "non", "anti", "pre", "post", "pro", "ex", "former", "first", "last", "next", "previous", "best", "worst", "only", "more", "less", "most", "least", "high", "low", "higher", "lower", "highest", "lowest", "left", "right", "black", "white", "red", "green", "blue", "yellow", "gold", "silver", "bronze", "domestic", "international", "national", "regional", "local", "federal", "state", "north-west", "import", "export", "win", "loss", "wins", "losses", "winner", "loser", "home", "away", "hundred", "thousand", "million", "billion", "trillion", "half", "quarter", "double", "single", "dozen", "annual", "monthly", "weekly", "daily", "before", "after", "under", "over", "with", "without", "dr", "mr", "mrs", "ms", "miss", "sir", "lady", "lord", "saint", "vice", "deputy", "assistant", "part", "volume", "chapter", "season", "episode", "series", "edition", "alpha", "beta", "gamma", "delta", "primary", "secondary", "lake", "river", "mountain", "county", "city", "town", "village", "province", "district"]
)
"""Words that change which thing is meant: a name with one of them is never a variant of a name without it."""


@lru_cache(1 << 17)
def distinguishing_words(name: str) -> frozenset[str]:
    """Return the numbers, Roman numerals, single letters and contrasting words of a name."""
    return frozenset(
        word
        for word in wording_form(name).split()
        if word in _CONTRASTS
        or len(word) == 1
        or any(char.isdigit() for char in word)
        or (is_roman(word))
    )


def is_roman(word: str) -> bool:
    """Return whether a word in lower case is a Roman numeral, such as `xiv`."""
    return bool(_ROMAN.match(word)) and word not in _NOT_ROMAN
