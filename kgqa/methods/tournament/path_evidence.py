"""The evidence of an answer from a path: walks, compared values, the units of its numbers, and what is taken as now."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from msgspec.structs import replace as with_fields

from kgqa.errors import QueryRejected, StoreError, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.export import all_words
from kgqa.graph.tables.labels import Units, units_of
from kgqa.model import Candidate, Entity, Literal, Named, PathEvidence, RelationPath, Triple, Value
from kgqa.model.conditions import DAY, NUMBER_TEXT, Comparison, Condition, Operation
from kgqa.schema import INSTANCE_OF, TYPE
from kgqa.text.words import arrow_words, local_name, short_words, split_words
from kgqa.trace import GaveUp
from kgqa.trace.trace import BudgetExhausted, Trace

MAX_ENDS = 20
"""Most end nodes whose walks are evidence."""
MAX_WALKS_PER_END = 3
MAX_VALUES = 5
"""Most end nodes whose compared values are shown."""
SECONDS = 5.0
"""Time limit of the query for walks; an answer is valid without walks."""
_ENDED = frozenset({"to", "end", "ended", "ends", "until", "till", "left", "closed", "dissolved", "died", "death"})
"""Words in the name of a relation that leads to an end date."""


def gather_evidence(
    graph: KnowledgeGraph,
    candidate: Candidate,
    score: float | None,
    ends: Sequence[Value] | None,
    trace: Trace,
    *,
    rivals: Sequence[Value] = (),
) -> tuple[PathEvidence, ...]:
    """Find walks along a path to its first end nodes, and along each joined path to the node where both paths meet.

    If the query for walks takes too long or the server rejects it, there are no walks, and the trace records this.

    Args:
        ends: the end nodes; None for any, if the answer is computed from them.
        rivals: end nodes that an operation compared with these, the next best first.

    Returns:
        The evidence of the path, then of each joined path. If an operation compares topics, the evidence of their
        values instead; if it selects end nodes by a value, also that of their values and of the values of the rivals.
    """
    path, on = candidate.path, candidate.operation or Operation("count")
    words, computed = all_words(graph, candidate)
    marks: dict[str, Any] = {"conditions": candidate.conditions, "operation": candidate.operation}
    marks |= {"condition_words": words, "operation_words": computed}

    def values_of(nodes: Sequence[Value]) -> list[PathEvidence]:
        paths = [RelationPath(node, on.steps) for node in nodes if isinstance(node, Entity)]
        return [_evidence(graph, each, _walks(graph, each, None, trace, MAX_WALKS_PER_END)) for each in paths]

    if on.topics:
        first, *others = values_of(on.topics)
        return with_fields(first, **marks), *others
    walked = path.then(*on.steps) if ends is None and on.at is None else path  # a sum is shown by its values
    shown = ends and [*ends, *(rivals if not on.steps else ())]
    walks = _walks(graph, walked, shown, trace, MAX_WALKS_PER_END, **candidate.limits)
    score = None if score is None else round(score, 4)
    found = [with_fields(_evidence(graph, walked, walks, candidate.approximate), score=score, **marks)]
    for join in candidate.joins:
        met: list[Value] = list(dict.fromkeys(walk[join.at] for walk in walks))
        met = met or (list(ends or ()) if join.at == len(path) else [])
        found.append(_evidence(graph, join.path, _walks(graph, join.path, met, trace, 1), candidate.approximate))
    if not on.steps:
        return tuple(found)
    if on.at is None:
        return *found, *values_of([*(ends or ())[:MAX_VALUES], *rivals])
    nodes = {walk[on.at] for walk in walks}
    if rivals:
        nodes |= {walk[on.at] for walk in _walks(graph, path, rivals, trace, 1, **candidate.limits)}
    to_value = RelationPath(path.topic, path.steps[: on.at] + on.steps)
    before = tuple(each for each in candidate.conditions if each.at <= on.at)
    valued = [walk for walk in _walks(graph, to_value, None, trace, 1, conditions=before) if walk[on.at] in nodes]
    return *found, _evidence(graph, to_value, valued, candidate.approximate)


def _walks(
    graph: KnowledgeGraph,
    path: RelationPath,
    ends: Sequence[Value] | None,
    trace: Trace,
    per_end: int,
    **limits: Any,
) -> list[tuple[Value, ...]]:
    try:
        wanted = None if ends is None else ends[:MAX_ENDS]
        every = graph.paths.walks([Candidate(path, **limits)], ends=wanted, limit=20 * MAX_ENDS, seconds=SECONDS)[0]
    except (StoreTimeout, QueryRejected, BudgetExhausted) as error:
        # a server may reject a query with a value that the server itself returned, such as xsd:time on Virtuoso
        trace.record(GaveUp(error=str(error), evidence=True))
        return []
    walks: list[tuple[Value, ...]] = []
    seen: dict[Value, int] = {}
    for walk in every:
        seen[walk[-1]] = seen.get(walk[-1], 0) + 1
        if seen[walk[-1]] <= per_end and len(seen) <= MAX_ENDS:
            walks.append(walk)
    return walks


def _evidence(
    graph: KnowledgeGraph,
    path: RelationPath,
    walks: Sequence[tuple[Value, ...]],
    approximate: bool = False,
) -> PathEvidence:
    nodes = dict.fromkeys(node for walk in [(path.topic,), *walks] for node in walk)
    names = {named.value: named for named in graph.named(nodes)}
    along = (triple for walk in walks for triple in path.triples_along(walk))
    triples = dict.fromkeys(
        Triple(s, TYPE if relation == INSTANCE_OF else relation, object_)
        for s, relation, object_ in along
        if isinstance(s, Entity)
    )
    is_mediator = graph.tables.leads_to_mediator
    return PathEvidence(
        path,
        arrow_words(names[path.topic].name, path, graph.schema, graph.tables.relation_labels, is_mediator=is_mediator),
        walks=tuple(tuple(names[node] for node in walk) for walk in walks),
        mediators=tuple(i for i, step in enumerate(path.steps, start=1) if is_mediator(step)),
        triples=tuple(triples),
        approximate=approximate,
        step_words=tuple(short_words(step.relation, graph.schema, graph.tables.relation_labels) for step in path.steps),
    )


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
        if _ENDED & set(split_words(re.split(r"[./]", local_name(condition.steps[-1].relation))[-1]).split())
    ]
