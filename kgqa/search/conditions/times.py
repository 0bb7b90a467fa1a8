"""Years and the present in a question, and the conditions that they put on the dates beside a path."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity, Literal, Value
from kgqa.model.conditions import DATE_TEXT, DAY, MONTH, NUMBERS, XSD, YEAR, Comparison, Condition, Operator, year
from kgqa.search.conditions.rows import FieldKey, PathRows
from kgqa.search.masking import Span
from kgqa.search.words import meaning, pattern, stem_list, stems
from kgqa.text.words import is_anonymous, relation_words

NO_ENDS = "Answers that ended before {} may be included: the graph has “{}” but no end dates."
_FIRST = re.compile(r"-?\d+")
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

    The time is None if the question names several, or one that is not a range of years. Words for the present count
    only if the question names no year.
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
    elif unread is not None and (finer is None or meaning("bounds", finer["how"] or "in") != "in"):
        time = None  # "before May 1990" is not "before 1990"
    return time, unread[0].strip() if unread is not None else ""


def with_years_of_event(graph: KnowledgeGraph, text: str, spans: Sequence[Span]) -> tuple[str, Entity | None]:
    """Put the years of an event in place of "during EVENT"; return the text and the event, None if there is none."""
    for span in spans:
        before = pattern(r"\b(?:during|throughout)\s+(?:the\s+)?$").search(text[: span.start])
        values = [value for *_, value in graph.paths.edges([span.topic])] if before and len(spans) > 1 else []
        dates = [value.value for value in values if isinstance(value, Literal) and is_date(value)]
        years = sorted(int(found[0]) for found in map(_FIRST.match, dates) if found)
        if before and years:
            return f"{text[: before.start()]}from {years[0]} to {years[-1]}{text[span.end :]}", span.topic
    return text, None


def without_qualifier(text: str) -> tuple[str, str]:
    """Remove a year in parentheses, which belongs to the name before it; return the text, and the year or ""."""
    found = pattern(r"\s*\(\s*({common_year})\s*\)").search(text)
    return (text[: found.start()] + text[found.end() :], found[1]) if found else (text, "")


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
    how, first, cue = meaning("bounds", found["how"] or "in"), _year(found["first"]), found[0]
    if found["decade"]:
        is_read = (found["how"] or "").lower() in ("in", "during") and not found["suffix"] and first % 10 == 0
        return Time(cue, first, first + 9) if is_read else None
    if found["last"]:
        return Time(cue, first, _year(found["last"])) if how in ("from", "between") or found["to"] in "-–—" else None
    if found["later"] or found["now"]:
        how = "since" if how in ("in", "from", "since", "between") else ""
    elif found["earlier"]:
        how = "until" if how in ("in", "from", "until") else ""
    bounds = {
        "before": (None, first - 1), "until": (None, first), "since": (first, None), "after": (first + 1, None),
        "in": (first, first), "from": (first, first),
    }  # fmt: skip
    return Time(cue, *bounds[how]) if how in bounds else None


def _year(text: str) -> int:
    number = int(re.sub(r"\D", "", text))
    return -number if "b" in text.lower() else number


def is_date(value: Value) -> bool:
    """Return whether a value is a year, a month or a day."""
    return isinstance(value, Literal) and bool(_DATE.fullmatch(value.value)) and value.datatype not in NUMBERS


def time_conditions(graph: KnowledgeGraph, time: Time, text: str, rows: PathRows) -> tuple[list[Condition], str]:
    """Return the conditions that a time puts on the dates of a path's nodes, and a note if they are weaker than it.

    Intervals of a mediator come first, then the dates of the ends that the question's verb names, then a single date.
    The dates of a person's life are only meant if the verb names them.

    Args:
        graph: The graph.
        time: The time.
        text: The question.
        rows: Rows of the path.
    """
    last = len(rows.candidate.path)
    schema, labels = graph.schema, graph.tables.relation_labels
    fields: dict[FieldKey, list[Value]] = defaultdict(list)
    for key, value in rows.values():
        if not is_unknown(value.value):
            fields[key].append(value.value)
    words = {key: " ".join(relation_words(step.relation, schema, labels) for step in key[1]) for key in fields}
    wanted = set(stems(" ".join(meaning("events", verb) for verb in pattern(r"\b{events}\b").findall(text))))
    of_years = {key for key in words if not {"year", *wanted}.isdisjoint(stems(words[key]))}
    numbers = {key for key in of_years if all(map(is_number_of_year, fields[key]))}
    words = {key: words[key] for key, values in fields.items() if key in numbers or all(map(is_date, values))}
    inner = [key for key in words if key[0] < last]
    typed = [key for key in inner if key not in numbers]
    starts = [key for key in typed if _is(words[key], "interval_start", "interval_end")]
    ends = [key for key in typed if _is(words[key], "interval_end", "interval_start")]
    intervals = [(start, end) for start in starts for end in ends if start[0] == end[0]]
    if intervals:
        return _overlapping(time, *max(intervals, key=lambda pair: pair[0][0])), ""
    if time.is_now:
        return _overlapping(time, None, ends[0]) if len(ends) == 1 else [], ""
    named = [key for key in words if not wanted.isdisjoint(stems(words[key]))]
    life = {*stem_list("birth"), *stem_list("end")}
    at_end = [key for key in words if key[0] == last and len(key[1]) == 1 and life.isdisjoint(stems(words[key]))]
    dated: list[FieldKey] = [(last, ())] if all(map(is_date, rows.ends)) else []
    place = next((keys[0] for keys in (dated, named[:1], inner, at_end) if len(keys) == 1), None)
    # without ends, what opened or was founded is an event, and not in force since then
    is_event = place is not None and not set(stem_list("event_start")).isdisjoint(stems(words[place]))
    if place is None or place not in starts or place in named or is_event:
        return _compared(time, place, is_number=place in numbers) if place else [], ""
    return _overlapping(time, place, None), NO_ENDS.format(time.first, words[place]) if time.first is not None else ""


def is_number_of_year(value: Value) -> bool:
    """Return whether a value is a number that may be a year."""
    return isinstance(value, Literal) and value.datatype in NUMBERS and bool(re.fullmatch(r"\d{4}", value.value))


def is_unknown(value: Value) -> bool:
    """Return whether a value stands for an unknown one, or is a date out of range."""
    if isinstance(value, Entity):
        return is_anonymous(value.iri)
    return re.fullmatch(r"[-+]?\d{7,}(-.*)?", value.value) is not None


def _is(text: str, wanted: str, other: str) -> bool:
    last = set(stems(text)[-3:])
    return not last.isdisjoint(stem_list(wanted)) and last.isdisjoint(stem_list(other))


def _overlapping(time: Time, start: FieldKey | None, end: FieldKey | None) -> list[Condition]:
    """Return the conditions for an interval that overlaps with a time.

    An interval that began after the time does not. One that ended before it does not; an end may be missing because the
    interval goes on, or lie in the future because it is known in advance.
    """
    found = []
    if start and time.last is not None:
        found.append(Condition(*start, Comparison("<=", year(time.last))))
    if end and (time.is_now or time.first is not None):
        since = Literal(date.today().isoformat(), DAY) if time.first is None else year(time.first)
        found.append(Condition(*end, Comparison("<", since), negated=True))
    return found


def _compared(time: Time, key: FieldKey, *, is_number: bool) -> list[Condition]:
    bounds: Sequence[tuple[Operator, int | None]] = ((">=", time.first), ("<=", time.last))
    if time.first == time.last:
        bounds = (("=", time.first),)
    return [
        Condition(*key, Comparison(operator, Literal(str(bound), XSD + "integer") if is_number else year(bound)))
        for operator, bound in bounds
        if bound is not None
    ]
