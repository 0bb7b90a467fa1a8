"""Years and the present in a question, and the conditions that they put on the dates beside a path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from kgqa.model import Entity, Literal, Value
from kgqa.model.conditions import DATE_TEXT, DAY, MONTH, NUMBERS, YEAR, Comparison, Condition, Operator, year
from kgqa.search.rows import FieldKey, PathRows
from kgqa.search.words import pattern, stem_list, stems, word_table
from kgqa.text.words import is_anonymous

_DATE = re.compile(rf"{DATE_TEXT[YEAR]}|{DATE_TEXT[MONTH]}|{DATE_TEXT[DAY]}([TZ+-].*)?")


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


def read_time(text: str) -> tuple[Time | None, str]:
    """Return the time that a question names, and the words of a time that are not read.

    There is no time if the question names several, or one that is no range of years. The present is always read.
    """
    years = [match for match in pattern("{years}").finditer(text) if _is_year(match)]
    time = _time(years[0]) if len(years) == 1 else None
    rest = text.replace(time.cue, " ", 1) if time is not None else text
    finer = pattern("{finer_than_year}").search(text)
    unread = finer or pattern("{inexact_year}").search(text) or pattern("{other_time}").search(rest)
    if unread is None and time is None:
        unread = years[0] if years else None
        now = pattern("{now}").search(text)
        time = Time(now[0]) if now and not years else None
    elif unread is not None and (finer is None or _meaning(finer) != "in"):
        time = None  # "before May 1990" is not "before 1990"
    return time, unread[0].strip() if unread is not None else ""


def without_qualifier(text: str) -> tuple[str, str]:
    """Remove a year in parentheses, which belongs to the name before it; return the text, and the year or ""."""
    found = pattern(r"\s*\(\s*({common_year})\s*\)").search(text)
    return (text[: found.start()] + text[found.end() :], found[1]) if found else (text, "")


def _meaning(found: re.Match[str]) -> str:
    meaning: str = word_table("bounds", "en")[" ".join((found["how"] or "in").lower().split())]
    return meaning


def _is_year(found: re.Match[str]) -> bool:
    """Return whether a number is a year: 1998, 100 BC, the year 700, before 900; not higher than 2000 m."""
    if found["named"] or found["decade"] or not found["first"].isdigit():
        return True
    if pattern("{common_year}").fullmatch(found["first"]):
        return bool(found["how"]) or not found.string[: found.start()].lower().endswith("than ")
    bounded = (found["how"] or "of").lower() not in ("of", "for")
    return bounded and len(found["first"]) > 2 and pattern("{clause_end}").match(found.string, found.end()) is not None


def _time(found: re.Match[str]) -> Time | None:
    """Return the time of one year or range and the words around it; None if they do not agree."""
    meaning, first, cue = _meaning(found), _year(found["first"]), found[0]
    if found["decade"]:
        is_read = (found["how"] or "").lower() in ("in", "during") and not found["suffix"] and first % 10 == 0
        return Time(cue, first, first + 9) if is_read else None
    if found["now"]:
        return Time(cue, first, None)
    if found["last"]:
        is_range = meaning in ("from", "between") or found["to"] in "-–—"
        return Time(cue, first, _year(found["last"])) if is_range else None
    if found["later"] or (found["on"] and meaning == "from"):
        return Time(cue, first, None) if meaning in ("in", "from", "since") else None
    if found["earlier"]:
        return Time(cue, None, first) if meaning in ("in", "from", "until") else None
    bounds = {
        "before": (None, first - 1), "until": (None, first), "since": (first, None), "after": (first + 1, None),
        "in": (first, first), "from": (first, first),
    }  # fmt: skip
    cue = cue.removesuffix(found["on"] or "").rstrip()
    return Time(cue, *bounds[meaning]) if meaning in bounds else None


def _year(text: str) -> int:
    number = int(re.sub(r"\D", "", text))
    return -number if "b" in text.lower() else number


def is_date(value: Value) -> bool:
    """Return whether a value is a year, a month or a day."""
    if not isinstance(value, Literal) or not _DATE.fullmatch(value.value):
        return False
    return value.datatype not in NUMBERS


def time_conditions(
    time: Time, text: str, rows: PathRows, words: Mapping[FieldKey, str]
) -> tuple[tuple[Condition, ...], str]:
    """Return the conditions that a time puts on the dates of a path's nodes, and a note if they are weaker than it.

    Intervals of a mediator come first, then the dates of the ends that the question's verb names, then a single date.
    The dates of a person's life are only meant if the verb names them.

    Args:
        time: The time.
        text: The question.
        rows: Rows of the path.
        words: The words of each field.
    """
    last = len(rows.candidate.path)
    dates = _date_fields(rows)
    inner = [key for key in dates if key[0] < last]
    starts = [key for key in inner if _is(words[key], "interval_start", "interval_end")]
    ends = [key for key in inner if _is(words[key], "interval_end", "interval_start")]
    for start in sorted(starts, key=lambda key: -key[0]):
        for end in ends:
            if end[0] == start[0]:
                return _in_interval(time, start, end), ""
    if time.is_now:
        return _not_ended(ends[0]) if len(ends) == 1 else (), ""
    if all(is_date(value) for value in rows.ends):
        return _compared(time, (last, ())), ""
    verbs = pattern(r"\b{events}\b").findall(text)
    wanted = stems(" ".join(word_table("events", "en")[verb.lower()] for verb in verbs))
    named = [key for key in dates if set(wanted).intersection(stems(words[key]))]
    if named:
        return _compared(time, named[0]), ""
    life = {*stem_list("birth"), *stem_list("end")}
    at_end = [key for key in dates if key[0] == last and len(key[1]) == 1 and life.isdisjoint(stems(words[key]))]
    if len(inner) == 1 and inner[0] in starts:
        return _started(time, inner[0], words[inner[0]])
    single = next((keys[0] for keys in (inner, at_end) if len(keys) == 1), None)
    return _compared(time, single) if single else (), ""


def _date_fields(rows: PathRows) -> list[FieldKey]:
    """Return the fields all of whose values are dates, apart from values that are unknown or out of range."""
    values: dict[FieldKey, list[Value]] = {}
    for row in rows.rows:
        for field in row.fields:
            values.setdefault(field.key, []).extend(value.value for value in field.values)
    known = {key: [value for value in each if not _is_unknown(value)] for key, each in values.items()}
    return [key for key, each in known.items() if each and all(map(is_date, each))]


def _is_unknown(value: Value) -> bool:
    if isinstance(value, Entity):
        return is_anonymous(value.iri)
    return re.fullmatch(r"[-+]?\d{7,}(-.*)?", value.value) is not None


def _is(text: str, wanted: str, other: str) -> bool:
    last = set(stems(text)[-3:])
    return not last.isdisjoint(stem_list(wanted)) and last.isdisjoint(stem_list(other))


def _in_interval(time: Time, start: FieldKey, end: FieldKey) -> tuple[Condition, ...]:
    """Return the conditions for an interval that overlaps with a time; an interval without an end goes on."""
    if time.is_now:
        return _not_ended(end)
    begun = () if time.last is None else (Condition(*start, Comparison("<=", year(time.last))),)
    over = () if time.first is None else (Condition(*end, Comparison("<", year(time.first)), negated=True),)
    return (*begun, *over)


def _not_ended(end: FieldKey) -> tuple[Condition, ...]:
    """Return the condition that there is no end date before today: an end may be missing, or known in advance."""
    return (Condition(*end, Comparison("<", Literal(date.today().isoformat(), DAY)), negated=True),)


def _started(time: Time, start: FieldKey, words: str) -> tuple[tuple[Condition, ...], str]:
    """Return the condition for intervals of which the graph has only the start, and a note if it is too weak.

    An interval that began after the time does not overlap with it. Nothing is known of one that began before, unless
    the time has no beginning: whatever began by its end was the case by then.
    """
    if time.last is None:
        return (), ""
    conditions = (Condition(*start, Comparison("<=", year(time.last))),)
    note = f"Answers that ended before {time.first} may be included: the graph has “{words}” but no end dates."
    return conditions, "" if time.first is None else note


def _compared(time: Time, key: FieldKey) -> tuple[Condition, ...]:
    if time.first is not None and time.first == time.last:
        return (Condition(*key, Comparison("=", year(time.first))),)
    bounds: Sequence[tuple[Operator, int | None]] = ((">=", time.first), ("<=", time.last))
    return tuple(Condition(*key, Comparison(operator, year(bound))) for operator, bound in bounds if bound is not None)
