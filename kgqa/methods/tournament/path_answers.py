"""Builds answers from relation paths: runs their queries, compares results with what the search saw, shows walks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from math import isclose, nan
from typing import Any

from msgspec.structs import replace as with_fields

from kgqa.errors import PartialResult, QueryRejected, StoreError, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.paths import Ends
from kgqa.graph.query.export import AnswerInQuery, Exported, all_words, export, query_class, refuse_named_end
from kgqa.graph.query.tokens import iris_of
from kgqa.methods.tournament.units import MAX_ENDS, present_notes, with_units
from kgqa.model import (
    Answer,
    Candidate,
    Entity,
    Literal,
    Named,
    PathEvidence,
    QueryClass,
    Question,
    RelationPath,
    Triple,
    Value,
)
from kgqa.schema import INSTANCE_OF, TYPE
from kgqa.text.words import arrow_words, counted, local_words, normalise, short_words
from kgqa.trace import GaveUp, Read
from kgqa.trace.trace import BudgetExhausted, Trace

SEEN = 200
"""Most ends with which the result of an exported query is compared, if the search saw no more."""
MAX_NAMED = 1000
"""Most answers whose names are looked up at once; more than any page shows."""
MAX_RIVALS = 2
"""Most ends whose values are shown beside those of an extreme."""
MAX_WALKS_PER_END = 3
MAX_VALUES = 5
"""Most end nodes whose compared values are shown."""
SECONDS = 5.0
"""Time limit of the query for walks; an answer is valid without walks."""


def _by_name(item: Named) -> tuple[str, str, str]:
    # entities with equal names and ids are sorted by value, because the engine's order may change
    return item.name.casefold(), item.id, str(item.value)


def answer_of_path(
    graph: KnowledgeGraph,
    candidate: Candidate,
    score: float | None,
    topics: Sequence[Named],
    trace: Trace,
    *,
    chosen: Collection[Value] = (),
) -> Answer | None:
    """Build the answer that consists of the end nodes of a path, or of what its operation returns.

    Args:
        graph: The graph.
        candidate: The path.
        score: The score of the path; None if a language model chose the path.
        topics: The topics of the question.
        trace: Records the answer.
        chosen: The end nodes whose walks are shown; empty for the first end nodes.

    Returns:
        An answer in which the caller fills in question, method and topics; None if the path has no end nodes except
        other topics of the question.

    Raises:
        AnswerInQuery: The query contains an answer, which is a bug in kgqa.
        StoreError: The graph failed.
    """
    operation = candidate.operation
    exported = export(graph, candidate)
    values = tuple(dict.fromkeys(graph.run_exported(exported.sparql)))
    words, computed = all_words(graph, candidate)
    trace.record(Read(path=candidate.words, answers=len(values), conditions=words, operation=computed))
    compared = operation.topics if operation else ()
    others = {topic.value for topic in topics} - {candidate.path.topic, *compared}
    if not set(values) - others:
        return None
    if operation is None:
        refuse_named_end(candidate.path, candidate.conditions)
    given = {candidate.path.topic, *compared, *(topic.value for topic in topics)}
    given |= {each.test for each in candidate.conditions if isinstance(each.test, Entity)}
    given |= {entity for _, entities in candidate.restricted for entity in entities}
    if {*map(Entity, iris_of(exported.sparql))} & {*values} - given:
        raise AnswerInQuery("the exported query names its answer")
    class_, defect = _checked(graph, candidate, exported, values)
    named = _named(graph, values)
    ends = None if operation and operation.is_computed else [item.value for item in named]
    rivals = exported.top.rivals[:MAX_RIVALS] if exported.top else ()
    shown = ends and ([v for v in ends if v in chosen] or ends)
    evidence = gather_evidence(graph, candidate, score, shown, trace, rivals=rivals)
    named, notes = with_units(graph, named, operation, evidence)
    return Answer(
        Question(""),
        "answered",
        answers=tuple(named),
        evidence=evidence,
        sparql=exported.sparql,
        query_class=class_ or "none",
        grounding="graph",
        defects=(defect,) if defect else (),
        approximate=candidate.approximate,
        notes=(*notes, *present_notes(candidate.conditions, words)),
    )


def _named(graph: KnowledgeGraph, values: Sequence[Value]) -> list[Named]:
    """Return answers with their names, sorted by them; of more than `MAX_NAMED` the first by value."""
    if len(values) <= MAX_NAMED:
        return sorted(graph.named(values, describe=True), key=_by_name)
    values = sorted(values, key=str)
    unnamed = [
        Named(each, graph.schema.short_id(each.iri), local_words(each.iri))
        if isinstance(each, Entity)
        else Named(each, "", each.value)
        for each in values[MAX_NAMED:]
    ]
    return [*sorted(graph.named(values[:MAX_NAMED], describe=True), key=_by_name), *unnamed]


def with_all_names(graph: KnowledgeGraph, answer: Answer) -> Answer:
    """Return an answer with the names of all its answers, to export them; `ask` finds those of the first `MAX_NAMED`.

    If the graph fails, the answer stands as it is.
    """
    if len(answer.answers) <= MAX_NAMED:
        return answer
    known, others = answer.answers[:MAX_NAMED], answer.answers[MAX_NAMED:]
    try:
        named = graph.named(each.value for each in others)
    except StoreError:
        return answer
    every = [*known, *(replace(each, name=found.name) for each, found in zip(others, named))]
    return replace(answer, answers=tuple(sorted(every, key=_by_name)))


def _checked(
    graph: KnowledgeGraph, candidate: Candidate, exported: Exported, values: Sequence[Value]
) -> tuple[QueryClass | None, str]:
    """Compare the result of an exported query with what the search saw: the ends, the best of them, or a total.

    Returns:
        The class of the query, and a sentence about a difference; "" if there is none.
    """
    operation, restricted = candidate.operation, bool(candidate.restricted)
    seen, whole = _seen(graph, candidate, exported)
    if operation is None or not operation.is_computed:
        class_ = query_class(seen if whole or not seen <= {*values} else values, values, restricted=restricted)
        difference = f"The exported query returned {counted(len(values), 'answer')}; the search saw {len(seen)}."
        return class_, "" if class_ in ("exact", "restricted") else difference
    expected: Sequence[float] | None
    if operation.kind in ("count", "exists"):
        expected = [float(len(seen) if operation.kind == "count" else bool(seen))] if whole else None
    else:
        expected = exported.totals
    texts = [each.value if isinstance(each, Literal) else str(each) for each in values]
    numbers = [_number({"true": "1", "false": "0"}.get(text, text)) for text in texts]
    if expected is None or (_all_in(numbers, expected) and _all_in(expected, numbers)):
        return "restricted" if restricted else "exact", ""
    shown = " or ".join(f"{each:g}" for each in expected)
    return None, f"The exported query returned {' and '.join(texts)}; what the search saw gives {shown}."


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan  # equal to no number


def _all_in(some: Sequence[float], others: Sequence[float]) -> bool:
    return all(any(isclose(one, other, rel_tol=1e-6) for other in others) for one in some)


def _seen(graph: KnowledgeGraph, candidate: Candidate, exported: Exported) -> tuple[set[Value], bool]:
    """Return the ends that the search saw, the best of them for an extreme, and whether these are all ends."""
    if exported.top is not None:
        return {*exported.top.ends}, True
    if candidate.operation is None or candidate.operation.kind in ("count", "exists"):
        (ends,) = graph.paths.ends([candidate], limit=SEEN, tolerated=(StoreTimeout, PartialResult, QueryRejected))
        if isinstance(ends, Ends):
            return {*ends.values}, not ends.approximate
    return set(), False


def answer_of_entities(
    graph: KnowledgeGraph, empty: Answer, chosen: Sequence[Named], candidates: Iterable[Candidate], trace: Trace
) -> Answer:
    """Build an answer from entities that a language model chose among the end nodes of paths.

    The answer gets the query of the first path that leads to all chosen entities; this query may return further
    entities.

    Args:
        graph: The graph.
        empty: An answer without results, which provides the question, the method, the topics and the notes.
        chosen: The entities.
        candidates: Paths that may lead to the entities, best first.
        trace: Records the answer.

    Raises:
        AnswerInQuery: The query contains an answer, which is a bug in kgqa.
        StoreError: The graph failed.
    """
    wanted = {item.value for item in chosen}
    answers = tuple(sorted(chosen, key=_by_name))
    missing = set(wanted)
    evidence: list[PathEvidence] = []
    for candidate in candidates:
        try:
            read = answer_of_path(graph, candidate, None, empty.topics, trace, chosen=wanted)
        except (StoreTimeout, PartialResult) as error:
            trace.record(GaveUp(path=candidate.words, error=str(error)))
            continue
        every = {item.value for item in read.answers} if read else set()
        if read is not None and wanted <= every:
            return replace(
                read,
                question=empty.question,
                method=empty.method,
                topics=empty.topics,
                answers=answers,
                query_class=read.query_class if every == wanted else "superset",
                notes=(*empty.notes, *read.notes),
            )
        if read is not None and every & missing:
            missing -= every
            evidence += read.paths
    note = "No single path leads to all of these answers, so no query is given."
    return replace(
        empty,
        status="answered",
        answers=answers,
        evidence=tuple(evidence),
        grounding="graph" if not missing else "model",
        notes=(*empty.notes, note),
    )


def nodes_named(texts: Iterable[str], nodes: Iterable[Named]) -> list[Named] | None:
    """Return the nodes that texts of a language model name; None if a text does not name exactly one."""
    by_name: dict[str, dict[Value, Named]] = {}
    for node in nodes:
        by_name.setdefault(normalise(node.name), {})[node.value] = node
    found = [by_name.get(normalise(text), {}) for text in texts]
    return [node for same in found for node in same.values()] if all(len(same) == 1 for same in found) else None


def answer_of_model(empty: Answer, texts: Iterable[str], note: str) -> Answer:
    """Return an answer in a language model's own words, with a note that says so."""
    answers = tuple(Named(Literal(text), "", text) for text in dict.fromkeys(texts))
    return replace(empty, status="answered", answers=answers, grounding="model", notes=(*empty.notes, note))


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
        found = [with_fields(_evidence(graph, walked, walks, rounded, candidate.approximate), **marks)]
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
        found.append(value if found else with_fields(value, **marks))
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
