"""Builds grounded answers: runs their queries, and classifies the queries by the results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from kgqa.errors import PartialResult, QueryRejected, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.condition_words import all_words
from kgqa.graph.query.evidence import StatementVocabulary, evidence_query
from kgqa.graph.query.export import check_names_no_answers, check_no_answers, query_class
from kgqa.methods.evidence import gather_evidence
from kgqa.methods.units import present_notes, with_units
from kgqa.model import (
    Answer,
    Candidate,
    Entity,
    HyperedgeEvidence,
    Named,
    PathEvidence,
    Question,
    QuoteEvidence,
    StatementEvidence,
    Value,
)
from kgqa.text.words import sentence
from kgqa.trace import GaveUp, Read
from kgqa.trace.trace import BudgetExhausted, Trace

MAX_PIECES = 50
"""Most statements and chunks in an evidence query; servers are slow with long lists."""
DEFECT = "The exported query returned other values than the search found."


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
    sparql = graph.answer_query(
        candidate.path,
        **{**candidate.limits, "restricted": dict(candidate.restricted)},
        operation=operation,
    )
    values = tuple(dict.fromkeys(graph.run_exported(sparql)))
    words, computed = all_words(graph, candidate.conditions, operation, candidate.path.steps)
    trace.record(Read(path=candidate.words, answers=len(values), conditions=words, operation=computed))
    compared = operation.topics if operation else ()
    others = {topic.value for topic in topics} - {candidate.path.topic, *compared}
    if not set(values) - others:
        return None
    selected = [entity for _, entities in candidate.restricted for entity in entities]
    topic_entities = [topic.value for topic in topics if isinstance(topic.value, Entity)]
    tested = [each.test for each in candidate.conditions if isinstance(each.test, Entity)]
    named_in_query = [*topic_entities, *selected, *compared, *tested]
    # a number or date of a condition, or of its conversion, may equal an answer
    checked = [each for each in values if isinstance(each, Entity) or not (candidate.conditions or operation)]
    check = check_names_no_answers if operation else check_no_answers
    check(sparql, checked, named_in_query)
    found = values if operation else graph.paths.ends([candidate])[0].values
    class_ = query_class(found, values, restricted=bool(candidate.restricted))
    named = sorted(graph.named(values), key=_by_name)
    ends = None if operation and operation.is_computed else [item.value for item in named]
    evidence = gather_evidence(graph, candidate, score, ends and ([v for v in ends if v in chosen] or ends), trace)
    named, notes = with_units(graph, named, operation, evidence)
    return Answer(
        Question(""),
        "answered",
        answers=tuple(named),
        evidence=evidence,
        sparql=sparql,
        query_class=class_ or "none",
        grounding="graph",
        defects=() if class_ in ("exact", "restricted") else (DEFECT,),
        approximate=candidate.approximate,
        notes=(*notes, *present_notes(candidate.conditions, words)),
    )


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


def with_evidence_query(graph: KnowledgeGraph, answer: Answer, vocabulary: StatementVocabulary) -> Answer:
    """Return the answer with the query that returns its statements, and the chunks of its quotes and hyperedges.

    The query is `exact` if it returned at least one row for each statement and chunk. If the graph cannot run the query
    in time, the answer stands without the query, and a note says so.

    Args:
        graph: A view of the graphs that contain the statements and chunks.
        answer: The answer with its evidence.
        vocabulary: The relations of statements and chunks.

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
    check_names_no_answers(sparql, [item.value for item in answer.answers], topics)
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
