"""Finds the condition or extreme by which values were selected from a set whose features or degrees were looked up.

A language model looks up, say, the years of all films of a director, and answers with the earliest. The films are then
the ends of a path with the operation `least`. A comparison needs a number, date or name that the question contains.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from kgqa.corpus.extraction.rules.values import DATE_PATTERN, date_literal
from kgqa.methods.counselor.hops import Hop
from kgqa.methods.counselor.observations import Found, Observation
from kgqa.methods.counselor.sets import Source
from kgqa.model import Candidate, Entity, Literal, RelationPath, Step, Value
from kgqa.model.conditions import DATE_TEXT, DAY, NUMBER_TEXT, XSD, YEAR, Comparison, Condition, Operation, Operator
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
_SCALES = {"year": 10_000, "month": 100, "day": 1}
"""By what the number of a day, such as 19670502, is divided to get that of its year, month or day."""


@dataclass(frozen=True)
class Choice:
    """A choice from a set: the values that were chosen, the question, and the names of values that were seen."""

    wanted: frozenset[Value]
    question: str
    names: Mapping[Value, str]

    @property
    def has_superlative(self) -> bool:
        """Whether the question asks for an extreme."""
        return _SUPERLATIVE.search(self.question) is not None

    @property
    def text(self) -> str:
        """The words of the question, with its numbers and dates also in the form in which graphs write them."""
        table = word_table("numbers", "en")
        numbers = (str(table[word]) for word in normalise(self.question).split() if word in table and len(word) > 2)
        dates = (literal.value for found in _DATE.finditer(self.question) if (literal := date_literal(found)))
        return f" {' , '.join(map(normalise, [self.question, *numbers, *dates]))} "

    def names_value(self, value: Value) -> bool:
        """Return whether the question names a value."""
        name = self.names.get(value) or (local_words(value.iri) if isinstance(value, Entity) else value.value)
        return bool(normalise(name)) and f" {normalise(name)} " in self.text

    def asks_for(self, step: Step) -> int:
        """Return how many words of a relation the question has."""
        return len({*terms(local_words(step.relation))} & {*terms(self.question)})

    @property
    def comparisons(self) -> Iterator[Comparison]:
        """The comparisons with numbers and dates of the question, strict ones first unless it includes the number."""
        inclusive = _INCLUSIVE.search(self.question)
        operators: Sequence[Operator] = ("<=", ">=", "<", ">", "=") if inclusive else ("<", ">", "<=", ">=", "=")
        dates = [literal for found in _DATE.finditer(self.question) if (literal := date_literal(found))]
        numbers = dict.fromkeys([*_NUMBER.findall(self.question), *_NUMBER.findall(self.text)])
        for literal in [each for each in dates if each.datatype != YEAR]:
            yield from (Comparison(each, literal) for each in operators)
        for text in numbers:
            for each in operators:
                yield Comparison(each, Literal(text, XSD + ("decimal" if "." in text else "integer")))
                if re.fullmatch("[0-9]{4}", text):
                    yield Comparison(each, Literal(text, YEAR))


@dataclass(frozen=True)
class LookUp:
    """What was looked up of nodes along a hop: their values, or only their numbers of values."""

    hop: Hop
    values: Mapping[Entity, Sequence[Value]]
    counts: Mapping[Value, int] = field(default_factory=dict)


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
    choice = Choice(frozenset(wanted), question, names)
    followed = [(each.found, *each.found.of) for each in observed if each.found is not None and each.found.of]
    for place in reversed(range(len(followed))):
        found, start, hop = followed[place]
        same_hop = [(each, its_start) for each, its_start, its_hop in followed[: place + 1] if its_hop == hop]
        if found.records:
            yield from _by_records(choice, found)
        source = start.only
        if source is not None and source.candidate.path.steps and source.candidate.operation is None:
            yield from _chosen(choice, source, source.values, hop, [found])
        elif all(not each.candidate.path.steps for each in start.sources) and len(wanted) == 1:
            topics = dict.fromkeys(
                each.candidate.path.topic
                for _, its_start in same_hop
                for each in its_start.sources
                if not each.candidate.path.steps
            )
            yield from _compared(choice, tuple(topics), hop, [each for each, _ in same_hop])
        for part_of in start.sources if source is None else ():  # the nodes were looked up one by one
            looked_up: dict[Value, Found] = {}
            for each, its_start in same_hop:
                same = (own for own in its_start.sources if own.candidate.identity == part_of.candidate.identity)
                looked_up |= {value: each for own in same for value in own.values}
            if part_of.exact and part_of.candidate.operation is None and looked_up.keys() == part_of.every:
                yield from _chosen(choice, part_of, sorted(part_of.every, key=str), hop, looked_up.values())


def _look_up(hop: Hop, found: Collection[Found]) -> LookUp:
    values = {node: own for each in found for node, own in each.pairs.items()}
    return LookUp(hop, values, {n.node.value: n.number for each in found for n in each.numbers if n.node})


def _chosen(
    choice: Choice, source: Source, every: Sequence[Value], hop: Hop, found: Collection[Found]
) -> Iterator[Candidate]:
    """Yield the path with the operations and conditions on its ends that select the wanted nodes."""
    if not choice.wanted < set(every):
        return
    looked_up, place = _look_up(hop, found), len(source.candidate.path)
    operations = (replace(source.candidate, operation=each) for each in _extremes(choice, looked_up))
    conditioned = (
        replace(source.candidate, conditions=(*source.candidate.conditions, replace(each, at=place)))
        for each in _conditions(choice, every, looked_up)
    )
    yield from chain(operations, conditioned) if choice.has_superlative else chain(conditioned, operations)


def _compared(choice: Choice, topics: tuple[Entity, ...], hop: Hop, found: Collection[Found]) -> Iterator[Candidate]:
    """Yield the comparison of the topics for which the same hop was looked up."""
    if len(topics) > 1 and choice.wanted <= set(topics):
        for operation in _extremes(choice, _look_up(hop, found)):
            path = RelationPath(topics[0])
            yield Candidate(path, "comparison of topics", operation=replace(operation, topics=topics))


def _by_records(choice: Choice, found: Found) -> Iterator[Candidate]:
    """Yield candidates with a condition on the records that selects the wanted ends; for a superlative, an extreme.

    The fields that the question names come first.
    """
    source = found.nodes.only
    if source is None or source.candidate.operation is not None or not choice.wanted < set(source.values):
        return
    at = len(source.candidate.path) - 1  # the index of the mediator in a walk
    names = {n.value: n.name for each in found.records for own in each.fields.values() for n in own}
    choice = replace(choice, names=names | dict(choice.names))
    extremes = []
    steps = dict.fromkeys(step for each in found.records for step in each.fields)
    for step in sorted(steps, key=choice.asks_for, reverse=True):
        values: dict[Entity, list[Value]] = {}
        for each in found.records:
            for end in each.values:
                if isinstance(end.value, Entity):
                    values.setdefault(end.value, []).extend(named.value for named in each.fields.get(step, ()))
        looked_up = LookUp((step,), values)
        for condition in _conditions(choice, source.values, looked_up):
            yield replace(source.candidate, conditions=(*source.candidate.conditions, replace(condition, at=at)))
        extremes += [each for each in _extremes(choice, looked_up) if not each.counted]
    if choice.has_superlative:
        yield from (replace(source.candidate, operation=replace(each, at=at)) for each in extremes)


def _conditions(choice: Choice, every: Sequence[Value], looked_up: LookUp) -> Iterator[Condition]:
    """Yield the conditions with a name, number or date of the question that select the wanted nodes."""
    own = {node: looked_up.values.get(node, ()) for node in every if isinstance(node, Entity)}
    for value in sorted({value for values in own.values() for value in values}, key=str):
        test = value if isinstance(value, Entity) else _equal(value)
        having = {node for node, values in own.items() if value in values}
        if test is not None and having == choice.wanted and choice.names_value(value):
            yield Condition(1, looked_up.hop, test)
    for comparison in choice.comparisons:
        if {n for n, values in own.items() if any(_fulfils(each, comparison) for each in values)} == choice.wanted:
            yield Condition(1, looked_up.hop, comparison)


def _extremes(choice: Choice, looked_up: LookUp) -> Iterator[Operation]:
    """Yield the operations that select the wanted nodes: by a number, a date, or a number of values."""
    hop, counts = looked_up.hop, looked_up.counts or {node: len({*own}) for node, own in looked_up.values.items()}
    numbers = {node: found for node, own in looked_up.values.items() if (found := _numbers(own))}
    days = {node: found for node, own in looked_up.values.items() if (found := _days(own))}
    counted = {node: [float(count)] for node, count in counts.items() if count}
    for by_node, operation in (
        (numbers, Operation("most", hop, scale="number")),
        (days, Operation("most", hop, scale="day")),
        (counted, Operation("most", hop, counted=True)),
    ):
        if len({number for own in by_node.values() for number in own}) < 2:
            continue
        most, least = max(map(max, by_node.values())), min(map(min, by_node.values()))
        if {node for node, own in by_node.items() if max(own) == most} == choice.wanted:
            yield operation
        if {node for node, own in by_node.items() if min(own) == least} == choice.wanted:
            yield replace(operation, kind="least")


def _numbers(values: Sequence[Value]) -> list[float]:
    texts = (value.value for value in values if isinstance(value, Literal))
    return [float(text) for text in texts if re.fullmatch(NUMBER_TEXT, text)]


def _days(values: Sequence[Value]) -> list[float]:
    """Return the days among some values as numbers, such as 19670502."""
    days = (found[1] for value in values if isinstance(value, Literal) and (found := _DAY.fullmatch(value.value)))
    return [float(day[0] + day[1:].replace("-", "")) for day in days]


def _fulfils(value: Value, comparison: Comparison) -> bool:
    compare, limit = _COMPARE[comparison.operator], comparison.value.value
    if comparison.scale == "number":
        return any(compare(number, float(limit)) for number in _numbers([value]))
    parts = _SCALES[comparison.scale]
    return any(compare(day // parts, float(limit.replace("-", ""))) for day in _days([value]))


def _equal(value: Literal) -> Comparison | None:
    """Return the comparison with a text or number; None if the text cannot be compared."""
    is_number = re.fullmatch(NUMBER_TEXT, value.value)
    try:
        return Comparison("=", Literal(value.value, XSD + "decimal") if is_number else Literal(value.value))
    except ValueError:
        return None
