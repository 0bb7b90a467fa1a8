"""Finds the condition or extreme by which values were selected from a set whose features or degrees were looked up.

A language model looks up, say, the years of all films of a director, and answers with the earliest. The films are then
the ends of a path with the operation `least`. A comparison needs a number or name that the question contains.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal as OneOf

from kgqa.methods.counselor.hops import Hop
from kgqa.methods.counselor.observations import Found, Observation
from kgqa.methods.counselor.sets import Source
from kgqa.model import Candidate, Entity, Literal, RelationPath, Value
from kgqa.model.conditions import DATE_TEXT, DAY, NUMBER_TEXT, XSD, Comparison, Condition, Operation, Operator, year
from kgqa.text.words import local_words, normalise

_NUMBER_IN_TEXT = re.compile(r"(?<![\w.-])[0-9]{1,15}(?:\.[0-9]{1,6})?(?![\w-])")
_DAY = re.compile(rf"({DATE_TEXT[DAY]})(T.*)?")
Scale = OneOf["number", "day"]
Numbers = Mapping[Entity, Sequence[float]]
_INCLUSIVE = re.compile(
    r"\b(?:at least|at most|or (?:more|less|later|earlier)|since|from|no (?:later|more)|until|up to)\b"
)

_SUPERLATIVE = re.compile(r"\b(?:most|least|fewest|first|last|top|\w{3,}est)\b", re.IGNORECASE)


def selections(
    wanted: Collection[Value], question: str, observed: Sequence[Observation], names: Mapping[Value, str]
) -> Iterator[Candidate]:
    """Yield candidates whose ends may be the wanted values, the latest look-up first.

    Args:
        wanted: Some of the values of a set.
        question: The question; its numbers and names are compared with the values that were looked up.
        observed: The observations.
        names: The names of values that were seen.
    """
    done: set[tuple[object, Hop]] = set()
    for place in reversed(range(len(observed))):
        found = observed[place].found
        if found is None or found.of is None:
            continue
        if found.records:
            yield from _by_records(wanted, found, question, names)
        start, hop = found.of
        source = start.only
        if source is not None and source.candidate.path.steps and source.candidate.operation is None:
            if set(wanted) < set(source.values):
                looked_up = _looked_up(hop, [observed[place]])
                for part in _parts(wanted, source.values, hop, looked_up, question, names):
                    yield _restricted(source.candidate, part)
        elif all(not each.candidate.path.steps for each in start.sources) and len(wanted) == 1:
            yield from _compared(wanted, hop, observed[: place + 1])
        for part_of in start.sources if source is None else ():
            of = (part_of.candidate.identity, hop)
            if of not in done and set(wanted) < part_of.every and part_of.candidate.operation is None:
                done.add(of)
                looked_up = _looked_up(hop, _one_by_one(part_of, hop, observed[: place + 1]))
                for part in _parts(wanted, sorted(part_of.every, key=str), hop, looked_up, question, names):
                    yield _restricted(part_of.candidate, part)


def _by_records(
    wanted: Collection[Value], found: Found, question: str, names: Mapping[Value, str]
) -> Iterator[Candidate]:
    """Yield candidates with a condition on the records that selects the wanted ends; for a superlative, an extreme."""
    source = found.nodes.only
    if source is None or source.candidate.operation is not None or not set(wanted) < set(source.values):
        return
    record = len(source.candidate.path) - 1  # the index of the mediator in a walk
    names = {n.value: n.name for each in found.records for own in each.fields.values() for n in own} | dict(names)
    extremes = []
    for step in dict.fromkeys(step for each in found.records for step in each.fields):
        values: dict[Entity, list[Value]] = {}
        for each in found.records:
            for end in each.values:
                if isinstance(end.value, Entity):
                    values.setdefault(end.value, []).extend(field.value for field in each.fields.get(step, ()))
        for condition in _conditions(wanted, source.values, (step,), values, question, names):
            conditions = (*source.candidate.conditions, replace(condition, at=record))
            yield replace(source.candidate, conditions=conditions)
        extremes += [each for each in _extremes(wanted, (step,), (values, {})) if not each.counted]
    if _SUPERLATIVE.search(question):
        yield from (replace(source.candidate, operation=replace(each, at=record)) for each in extremes)


def _one_by_one(source: Source, hop: Hop, observed: Sequence[Observation]) -> list[Observation]:
    """Return the observations in which a hop was followed from some ends of a path; none if an end is missing."""
    found: dict[Value, Observation] = {}
    for each in observed:
        if each.found is not None and each.found.of is not None and each.found.of[1] == hop:
            for start in each.found.of[0].sources:
                if start.candidate.identity == source.candidate.identity:
                    found |= dict.fromkeys(start.values, each)
    return list(found.values()) if source.exact and set(found) == source.every else []


_LookedUp = tuple[Mapping[Entity, Sequence[Value]], Mapping[Entity, int]]
"""The values of nodes, and their numbers of values if only these were looked up."""


def _looked_up(hop: Hop, observed: Sequence[Observation]) -> _LookedUp:
    values: dict[Entity, Sequence[Value]] = {}
    counts: dict[Entity, int] = {}
    for each in observed:
        if each.found is not None and each.found.of is not None and each.found.of[1] == hop:
            values |= each.found.pairs
            numbers = each.found.numbers
            counts |= {n.node.value: n.number for n in numbers if n.node and isinstance(n.node.value, Entity)}
    return values, counts


def _parts(
    wanted: Collection[Value],
    every: Sequence[Value],
    hop: Hop,
    looked_up: _LookedUp,
    question: str,
    names: Mapping[Value, str],
) -> Iterator[Condition | Operation]:
    """Yield the operations and conditions on the ends that select the wanted nodes."""
    extremes, conditions = (
        _extremes(wanted, hop, looked_up),
        _conditions(wanted, every, hop, looked_up[0], question, names),
    )
    yield from chain(extremes, conditions) if _SUPERLATIVE.search(question) else chain(conditions, extremes)


def _conditions(
    wanted: Collection[Value],
    every: Sequence[Value],
    hop: Hop,
    values: Mapping[Entity, Sequence[Value]],
    question: str,
    names: Mapping[Value, str],
) -> Iterator[Condition]:
    """Yield the conditions with a name or number of the question that select the wanted nodes."""
    nodes = [node for node in every if isinstance(node, Entity)]
    text = f" {normalise(question)} "
    shared = set[Value]().union(*(values.get(node, ()) for node in nodes))
    for value in sorted(shared, key=str):
        having = {node for node in nodes if value in values.get(node, ())}
        if having != set(wanted):
            continue
        name = names.get(value) or (local_words(value.iri) if isinstance(value, Entity) else value.value)
        if normalise(name) and f" {normalise(name)} " in text:
            test = value if isinstance(value, Entity) else _equal(value)
            if test is not None:
                yield Condition(1, hop, test)
    for comparison in _comparisons(question):
        if {node for node in nodes if any(_fulfils(value, comparison) for value in values.get(node, ()))} == set(
            wanted
        ):
            yield Condition(1, hop, comparison)


def _restricted(candidate: Candidate, part: Condition | Operation) -> Candidate:
    """Return the candidate with an operation, or with a condition on its ends."""
    if isinstance(part, Operation):
        return replace(candidate, operation=part)
    return replace(candidate, conditions=(*candidate.conditions, replace(part, at=len(candidate.path))))


def _compared(wanted: Collection[Value], hop: Hop, observed: Sequence[Observation]) -> Iterator[Candidate]:
    """Yield the comparison of the topics for which the same hop was looked up."""
    topics: dict[Entity, None] = {}
    for each in observed:
        if each.found is not None and each.found.of is not None and each.found.of[1] == hop:
            sources = each.found.of[0].sources
            topics |= dict.fromkeys(s.candidate.path.topic for s in sources if not s.candidate.path.steps)
    if len(topics) < 2 or not set(wanted) <= set(topics):
        return
    compared = tuple(topics)
    for operation in _extremes(wanted, hop, _looked_up(hop, observed)):
        yield Candidate(
            RelationPath(compared[0]), "comparison of topics", operation=replace(operation, topics=compared)
        )


def _extremes(wanted: Collection[Value], hop: Hop, looked_up: _LookedUp) -> Iterator[Operation]:
    values, counts = looked_up
    numbers: list[tuple[Numbers, Operation]] = []
    for scale in ("number", "day"):
        read = {node: found for node, own in values.items() if (found := _numbers(own, scale))}
        numbers.append((read, Operation("most", hop, scale=scale)))
    degrees = counts or {node: len(set(own)) for node, own in values.items()}
    numbers.append(({node: [count] for node, count in degrees.items() if count}, Operation("most", hop, counted=True)))
    for by_node, operation in numbers:
        if len({number for own in by_node.values() for number in own}) < 2:
            continue
        most = max(max(own) for own in by_node.values())
        least = min(min(own) for own in by_node.values())
        if {node for node, own in by_node.items() if max(own) == most} == set(wanted):
            yield operation
        if {node for node, own in by_node.items() if min(own) == least} == set(wanted):
            yield replace(operation, kind="least")


def _numbers(values: Sequence[Value], scale: Scale) -> list[float]:
    """Return the numbers, or the days as numbers, among some values."""
    texts = [value.value for value in values if isinstance(value, Literal)]
    if scale == "number":
        return [float(text) for text in texts if re.fullmatch(NUMBER_TEXT, text)]
    days = (found[1] for text in texts if (found := _DAY.fullmatch(text)))
    return [float(day[0] + day[1:].replace("-", "")) for day in days]


def _comparisons(question: str) -> Iterator[Comparison]:
    """Yield comparisons with the numbers of a question, strict ones first unless the question includes the number."""
    operators: list[Operator] = ["<", ">", "<=", ">=", "="]
    if _INCLUSIVE.search(question.lower()):
        operators = ["<=", ">=", "<", ">", "="]
    for text in dict.fromkeys(_NUMBER_IN_TEXT.findall(question)):
        datatype = XSD + ("decimal" if "." in text else "integer")
        for operator in operators:
            yield Comparison(operator, Literal(text, datatype))
            if re.fullmatch("[0-9]{4}", text):
                yield Comparison(operator, year(int(text)))


def _fulfils(value: Value, comparison: Comparison) -> bool:
    if not isinstance(value, Literal):
        return False
    limit = float(comparison.value.value)
    if comparison.scale == "number":
        if not re.fullmatch(NUMBER_TEXT, value.value):
            return False
        number = float(value.value)
    else:
        found = _DAY.fullmatch(value.value)
        if found is None:
            return False
        number = float(found[1][0] + found[1][1:].split("-")[0])
    return {
        "<": number < limit,
        "<=": number <= limit,
        ">": number > limit,
        ">=": number >= limit,
        "=": number == limit,
    }.get(comparison.operator, False)


def _equal(value: Literal) -> Comparison | None:
    """Return the comparison with a text or number; None if the text cannot be compared."""
    try:
        if re.fullmatch(NUMBER_TEXT, value.value):
            return Comparison("=", Literal(value.value, XSD + "decimal"))
        return Comparison("=", Literal(value.value))
    except ValueError:
        return None
