"""Finds the conditions that a question puts on a path: times, values named beside the walks, types, and exclusions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kgqa.conditions import Condition
from kgqa.explore.conditions.beside import stems
from kgqa.explore.conditions.times import Time, read_time, time_conditions
from kgqa.explore.rows import Field, FieldKey, PathRows
from kgqa.model import Candidate, Entity, Named
from kgqa.rank.lexical import terms
from kgqa.words import normalise, relation_words

_EXCLUDING = re.compile(
    r"\b(?:other than|besides|except(?: for)?|apart from|excluding|aside from|but not|is not|was not|isn't|wasn't|not)\s+"
    r"(?:(?:in|by|from|the|a|an|with|called|named)\s+)*(?P<name>[^,?]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Found:
    """Conditions that were found on a path.

    Attributes:
        candidate: The path with the conditions.
        cues: The words of the question that led to them, one per condition.
        explained: How many words of the question they explain.
    """

    candidate: Candidate
    cues: tuple[str, ...] = ()
    explained: int = 0


@dataclass(frozen=True, slots=True)
class Wording:
    """What the question says apart from the names of its topics.

    Attributes:
        text: The question without its topics.
        time: The time in it.
        excluded: The name after "other than" and the like; "" if there is none.
        noun: The noun that the answers are, such as "university".
    """

    text: str
    time: Time | None
    excluded: str = ""
    noun: str = ""

    @classmethod
    def of(cls, text: str, noun: str = "") -> Wording:
        found = _EXCLUDING.search(text)
        return cls(text, read_time(text), found["name"].strip() if found else "", noun)

    def unexplained(self, candidate: Candidate) -> tuple[str, ...]:
        """Return the stems of the words that neither the path nor the type of its ends explains."""
        known = set(terms(" ".join([candidate.words, candidate.leads_to, self.noun])))
        return tuple(each for each in dict.fromkeys(terms(self.text)) if each not in known)


def conditions_on(rows: PathRows, wording: Wording, labels: Mapping[str, str], schema: object) -> Found:
    """Return a path with the conditions that the question puts on it.

    Args:
        rows: Rows of the path.
        wording: The question without its topics.
        labels: Labels of relations.
        schema: The schema of the graph.
    """
    candidate = rows.candidate
    found = Found(candidate)
    if not rows.rows:
        return found
    every = [field for row in rows.rows for field in row.fields]
    if wording.time is not None:
        words = {
            field.key: " ".join(relation_words(step.relation, schema, labels) for step in field.steps)  # type: ignore[arg-type]
            for field in every
        }
        times = time_conditions(wording.time, wording.text, rows, words)
        if times:
            found = _more(found, times, wording.time.cue, 1)
    if wording.excluded:
        found = _excluding(found, rows, wording.excluded)
    return _named(found, rows, every, wording)


def _more(found: Found, conditions: Sequence[Condition], cue: str, explained: int) -> Found:
    candidate = replace(found.candidate, conditions=(*found.candidate.conditions, *conditions))
    return Found(candidate, (*found.cues, *[cue] * len(conditions)), found.explained + explained)


def _excluding(found: Found, rows: PathRows, name: str) -> Found:
    wanted = normalise(name)
    last = len(rows.candidate.path)
    for row in rows.rows:
        if isinstance(row.end.value, Entity) and normalise(row.end.name) == wanted:
            return _more(found, [Condition(last, (), row.end.value, negated=True)], name, len(terms(name)))
    for row in rows.rows:
        for field in row.fields:
            for value in field.values:
                if isinstance(value.value, Entity) and normalise(value.name) == wanted:
                    return _more(found, [Condition(*field.key, value.value, negated=True)], name, len(terms(name)))
    return found


def _named(found: Found, rows: PathRows, every: Sequence[Field], wording: Wording) -> Found:
    """Add the values beside the walks whose names stand in the question, longest names first."""
    unexplained = set(wording.unexplained(rows.candidate))
    text = f" {normalise(wording.text)} "
    kept = frozenset(range(len(rows.rows)))
    for key, value in sorted(_values(every), key=lambda item: -len(item[1].name)):
        name = normalise(value.name)
        words = set(terms(name))
        if not words or not words <= unexplained or f" {name} " not in text:
            continue
        having = frozenset(number for number, row in enumerate(rows.rows) if _has(row.fields, key, value))
        if not having & kept or kept <= having or not isinstance(value.value, Entity):
            continue
        kept &= having
        unexplained -= words
        found = _more(found, [Condition(*key, value.value)], value.name, len(words))
    return found


def _values(fields: Iterable[Field]) -> list[tuple[FieldKey, Named]]:
    return list(dict.fromkeys((field.key, value) for field in fields for value in field.values))


def _has(fields: Iterable[Field], key: FieldKey, value: Named) -> bool:
    return any(field.key == key and value in field.values for field in fields)


def leftover(wording: Wording, found: Found) -> tuple[str, ...]:
    """Return the stems of the question's words that are still unexplained."""
    known = {each for cue in found.cues for each in stems(cue)}
    return tuple(each for each in wording.unexplained(found.candidate) if each not in known)
