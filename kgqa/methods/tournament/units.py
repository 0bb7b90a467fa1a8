"""The units of the numbers of an answer, and what an answer takes for the present."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from kgqa.errors import StoreError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.tables.labels import Units, units_of
from kgqa.model import Literal, Named, PathEvidence, Value
from kgqa.model.conditions import DAY, NUMBER_TEXT, Comparison, Condition, Operation
from kgqa.text.words import local_name, split_words

MAX_ENDS = 20
"""Most end nodes whose walks are evidence."""
_ENDS = frozenset({"to", "end", "ended", "ends", "until", "till", "left", "closed", "dissolved", "died", "death"})
"""Words in the name of a relation that leads to an end date."""


def with_units(
    graph: KnowledgeGraph, answers: Sequence[Named], operation: Operation | None, evidence: Sequence[PathEvidence]
) -> tuple[list[Named], list[str]]:
    """Return the answers, each number with its unit if the graph has one, and a note if the numbers have several units.

    Args:
        operation: the operation of which the answers are the result; a count has no unit.
        evidence: the evidence of the answers. Its walks end in the numbers, but may leave out some of them.
    """
    numbers: list[Value] = [
        a.value for a in answers if isinstance(a.value, Literal) and re.fullmatch(NUMBER_TEXT, a.value.value)
    ]
    shown = [each for each in evidence[: 2 if operation and operation.topics else 1] if each.path.steps]
    if not numbers or not shown or (operation and operation.kind in ("count", "exists")):
        return list(answers), []
    walks = [[node.value for node in walk] for each in shown for walk in each.walks]
    try:
        units = units_of(
            shown[0].path,
            walks,
            schema=graph.schema,
            relation_labels=graph.tables.relation_labels,
            select=graph.tables.select,
            find_labels=graph.labels,
        )
    except StoreError:  # an answer is valid without a unit
        return list(answers), []
    if operation and operation.is_computed:
        result = _unit_of_result(units, shown)
        found = dict.fromkeys(numbers, result)
    else:
        found = {number: units.of(number) for number in numbers}
    named = [
        replace(each, unit=next(iter(own))) if len(own := found.get(each.value, frozenset())) == 1 else each
        for each in answers
    ]
    every = sorted(frozenset().union(*found.values()))
    return named, [f"The numbers have different units: {', '.join(every)}."] if len(every) > 1 else []


def _unit_of_result(units: Units, evidence: Sequence[PathEvidence]) -> frozenset[str]:
    """Return the unit that all numbers have from which a result is computed, or all their units if they differ."""
    ends = [{walk[-1].value for walk in each.walks} for each in evidence]
    found = {units.of(number) for each in ends for number in each}
    if not found or any(len(each) >= MAX_ENDS for each in ends):
        found.add(units.of(Literal("")))  # stands for the numbers that the evidence leaves out
    every: frozenset[str] = frozenset().union(*found)
    return every if len(found) == 1 or len(every) > 1 else frozenset()


def present_notes(conditions: Sequence[Condition], words: Sequence[str], *, today: date | None = None) -> list[str]:
    """Return a note for each condition that stands for the present: that there is no end date, or none before today.

    Args:
        words: the conditions in words.
        today: the date in the note; None for the current date.
    """
    day = (today or date.today()).isoformat()
    return [
        f"Read “now” as {day}: {text}."
        for condition, text in zip(conditions, words)
        if condition.negated and condition.steps
        if condition.test is None or condition.test == Comparison("<", Literal(day, DAY))
        if _ENDS & set(split_words(re.split(r"[./]", local_name(condition.steps[-1].relation))[-1]).split())
    ]
