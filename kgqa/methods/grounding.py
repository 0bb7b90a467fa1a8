"""Builds grounded answers: runs their queries, and compares the results with what the search saw."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isclose, nan

from kgqa.errors import PartialResult, QueryRejected, StoreError, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.paths import Ends
from kgqa.graph.query.export import (
    AnswerInQuery,
    Exported,
    all_words,
    evidence_query,
    export,
    query_class,
    refuse_named_end,
)
from kgqa.graph.query.tokens import iris_of
from kgqa.methods.evidence import gather_evidence
from kgqa.methods.units import present_notes, with_units
from kgqa.model import (
    Answer,
    Candidate,
    Entity,
    HyperedgeEvidence,
    Literal,
    Named,
    PathEvidence,
    QueryClass,
    Question,
    QuoteEvidence,
    StatementEvidence,
    Value,
)
from kgqa.text.words import counted, local_words, sentence
from kgqa.trace import GaveUp, Read
from kgqa.trace.trace import BudgetExhausted, Trace

MAX_PIECES = 50
"""Most statements and chunks in an evidence query; servers are slow with long lists."""
SEEN = 200
"""Most ends with which the result of an exported query is compared, if the search saw no more."""
MAX_NAMED = 1000
"""Most answers whose names are looked up at once; more than any page shows."""
MAX_RIVALS = 2
"""Most ends whose values are shown beside those of an extreme."""


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


def with_evidence_query(graph: KnowledgeGraph, answer: Answer, vocabulary: Mapping[str, Entity]) -> Answer:
    """Return the answer with the query that returns its statements, and the chunks of its quotes and hyperedges.

    The query is `exact` if it returned at least one row for each statement and chunk. If the graph cannot run it in
    time, the answer stands without the query, and a note says so.

    Args:
        graph: A view of the graphs that contain the statements and chunks.
        answer: The answer with its evidence.
        vocabulary: The relations of statements and chunks; see `evidence_query`.

    Raises:
        AnswerInQuery: The query contains an answer, which is a bug in kgqa.
        StoreError: The graph failed.
    """
    statements = [each.iri for each in answer.evidence if isinstance(each, StatementEvidence)]
    spans = [each.span for each in answer.evidence if isinstance(each, QuoteEvidence) and each.verified]
    spans += [span for each in answer.evidence if isinstance(each, HyperedgeEvidence) for span in each.spans]
    every = dict.fromkeys([*statements, *(span.chunk for span in spans if span.chunk)])
    pieces = list(map(Entity, every))[:MAX_PIECES]
    if not pieces:
        return answer
    known = set(statements)
    sparql = evidence_query(
        graph.view, [e for e in pieces if e.iri in known], [e for e in pieces if e.iri not in known], vocabulary
    )
    topics = [topic.value for topic in answer.topics if isinstance(topic.value, Entity)]
    if named := {*pieces} & {item.value for item in answer.answers} - {*topics}:
        raise AnswerInQuery(f"the evidence query names {counted(len(named), 'answer')}")
    notes, defects = [], []
    if len(every) > len(pieces):
        notes.append(f"The evidence query returns the first {len(pieces)} of {len(every)} statements and texts.")
    try:
        rows = graph.queries.rows(sparql)
    except (StoreTimeout, PartialResult, QueryRejected, BudgetExhausted) as error:
        return replace(answer, notes=(*answer.notes, f"There is no evidence query: {sentence(error)}"))
    missing = set(pieces) - {row[0] for row in rows}
    if missing:
        defects.append(
            f"The evidence query returned {len(pieces) - len(missing)} of {len(pieces)} statements and texts."
        )
    return replace(
        answer,
        evidence_sparql=sparql,
        evidence_class="none" if defects else "exact",
        notes=(*answer.notes, *notes),
        defects=(*answer.defects, *defects),
    )
