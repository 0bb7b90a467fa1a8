"""Dates, numbers and addresses as typed literals.

Only forms that mean the same in every language and country are read: 05/06/1960 and 1.234 stay texts.
"""

from __future__ import annotations

import re
from datetime import date

from kgqa.model.conditions import DAY, MONTH, XSD, YEAR
from kgqa.model.terms import Literal

_HALF_YEARS = ("january february march april may june", "july august september october november december")
MONTHS = tuple(month for half in _HALF_YEARS for month in half.split())
MONTH_PATTERN = "|".join([*MONTHS, *(month[:3] for month in MONTHS if month != "may"), "sept"])
DATE_PATTERN = (
    rf"(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<month>{MONTH_PATTERN})\.?,? (?P<year>\d{{3,4}})"
    rf"|(?P<month2>{MONTH_PATTERN})\.? (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year2>\d{{3,4}})"
    rf"|(?P<month3>{MONTH_PATTERN})\.? (?P<year3>\d{{3,4}})"
    r"|(?P<year4>\d{4})-(?P<month4>\d{2})-(?P<day4>\d{2})"
    r"|(?P<year5>\d{4})\s?年\s?(?P<month5>\d{1,2})\s?月\s?(?P<day5>\d{1,2})\s?[日号]"
    r"|(?P<year6>\d{3,4}))(?!\d)"
)
"""A date in English, in the form of ISO 8601, or in Chinese and Japanese; compile it without regard to case."""
_DATE = re.compile(DATE_PATTERN, re.IGNORECASE)
_NUMBER = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d{1,30})(?:\.\d{1,30})?")
_AMBIGUOUS = re.compile(r"[-+−]?\d{1,3}\.\d{3}")
_ADDRESS = re.compile(r"(?:https?|ftp)://[^\s<>\"{}|\\^`]{1,2000}", re.IGNORECASE)
_YEAR_WORDS = re.compile(
    r"year|date|born|died|death|birth|founded|established|built|opened|since|released|jahr|datum|gegründet|geboren|année"
    r"|fondé|naissance|año|fundado|nacimiento|fundação|nascimento|год|年",
    re.IGNORECASE,
)


def read_value(text: str, about: str = "") -> Literal | None:
    """Return a text that is a number, a date or an address as a typed literal; None if it is none of these.

    Args:
        text: The whole text of the value.
        about: What it is the value of, in words; "year of birth" makes 1960 a year and not a number.
    """
    if len(text) > 2_100:
        return None
    if _ADDRESS.fullmatch(text):
        return Literal(text, XSD + "anyURI")
    if re.fullmatch(r"\d{4}", text) and _YEAR_WORDS.search(about):
        return year_literal(int(text))
    if _NUMBER.fullmatch(text):
        if _AMBIGUOUS.fullmatch(text) or re.fullmatch(r"[-+−]?0\d+", text):  # 1.234 and 007
            return None
        plain = text.replace(",", "").replace("−", "-").removeprefix("+")
        return Literal(plain, XSD + ("decimal" if "." in plain else "integer"))
    found = _DATE.fullmatch(text)
    return date_literal(found) if found else None


def date_literal(found: re.Match[str]) -> Literal | None:
    """Return a match of DATE_PATTERN as a literal in its own precision; None if there is no such day."""
    parts = found.groupdict()
    form = next(form for form in ("", "2", "3", "4", "5", "6") if parts.get(f"year{form}"))
    year, month, day = (parts.get(f"{name}{form}") for name in ("year", "month", "day"))
    assert year is not None
    if month is None:
        return year_literal(int(year))
    number = int(month) if month.isdigit() else 1 + [name[:3] for name in MONTHS].index(month[:3].lower())
    try:
        whole = date(int(year), number, int(day or 1))
    except ValueError:
        return None
    written = f"{whole.year:04}-{whole.month:02}"
    return Literal(f"{written}-{whole.day:02}", DAY) if day else Literal(written, MONTH)


def year_literal(year: int) -> Literal | None:
    """Return a year as a literal; None for the year 0, which does not exist."""
    return Literal(f"{year:04}", YEAR) if year else None
