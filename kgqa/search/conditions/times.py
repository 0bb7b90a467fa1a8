"""Years and the present in a question, and the conditions that they put on the dates beside a path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from kgqa.model import Literal
from kgqa.model.conditions import DAY, Comparison, Condition, Operator, year
from kgqa.rank.lexical import stem
from kgqa.search.conditions.beside import is_date, stems
from kgqa.search.rows import FieldKey, PathRows

_YEAR = r"(?P<{}>1[0-9]{{3}}|20[0-9]{{2}})"
_FROM, _TO = _YEAR.format("first"), _YEAR.format("last")
_BETWEEN = re.compile(
    rf"\b(?:from|between)\s+{_FROM}\s+(?:to|and|until|till|through|up\s+to)\s+{_TO}\b"
    rf"|\b(?:(?:from|between|in|during)\s+)?(?<![\w.-])(?P<begin>{_YEAR.format('b')})\s*[-–—]\s*{_YEAR.format('e')}(?![\w-])",
    re.IGNORECASE,
)
_UNTIL_NOW = re.compile(
    rf"\b(?:from|between|since)\s+{_FROM}\s+(?:to|and|until|till)\s+(?:now|today|(?:the\s+)?present(?:\s+day)?)\b",
    re.IGNORECASE,
)
_DECADE = re.compile(r"\b(?:in|during)\s+the\s+(?P<first>1[0-9]{2}0|20[0-9]0)['’]?s\b", re.IGNORECASE)
_BOUNDS: dict[str, tuple[str, ...]] = {
    "before": ("before", "prior to", "earlier than"),
    "until": ("until", "till", "up to", "through", "by", "no later than", "not later than", "in or before",
              "on or before"),
    "since": ("since", "no earlier than", "not earlier than", "in or after", "on or after", "starting in",
              "starting from"),
    "after": ("after", "later than"),
    "in": ("in", "during", "for", "as of", "of", "from"),
}  # fmt: skip
"""Words before a year, by their meaning."""
_MEANINGS = {words: meaning for meaning, each in _BOUNDS.items() for words in each}
_HOW = "|".join(sorted((words.replace(" ", r"\s+") for words in _MEANINGS), key=len, reverse=True))
_SINGLE = re.compile(
    rf"(?:\b(?P<how>{_HOW})\s+(?:the\s+year\s+)?|(?:\bthe\s+year\s+)?(?<!than )(?<![\w.]))"
    rf"{_FROM}(?![\w%]|[.,]\d)"
    r"(?:\s+(?:(?P<later>onwards?|(?:and|or)\s+(?:later|after|onwards?)|at\s+the\s+earliest)"
    r"|(?P<on>on)(?=\s*(?:[?.,;]|$|(?:did|do|does|was|were|is|are|has|have|had)\b))"
    r"|(?P<earlier>(?:and|or)\s+(?:earlier|before)|at\s+the\s+latest))(?!\w))?",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:current(?:ly)?|now|nowadays|today|at the moment|presently|present(?=\s+\w)|right now|these days)\b",
    re.IGNORECASE,
)
_ANY_YEAR = r"(?:1[0-9]{3}|20[0-9]{2})"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
)
_BOUND = "|".join(words for words, meaning in _MEANINGS.items() if meaning != "in")
_FINER = re.compile(
    rf"(?P<bound>\b(?:{_BOUND}|from)\s+(?:the\s+)?)?"
    rf"(?:\b(?:{_DAY}\s+(?:of\s+)?)?{_MONTH}\s+(?:{_DAY},?\s+)?(?:of\s+)?{_ANY_YEAR}\b"
    rf"|\b(?:spring|summer|autumn|fall|winter|early|late|mid|start|beginning|middle|end|half|quarter)[\s-]+"
    rf"(?:of\s+|in\s+)?{_ANY_YEAR}\b(?!['’]?s\b)"
    rf"|(?<![\w-]){_ANY_YEAR}-\d{{2}}(?:-\d{{2}})?(?![\w-]))",
    re.IGNORECASE,
)
"""A day, a month or another part of a year."""
_ROUGH = re.compile(
    rf"\b(?:around|about|circa|ca\.?|roughly|approximately)\s+{_ANY_YEAR}\b(?![%]|[.,]\d)", re.IGNORECASE
)
_OTHER = re.compile(
    r"\b(?:1[0-9]|20)[0-9]0['’]?s\b|(?<!\w)['’][0-9]0s\b|\bthe\s+(?:\w+\s+)?[0-9]0s\b"
    r"|\b(?:\d{1,2}(?:st|nd|rd|th)|\w+(?:teenth|tieth)|twenty[\s-]first)[\s-]+(?:century|centuries)\b"
    r"|\b(?:last|this|next|past|previous)\s+(?:\w+\s+)?(?:years?|months?|decades?|century)\b|\byears?\s+ago\b",
    re.IGNORECASE,
)
"""A time that is no year and no range of years."""
_STARTS = frozenset(
    map(stem, ("from", "start", "begin", "began", "since", "joined", "opened", "inaugurated", "founded"))
)
_ENDS = frozenset(map(stem, ("to", "end", "until", "till", "left", "closed", "dissolved", "died", "death")))
_BECAME = ("from", "start")
_VERBS = {
    "born": ("birth", "born"), "died": ("death", "died"), "founded": ("founded", "inception", "established"),
    "established": ("founded", "inception", "established"), "released": ("release", "released"),
    "published": ("publication", "published"), "married": ("from", "start"), "divorced": ("to", "end"),
    "came out": ("release",), "premiered": ("release", "premiere"), "built": ("built", "opened", "construction"),
    "opened": ("opened", "opening"), "became": _BECAME, "become": _BECAME, "elected": _BECAME, "appointed": _BECAME,
    "started": _BECAME, "began": _BECAME, "joined": (*_BECAME, "joined"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Time:
    """A time in a question: the years `first` to `last`, either None if open; both None for the present."""

    cue: str
    first: int | None = None
    last: int | None = None

    @property
    def is_now(self) -> bool:
        """Whether the present is meant."""
        return self.first is None and self.last is None


@dataclass(frozen=True, slots=True)
class PlacedTime:
    """The conditions that a time puts on a path.

    Attributes:
        conditions: The conditions; empty if the dates beside the path do not tell.
        note: A sentence for the reader if the conditions are weaker than the time; "" if they are not.
    """

    conditions: tuple[Condition, ...] = ()
    note: str = ""


def read_time(text: str) -> Time | None:
    """Return the time that a question names; None if it names none, or not only one that can be read."""
    time = _first_time(text)
    if time is None:
        return None
    if _ROUGH.search(text) or any(found["bound"] for found in _FINER.finditer(text)):
        return None  # "before May 1990" is not "before 1990"
    rest = _without(text, time)
    return None if _OTHER.search(rest) or (not time.is_now and _SINGLE.search(rest)) else time


def unread_time(text: str) -> str:
    """Return the words of a time in a question that `read_time` leaves out, such as "May 1990"; "" if there are none.

    The present is never left out.
    """
    time = read_time(text)
    rest = _without(text, time) if time is not None else text
    found = _FINER.search(text) or _ROUGH.search(text) or _OTHER.search(rest) or _SINGLE.search(rest)
    return found[0].strip() if found else ""


def _without(text: str, time: Time) -> str:
    return text.replace(time.cue, " ", 1)


def _first_time(text: str) -> Time | None:
    if found := _UNTIL_NOW.search(text):
        return Time(found[0], int(found["first"]), None)
    if found := _BETWEEN.search(text):
        return Time(found[0], int(found["first"] or found["b"]), int(found["last"] or found["e"]))
    if found := _DECADE.search(text):
        return Time(found[0], int(found["first"]), int(found["first"]) + 9)
    years = list(_SINGLE.finditer(text))
    if len(years) == 1:
        return _single(years[0])
    found = _NOW.search(text)
    return Time(found[0]) if found and not years else None


def _single(found: re.Match[str]) -> Time | None:
    """Return the time of one year and the words around it; None if they do not agree."""
    number = int(found["first"])
    meaning = _MEANINGS[" ".join((found["how"] or "in").lower().split())]
    is_from = (found["how"] or "").lower() == "from"
    if found["later"] or (found["on"] and is_from):
        return Time(found[0], number, None) if meaning in ("in", "since") else None
    if found["earlier"]:
        return Time(found[0], None, number) if meaning in ("in", "until") else None
    cue = found[0].removesuffix(found["on"] or "").rstrip()
    if meaning in ("before", "until"):
        return Time(cue, None, number if meaning == "until" else number - 1)
    if meaning in ("after", "since"):
        return Time(cue, number if meaning == "since" else number + 1, None)
    return Time(cue, number, number)


def time_conditions(
    time: Time, text: str, rows: PathRows, words: Mapping[FieldKey, str], *, today: date | None = None
) -> PlacedTime:
    """Return the conditions that a time puts on the dates of a path's nodes.

    Intervals of a mediator come first, then the dates of the ends that the question's verb names, then a single date.

    Args:
        time: The time.
        text: The question.
        rows: Rows of the path.
        words: The words of each field.
        today: What "now" means; None for the current date.
    """
    dates = _dates(rows)
    starts = [key for key in dates if _is(words[key], _STARTS, _ENDS)]
    ends = [key for key in dates if _is(words[key], _ENDS, _STARTS)]
    last = len(rows.candidate.path)
    for at in sorted({key[0] for key in dates} | {0}, reverse=True):
        start = next((key for key in starts if key[0] == at and at < last), None)
        end = next((key for key in ends if key[0] == at and at < last), None)
        if start and end:
            return PlacedTime(_in_interval(time, start, end, today))
    if time.is_now:
        inner = [key for key in ends if key[0] < last]
        return PlacedTime(_not_ended(inner[0], today) if len(inner) == 1 else ())
    verbs = [name for verb, names in _VERBS.items() if re.search(rf"\b{verb}\b", text, re.IGNORECASE) for name in names]
    named = [key for key in dates if set(map(stem, verbs)) & set(stems(words[key]))]
    inner = [key for key in dates if key[0] < last]
    at_end = [key for key in dates if key[0] == last and len(key[1]) == 1]
    ends_are_dates = all(is_date(value) for value in rows.ends)
    if ends_are_dates:
        return PlacedTime(_compared(time, (last, ())))
    if named:
        return PlacedTime(_compared(time, named[0]))
    if len(inner) == 1:
        return _started(time, inner[0], words) if inner[0] in starts else PlacedTime(_compared(time, inner[0]))
    return PlacedTime(_compared(time, at_end[0]) if len(at_end) == 1 else ())


def _dates(rows: PathRows) -> dict[FieldKey, None]:
    found: dict[FieldKey, bool] = {}
    for row in rows.rows:
        for field in row.fields:
            dated = all(is_date(value.value) for value in field.values)
            found[field.key] = found.get(field.key, True) and dated
    return {key: None for key, dated in found.items() if dated}


def _is(text: str, wanted: frozenset[str], other: frozenset[str]) -> bool:
    last = stems(text)[-3:]
    return bool(wanted & set(last)) and not other & set(last)


def _in_interval(time: Time, start: FieldKey, end: FieldKey, today: date | None) -> tuple[Condition, ...]:
    """Return the conditions for an interval that overlaps with a time; an interval without an end goes on."""
    found: list[Condition] = []
    if time.is_now:
        return _not_ended(end, today)
    if time.last is not None:
        found.append(Condition(*start, Comparison("<=", year(time.last))))
    if time.first is not None:
        found.append(Condition(*end, Comparison("<", year(time.first)), negated=True))
    return tuple(found)


def _not_ended(end: FieldKey, today: date | None) -> tuple[Condition, ...]:
    """Return the condition that there is no end date before today: an end may be missing, or known in advance."""
    day = Literal((today or date.today()).isoformat(), DAY)
    return (Condition(*end, Comparison("<", day), negated=True),)


def _started(time: Time, start: FieldKey, words: Mapping[FieldKey, str]) -> PlacedTime:
    """Return the condition for intervals of which the graph has only the start.

    An interval that began after the time does not overlap with it. Nothing is known of one that began before.
    """
    if time.last is None:
        return PlacedTime()
    condition = Condition(*start, Comparison("<=", year(time.last)))
    if time.first is None:
        return PlacedTime((condition,))  # whatever began by then was the case by then
    note = f"Answers that ended before {time.first} may be included: the graph has “{words[start]}” but no end dates."
    return PlacedTime((condition,), note)


def _compared(time: Time, key: FieldKey) -> tuple[Condition, ...]:
    if time.first is not None and time.first == time.last:
        return (Condition(*key, Comparison("=", year(time.first))),)
    found = []
    bounds: Sequence[tuple[Operator, int | None]] = ((">=", time.first), ("<=", time.last))
    for operator, bound in bounds:
        if bound is not None:
            found.append(Condition(*key, Comparison(operator, year(bound))))
    return tuple(found)
