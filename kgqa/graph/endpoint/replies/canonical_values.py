"""Rewrites the texts of literals to the form that the embedded engine uses.

Virtuoso writes booleans as 1 and 0, large doubles as 1e+10, and the year 44 BC as -044. Without rewriting, the same
value would be a different answer in each store.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

_XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_SHORT_YEAR = re.compile(r"\A-([0-9]{1,3})(?![0-9])")


def _number(text: str) -> str:
    if not _NUMBER.fullmatch(text):
        return text  # NaN, INF, or malformed
    number = float(text)
    if number in (float("inf"), float("-inf")):
        return "INF" if number > 0 else "-INF"
    return format(Decimal(repr(number)).normalize(), "f")


_CANONICAL: dict[str, Callable[[str], str]] = {
    _XSD + "boolean": lambda text: {"1": "true", "0": "false"}.get(text, text),
    **dict.fromkeys((_XSD + "double", _XSD + "float"), _number),
    **dict.fromkeys(
        (_XSD + "gYear", _XSD + "gYearMonth", _XSD + "date", _XSD + "dateTime"),
        lambda text: _SHORT_YEAR.sub(lambda year: f"-{year[1]:0>4}", text),
    ),
}


def canonical_text(text: str, datatype: str) -> str:
    """Rewrite the text of a literal to the form that the embedded engine uses, if its datatype requires this."""
    canonical = _CANONICAL.get(datatype)
    return canonical(text) if canonical else text
