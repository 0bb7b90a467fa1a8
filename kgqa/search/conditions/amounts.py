"""An amount with which a question compares a value, as in "over a million downloads" or "longer than 30 km"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from kgqa.model import Literal
from kgqa.model.conditions import XSD, Comparison, Operator
from kgqa.rank.lexical import STOPWORDS
from kgqa.search.conditions.requests import Measure, measure_of
from kgqa.search.words import meaning, pattern

MAX_WORDS = 8


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount in a question: its words, how a value compares with it, and the words for the value."""

    cue: str
    comparison: Comparison
    measure: Measure


def read_amount(text: str) -> Amount | None:
    """Return the amount with which a question compares a number; None if it has none, or several."""
    amounts = list(pattern("{amount}").finditer(text))
    adjective = measure_of(amounts[0]["adjective"]) if len(amounts) == 1 and amounts[0]["adjective"] else Measure(())
    if len(amounts) != 1 or adjective.scale != "number":
        return None
    (found,) = amounts
    digits = found["number"].replace(",", "")
    number = Decimal(digits if digits[0].isdigit() else meaning("numbers", digits))
    for times in found["times"].split():
        number *= meaning("multiples", times)
    parts = (text[found.end() :], text[: found.start()])
    words = [word for part in parts for word in re.findall(r"[^\W\d_]{2,}", part.lower()) if word not in STOPWORDS]
    how: Operator = meaning("amount_bounds", found["how"]) if found["how"] else ">" if adjective.most else "<"
    measure = Measure((*words[:MAX_WORDS], *adjective.words), phrase=" ".join(words[:MAX_WORDS]))
    return Amount(found[0].strip(), Comparison(how, Literal(f"{number:f}", XSD + "decimal")), measure)
