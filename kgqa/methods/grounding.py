"""Builds answers grounded in the graph: runs the exported query twice, and classifies it by the results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.export import check_no_answers, query_class
from kgqa.methods.evidence import gather_evidence
from kgqa.model import Answer, Candidate, Entity, Named, PathEvidence, Question, Value
from kgqa.trace import Trace

DEFECT = "The exported query returned a different result when it was run again."


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
    """Build the answer that consists of the end nodes of a path.

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
    sparql = graph.answer_query(candidate.path, joins=candidate.joins, restricted=dict(candidate.restricted))
    first, again = graph.map(graph.run_exported, [sparql, sparql])
    values = tuple(dict.fromkeys(first))
    trace.event("read", path=candidate.words, answers=len(values))
    others = {topic.value for topic in topics} - {candidate.path.topic}
    if not set(values) - others:
        return None
    selected = [entity for _, entities in candidate.restricted for entity in entities]
    topic_entities = [topic.value for topic in topics if isinstance(topic.value, Entity)]
    check_no_answers(sparql, values, [*topic_entities, *selected])
    class_ = query_class(values, again, restricted=bool(candidate.restricted))
    trace.event("checked", query_class=class_ or "none")
    named = sorted(graph.named(values), key=_by_name)
    shown = [item.value for item in named]
    return Answer(
        Question(""),
        "answered",
        answers=tuple(named),
        evidence=gather_evidence(graph, candidate, score, [v for v in shown if v in chosen] or shown, trace),
        sparql=sparql,
        query_class=class_ or "none",
        grounding="graph",
        defects=() if class_ in ("exact", "restricted") else (DEFECT,),
        approximate=candidate.approximate,
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
            trace.event("gave_up", path=candidate.words, error=str(error))
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
