"""Finds the condition or extreme by which values were selected from a set whose features or degrees were looked up.

A language model looks up, say, the years of all films of a director, and answers with the earliest. The films are then
the ends of a path with the operation `least`. A comparison needs a number, date or name that the question contains.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

from kgqa.corpus.extraction.rules.values import DATE_PATTERN, date_literal
from kgqa.methods.counselor.names import Hop
from kgqa.methods.counselor.observations import CallResult, ObservedCall
from kgqa.model import Candidate, Entity, Literal, RelationPath, Value
from kgqa.model.conditions import (
    DATE_TEXT,
    DAY,
    NUMBER_TEXT,
    XSD,
    YEAR,
    Comparison,
    Condition,
    Operation,
    Operator,
    Scale,
)
from kgqa.rank.lexical import terms
from kgqa.search.words import word_table
from kgqa.text.words import local_words, normalise

_NUMBER = re.compile(r"(?<![\w.-])[0-9]{1,15}(?:\.[0-9]{1,6})?(?![\w-])")
_DATE = re.compile(rf"(?<!\w)(?:{DATE_PATTERN})", re.IGNORECASE)
_DAY = re.compile(rf"({DATE_TEXT[DAY]})(T.*)?")
_INCLUSIVE = re.compile(
    r"\b(?:at least|at most|or (?:more|less|later|earlier)|since|from|no (?:later|more)|until|up to)\b", re.IGNORECASE
)
_SUPERLATIVE = re.compile(r"\b(?:most|least|fewest|first|last|top|\w{3,}est)\b", re.IGNORECASE)
_COMPARE: Mapping[Operator, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
}
_SCALED: Sequence[OneOf["number", "day"]] = ("number", "day")
_SCALES = {"year": 10_000, "month": 100, "day": 1}
"""By what the number of a day, such as 19670502, is divided to get that of its year, month or day."""


@dataclass(frozen=True)
class LookUp:
    """What was looked up of the ends of a path, of the records before them, or of topics.

    Attributes:
        base: The path; without steps for topics.
        hop: The hop along which it was looked up.
        values: The values of each end.
        counts: Their numbers of values, if only these were looked up.
        at: The index in a walk of the records; None for the ends.
    """

    base: Candidate
    hop: Hop
    values: Mapping[Value, Sequence[Value]]
    counts: Mapping[Value, int] = field(default_factory=dict)
    at: int | None = None


def selections(
    wanted: Collection[Value], question: str, observed: Sequence[ObservedCall], names: Mapping[Value, str]
) -> Iterator[Candidate]:
    """Yield candidates whose ends may be the wanted values, the latest look-up first.

    Args:
        wanted: Some of the values of a set.
        question: The question; its numbers and names are compared with the values that were looked up.
        observed: The observations.
        names: The names of values that were seen.
    """
    superlative = _SUPERLATIVE.search(question) is not None
    for look_up in _look_ups(set(wanted), question, observed):
        base, topics = look_up.base, look_up.base.operation.topics if look_up.base.operation else ()
        extremes = _extremes(set(wanted), look_up) if superlative or look_up.at is None else ()
        operations = [replace(base, operation=replace(each, topics=topics)) for each in extremes]
        conditions = () if topics else _conditions(set(wanted), look_up, question, names)
        conditioned = (replace(base, conditions=(*base.conditions, each)) for each in conditions)
        yield from (*operations, *conditioned) if superlative else (*conditioned, *operations)


def _look_ups(wanted: set[Value], question: str, observed: Sequence[ObservedCall]) -> Iterator[LookUp]:
    """Yield what was looked up of sets of which the wanted values are a part; the nodes may be looked up one by one."""
    followed = [(each.found, *each.found.of) for each in observed if each.found.of]
    for place in reversed(range(len(followed))):
        found, start, hop = followed[place]
        if found.records and wanted < set(found.nodes.values):
            yield from _of_records(found, question)
        for source in start.sources:
            steps, identity = source.candidate.path.steps, source.candidate.identity
            parts = [
                (each, part)
                for each, other, its_hop in followed[: place + 1]
                for part in other.sources
                if its_hop == hop and (part.candidate.identity == identity if steps else not part.candidate.path.steps)
            ]
            every = dict.fromkeys(value for _, part in parts for value in part.values)
            is_whole = every.keys() == source.every and source.exact and source.candidate.operation is None
            if not wanted < every.keys() or (steps and not is_whole):
                continue
            values: dict[Value, Sequence[Value]] = {
                node: own for each, _ in parts for node, own in each.pairs.items() if node in every
            }
            counts = {n.node.value: n.number for each, _ in parts for n in each.numbers if n.node}
            if steps:
                yield LookUp(source.candidate, hop, values, counts)
            elif len(wanted) == 1:
                topics = tuple(node for node in every if isinstance(node, Entity))
                compared = Operation("most", hop, topics=topics)
                path = RelationPath(topics[0])
                yield LookUp(Candidate(path, "comparison of topics", operation=compared), hop, values, counts)


def _of_records(found: CallResult, question: str) -> Iterator[LookUp]:
    """Yield the fields of the records through which a hop leads, those first that the question names."""
    source = found.nodes.path
    if source is None:
        return
    asked = set(terms(question))
    steps = dict.fromkeys(step for each in found.records for step in each.fields)
    for step in sorted(steps, key=lambda step: -len(asked & {*terms(local_words(step.relation))})):
        values: dict[Value, list[Value]] = {}
        for record in found.records:
            for end in (each for each in record.values if isinstance(each.value, Entity)):
                values.setdefault(end.value, []).extend(named.value for named in record.fields.get(step, ()))
        yield LookUp(source.candidate, (step,), values, at=len(source.candidate.path) - 1)


def _conditions(wanted: set[Value], look_up: LookUp, question: str, names: Mapping[Value, str]) -> Iterator[Condition]:
    """Yield the conditions with a name, number or date of the question that select the wanted nodes."""
    at = len(look_up.base.path) if look_up.at is None else look_up.at
    dates = [literal for found in _DATE.finditer(question) if (literal := date_literal(found))]
    text = _with_values(question, dates)
    test: Entity | Comparison
    for value in sorted({value for own in look_up.values.values() for value in own}, key=str):
        if isinstance(value, Entity):
            test, name = value, names.get(value) or local_words(value.iri)
        else:
            kind = "decimal" if re.fullmatch(NUMBER_TEXT, value.value) else "string"
            test, name = Comparison("=", Literal(value.value, XSD + kind)), value.value
        is_named = normalise(name) and f" {normalise(name)} " in text
        if is_named and {n for n, own in look_up.values.items() if value in own} == wanted:
            yield Condition(at, look_up.hop, test)
    for comparison in _comparisons(question, text, dates):
        compare, limit = _COMPARE[comparison.operator], float(comparison.value.value.replace("-", ""))
        amounts = {node: _amounts(own, comparison.scale) for node, own in look_up.values.items()}
        if {node for node, own in amounts.items() if any(compare(each, limit) for each in own)} == wanted:
            yield Condition(at, look_up.hop, comparison)


def _with_values(question: str, dates: Sequence[Literal]) -> str:
    """Return the words of a question, with its numbers and dates also in the form in which graphs write them."""
    table = word_table("numbers", "en")
    numbers = (str(table[word]) for word in normalise(question).split() if word in table and len(word) > 2)
    return f" {' , '.join(map(normalise, [question, *numbers, *(each.value for each in dates)]))} "


def _comparisons(question: str, text: str, dates: Sequence[Literal]) -> Iterator[Comparison]:
    """Yield the comparisons with dates and numbers of a question, strict ones first unless it includes the number."""
    inclusive = _INCLUSIVE.search(question)
    operators: Sequence[Operator] = ("<=", ">=", "<", ">", "=") if inclusive else ("<", ">", "<=", ">=", "=")
    literals = [each for each in dates if each.datatype != YEAR]
    for number in dict.fromkeys([*_NUMBER.findall(question), *_NUMBER.findall(text)]):
        literals.append(Literal(number, XSD + ("decimal" if "." in number else "integer")))
        literals += [Literal(number, YEAR)] if re.fullmatch("[0-9]{4}", number) else []
    return (Comparison(each, literal) for literal in literals for each in operators)


def _extremes(wanted: set[Value], look_up: LookUp) -> Iterator[Operation]:
    """Yield the operations that select the wanted nodes: by a number, a date, or a number of values."""
    counts = look_up.counts or {node: len({*own}) for node, own in look_up.values.items()}
    by_operation: dict[Operation, dict[Value, list[float]]] = {
        Operation("most", look_up.hop, scale, at=look_up.at): {
            node: _amounts(own, scale) for node, own in look_up.values.items()
        }
        for scale in _SCALED
    }
    if look_up.at is None:
        by_operation[Operation("most", look_up.hop, counted=True)] = {node: [n] for node, n in counts.items() if n}
    for operation, amounts in by_operation.items():
        valued = {node: own for node, own in amounts.items() if own}
        if len({amount for own in valued.values() for amount in own}) < 2:
            continue
        most, least = max(map(max, valued.values())), min(map(min, valued.values()))
        if {node for node, own in valued.items() if max(own) == most} == wanted:
            yield operation
        if {node for node, own in valued.items() if min(own) == least} == wanted:
            yield replace(operation, kind="least")


def _amounts(values: Sequence[Value], scale: Scale) -> list[float]:
    """Return the numbers among some values, or their days, months or years as numbers, such as 19670502."""
    texts = [value.value for value in values if isinstance(value, Literal)]
    if scale == "number":
        return [float(text) for text in texts if re.fullmatch(NUMBER_TEXT, text)]
    days = [found[1] for text in texts if (found := _DAY.fullmatch(text))]
    return [float(day[0] + day[1:].replace("-", "")) // _SCALES[scale] for day in days]
