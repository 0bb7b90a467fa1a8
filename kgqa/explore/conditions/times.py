"""Years and the present in a question, and the conditions that they put on the dates beside a path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgqa.conditions import Comparison, Condition, Operator, year
from kgqa.explore.conditions.beside import is_date, stems
from kgqa.explore.rows import FieldKey, PathRows
from kgqa.rank.lexical import stem

_YEAR = r"(?P<{}>1[0-9]{{3}}|20[0-9]{{2}})"
_BETWEEN = re.compile(
    rf"\b(?:from|between)\s+{_YEAR.format('first')}\s+(?:to|and|until|till)\s+{_YEAR.format('last')}\b", re.IGNORECASE
)
_DECADE = re.compile(r"\b(?:in|during)\s+the\s+(?P<first>1[0-9]{2}0|20[0-9]0)['’]?s\b", re.IGNORECASE)
_SINGLE = re.compile(
    rf"(?:\b(?P<how>before|after|since|until|prior to|later than|earlier than|in|during|for|as of|of|from)\s+)?"
    rf"(?:the\s+year\s+)?(?<![\w.])(?<!than ){_YEAR.format('first')}(?![\w%]|[.,]\d)",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:current(?:ly)?|now|nowadays|today|at the moment|presently|present(?=\s+\w)|right now|these days)\b",
    re.IGNORECASE,
)
_STARTS = frozenset(
    map(stem, ("from", "start", "begin", "began", "since", "joined", "opened", "inaugurated", "founded"))
)
_ENDS = frozenset(map(stem, ("to", "end", "until", "till", "left", "closed", "dissolved", "died", "death")))
_VERBS = {
    "born": ("birth", "born"), "died": ("death", "died"), "founded": ("founded", "inception", "established"),
    "established": ("founded", "inception", "established"), "released": ("release", "released"),
    "published": ("publication", "published"), "married": ("from", "start"), "divorced": ("to", "end"),
    "came out": ("release",), "premiered": ("release", "premiere"), "built": ("built", "opened", "construction"),
    "opened": ("opened", "opening"),
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


def read_time(text: str) -> Time | None:
    """Return the time that a question names; None if it names none, or more than one."""
    for pattern in (_BETWEEN, _DECADE):
        if found := pattern.search(text):
            first = int(found["first"])
            return Time(found[0], first, int(found["last"]) if pattern is _BETWEEN else first + 9)
    years = list(_SINGLE.finditer(text))
    if len(years) == 1:
        (found,) = years
        number = int(found["first"])
        how = (found["how"] or "in").lower()
        if how in ("before", "until", "prior to", "earlier than"):
            return Time(found[0], None, number if how == "until" else number - 1)
        if how in ("after", "since", "later than"):
            return Time(found[0], number if how == "since" else number + 1, None)
        return Time(found[0], number, number)
    found = _NOW.search(text)
    return Time(found[0]) if found and not years else None


def time_conditions(time: Time, text: str, rows: PathRows, words: Mapping[FieldKey, str]) -> tuple[Condition, ...]:
    """Return the conditions that a time puts on the dates of a path's nodes; empty if the dates do not tell.

    Intervals of a mediator come first, then the dates of the ends that the question's verb names, then a single date.

    Args:
        time: The time.
        text: The question.
        rows: Rows of the path.
        words: The words of each field.
    """
    dates = _dates(rows)
    starts = [key for key in dates if _is(words[key], _STARTS, _ENDS)]
    ends = [key for key in dates if _is(words[key], _ENDS, _STARTS)]
    last = len(rows.candidate.path)
    for at in sorted({key[0] for key in dates} | {0}, reverse=True):
        start = next((key for key in starts if key[0] == at and at < last), None)
        end = next((key for key in ends if key[0] == at and at < last), None)
        if start and end:
            return _in_interval(time, start, end)
    if time.is_now:
        inner = [key for key in ends if key[0] < last]
        return (Condition(*inner[0], None, negated=True),) if len(inner) == 1 else ()
    verbs = [name for verb, names in _VERBS.items() if re.search(rf"\b{verb}\b", text, re.IGNORECASE) for name in names]
    named = [key for key in dates if set(map(stem, verbs)) & set(stems(words[key]))]
    inner = [key for key in dates if key[0] < last]
    at_end = [key for key in dates if key[0] == last and len(key[1]) == 1]
    ends_are_dates = all(is_date(value) for value in rows.ends)
    if ends_are_dates:
        return _compared(time, (last, ()))
    for choice in (named, inner if len(inner) == 1 else [], at_end if len(at_end) == 1 else []):
        if choice:
            return _compared(time, choice[0])
    return ()


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


def _in_interval(time: Time, start: FieldKey, end: FieldKey) -> tuple[Condition, ...]:
    """Return the conditions for an interval that overlaps with a time; an interval without an end goes on."""
    found: list[Condition] = []
    if time.is_now:
        return (Condition(*end, None, negated=True),)
    if time.last is not None:
        found.append(Condition(*start, Comparison("<=", year(time.last))))
    if time.first is not None:
        found.append(Condition(*end, Comparison("<", year(time.first)), negated=True))
    return tuple(found)


def _compared(time: Time, key: FieldKey) -> tuple[Condition, ...]:
    if time.first is not None and time.first == time.last:
        return (Condition(*key, Comparison("=", year(time.first))),)
    found = []
    bounds: Sequence[tuple[Operator, int | None]] = ((">=", time.first), ("<=", time.last))
    for operator, bound in bounds:
        if bound is not None:
            found.append(Condition(*key, Comparison(operator, year(bound))))
    return tuple(found)
