"""The units of the numbers of an answer, and what an answer takes for the present."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date

from kgqa.conditions import DAY, NUMBER_TEXT, Comparison, Condition, Operation
from kgqa.errors import StoreError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.tables.units import units_of
from kgqa.model import Literal, Named, PathEvidence
from kgqa.words import local_name, split_words

_ENDS = frozenset({"to", "end", "ended", "ends", "until", "till", "left", "closed", "dissolved", "died", "death"})
"""Words in the name of a relation that leads to an end date."""


def with_units(
    graph: KnowledgeGraph, answers: Sequence[Named], operation: Operation | None, evidence: Sequence[PathEvidence]
) -> tuple[list[Named], list[str]]:
    """Return the answers, each number with its unit if the graph has one, and a note if the numbers have several units.

    Args:
        operation: the operation of which the answers are the result; a count has no unit.
        evidence: the evidence of the answers. Its walks end in the numbers.
    """
    is_number = [isinstance(a.value, Literal) and bool(re.fullmatch(NUMBER_TEXT, a.value.value)) for a in answers]
    shown = [each for each in evidence[: 2 if operation and operation.topics else 1] if each.path.steps]
    if not any(is_number) or not shown or (operation and operation.kind in ("count", "exists")):
        return list(answers), []
    units: tuple[str, ...] = ()
    with suppress(StoreError):  # an answer is valid without a unit
        units = units_of(
            shown[0].path,
            [[node.value for node in walk] for each in shown for walk in each.walks],
            schema=graph.schema,
            relation_labels=graph.relation_labels,
            select=graph.tables.select,
            find_labels=graph.labels,
        )
    if len(units) > 1:
        return list(answers), [f"The numbers have different units: {', '.join(units)}."]
    named = [replace(each, unit=unit) if number else each for each, number in zip(answers, is_number) for unit in units]
    return named or list(answers), []


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
