"""The evidence of an answer: the relation path in words, and some walks along the path with the names of the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from kgqa.errors import QueryRejected, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.export import all_words
from kgqa.model import Candidate, Entity, PathEvidence, RelationPath, Triple, Value
from kgqa.schema import INSTANCE_OF, TYPE
from kgqa.text.words import arrow_words, short_words
from kgqa.trace import GaveUp
from kgqa.trace.trace import BudgetExhausted, Trace

MAX_ENDS = 20
MAX_WALKS_PER_END = 3
MAX_VALUES = 5
"""Most end nodes whose compared values are shown."""
SECONDS = 5.0
"""Time limit of the query for walks; an answer is valid without walks."""


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
    path, operation = candidate.path, candidate.operation
    words, computed = all_words(graph, candidate)
    marks: dict[str, Any] = {"conditions": candidate.conditions, "operation": operation}
    marks |= {"condition_words": words, "operation_words": computed}
    steps = operation.steps if operation else ()
    topics = operation.topics if operation else ()
    compared: Sequence[Value] = topics or [*(ends or ())[:MAX_VALUES], *rivals]
    at = None if operation is None else operation.at
    found: list[PathEvidence] = []
    if not topics:
        walked = path.then(*steps) if ends is None and at is None else path  # a sum is shown by its values
        shown = ends and [*ends, *(rivals if not steps else ())]
        walks = _walks(graph, walked, shown, trace, MAX_WALKS_PER_END, **candidate.limits)
        rounded = None if score is None else round(score, 4)
        found = [replace(_evidence(graph, walked, walks, rounded, candidate.approximate), **marks)]
        for join in candidate.joins:
            met: list[Value] = list(dict.fromkeys(walk[join.at] for walk in walks))
            met = met or (list(ends or ()) if join.at == len(path) else [])
            walks_to = _walks(graph, join.path, met, trace, 1)
            found.append(_evidence(graph, join.path, walks_to, None, candidate.approximate))
        if at is not None and steps:
            before = tuple(each for each in candidate.conditions if each.at <= at)
            to_rivals = _walks(graph, path, rivals, trace, 1, **candidate.limits) if rivals else []
            to_value, nodes = (
                RelationPath(path.topic, path.steps[:at] + steps),
                {walk[at] for walk in walks + to_rivals},
            )
            valued = [walk for walk in _walks(graph, to_value, None, trace, 1, conditions=before) if walk[at] in nodes]
            return (*found, _evidence(graph, to_value, valued, None, candidate.approximate))
    for node in [each for each in compared if isinstance(each, Entity)] if steps else ():
        to_value = RelationPath(node, steps)
        value = _evidence(graph, to_value, _walks(graph, to_value, None, trace, MAX_WALKS_PER_END), None, False)
        found.append(value if found else replace(value, **marks))
    return tuple(found)


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
    score: float | None,
    approximate: bool,
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
        score=score,
        approximate=approximate,
        step_words=tuple(short_words(step.relation, graph.schema, graph.tables.relation_labels) for step in path.steps),
    )
