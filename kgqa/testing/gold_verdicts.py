"""Translates the gold query of a question into the reply of a judge: a path, conditions and an operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.prompt_view import PromptView
from kgqa.methods.resources import Resources
from kgqa.methods.tournament.shown_paths import ANSWER, ShownPath
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.model.conditions import Comparison, Condition, Operation
from kgqa.search.conditions.rows import FieldKey, read_rows
from kgqa.testing.gold_candidates import OPPOSITE, gold_candidate
from kgqa.trace.trace import Trace
from kgqa.training.gold_queries import Untranslatable


@dataclass(frozen=True, slots=True)
class GoldVerdict:
    """The paths of a gold query and its joins, in words, and what the judge has to say about them."""

    paths: frozenset[str]
    main: str
    demanded: Mapping[str, Any]


def gold_verdict(
    question: GoldQuestion,
    topics: Sequence[Entity],
    view: PromptView,
    resources: Resources,
    is_date: Callable[[str], bool] = lambda relation: False,
) -> GoldVerdict | None:
    """Return the verdict that gives the gold answers.

    Returns:
        None if there is no gold query with conditions or an operation, or if the judge is not shown one of its fields.
    """
    graph = resources.graph
    if not question.sparql:
        return None
    try:
        found = gold_candidate(question.sparql[0], [topic.iri for topic in topics], is_date=is_date)
    except Untranslatable:
        return None
    if not (found.conditions or found.operation) or not found.path.steps:
        return None
    path = _turned(graph, found.path)
    joined = [_turned(graph, join.path) for join in found.joins]
    rows = read_rows(graph, [Candidate(path, "")], Trace())
    if not rows:
        return None
    shown = ShownPath(graph, view, rows[0], resources.encoder)
    conditions = [_condition(graph, shown, each) for each in found.conditions]
    operation = _operation(graph, shown, found.operation, len(path)) if found.operation else {}
    if None in conditions or operation is None:
        return None
    words = [" ".join(view.elements(Candidate(each, ""))) for each in (path, *joined)]
    return GoldVerdict(frozenset(words), words[0], {"conditions": conditions, "operation": operation or None})


def _turned(graph: KnowledgeGraph, path: RelationPath) -> RelationPath:
    """Walk each step along the relation that the search uses: forwards where the inverse is declared."""
    return RelationPath(path.topic, tuple(_forwards(graph, step) for step in path.steps))


def _forwards(graph: KnowledgeGraph, step: Step) -> Step:
    twin = graph.tables.inverses.get(step.relation) if step.direction == "in" else None
    return Step(twin) if twin and twin in graph.tables.relations else step


def _field(graph: KnowledgeGraph, shown: ShownPath, at: int, steps: Sequence[Step]) -> str | None:
    if not steps:
        last = at == len(shown.candidate.path)
        return ANSWER if last else f"hop {shown.hops.index(at) + 1}" if at in shown.hops else None
    wanted: FieldKey = (at, tuple(_forwards(graph, step) for step in steps))
    return next((name for name, key in shown.keys.items() if key in (wanted, (at, tuple(steps)))), None)


def _condition(graph: KnowledgeGraph, shown: ShownPath, condition: Condition) -> dict[str, str] | None:
    name = _field(graph, shown, condition.at, condition.steps)
    if name is None:
        return None
    test = condition.test
    if test is None:
        return {"field": name, "is": "absent" if condition.negated else "present"}
    if isinstance(test, Comparison):
        sign = OPPOSITE.get(test.operator) if condition.negated else test.operator
        return {"field": name, "is": sign, "value": test.value.value} if sign else None
    (named,) = graph.named([test])
    return {"field": name, "is": "!=" if condition.negated else "=", "value": shown.name(named)}


def _operation(graph: KnowledgeGraph, shown: ShownPath, operation: Operation, end: int) -> dict[str, Any] | None:
    if operation.topics:
        return {"do": operation.kind, "compare": True}
    if operation.kind in ("count", "exists"):
        return {"do": operation.kind}
    name = _field(graph, shown, end if operation.at is None else operation.at, operation.steps)
    if name is None:
        return None
    return {"do": operation.kind, "field": name, "rank": operation.rank, "counted": operation.counted}
