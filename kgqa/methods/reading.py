"""From a chosen path to an answer: read from the exported query, which is then run again and classified."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.export import check_no_answers, query_class
from kgqa.methods.evidence import gather_evidence
from kgqa.model import Answer, Candidate, Named, Question, Value
from kgqa.trace import Trace

DEFECT = "The exported query gave something else when it was run again."


def _by_name(item: Named) -> tuple[str, str, str]:
    # the value last: a year and a text may look the same, and their order must not be the engine's
    return item.name.casefold(), item.id, str(item.value)


def read_off(
    graph: KnowledgeGraph,
    candidate: Candidate,
    score: float | None,
    topics: Sequence[Named],
    trace: Trace,
    *,
    chosen: Collection[Value] = (),
) -> Answer | None:
    """The ends of a path as an answer to a question that the caller fills in; None where the path has no ends, or
    none but other topics: what a question names is not what it asks for.

    Args:
        chosen: the ends that walks are shown to; empty for the first of all.

    Raises:
        AnswerInQuery: a defect of ours. StoreError: the graph failed.
    """
    sparql = graph.answer_query(candidate.path, joins=candidate.joins, restricted=dict(candidate.restricted))
    first, again = graph.map(graph.run_exported, [sparql, sparql])
    values = tuple(dict.fromkeys(first))
    trace.event("read", path=candidate.words, answers=len(values))
    others = {topic.value for topic in topics} - {candidate.path.topic}
    if not set(values) - others:
        return None
    selected = [entity for _, entities in candidate.restricted for entity in entities]
    check_no_answers(sparql, values, [*(topic.value for topic in topics), *selected])
    worth = query_class(values, again, restricted=bool(candidate.restricted))
    trace.event("checked", query_class=worth or "none")
    named = sorted(graph.named(values), key=_by_name)
    shown = [item.value for item in named]
    return Answer(
        Question(""),
        "answered",
        answers=tuple(named),
        paths=gather_evidence(graph, candidate, score, [v for v in shown if v in chosen] or shown, trace),
        sparql=sparql,
        query_class=worth or "none",
        grounding="graph",
        defects=() if worth in ("exact", "restricted") else (DEFECT,),
        approximate=candidate.approximate,
    )


def read_chosen(
    graph: KnowledgeGraph, empty: Answer, chosen: Sequence[Named], candidates: Iterable[Candidate], trace: Trace
) -> Answer:
    """An answer of the entities that a model chose among the ends of paths, with the first path that leads to all of
    them: its query returns exactly these or more.

    Args:
        empty: an answer without answers, to be filled in.
        candidates: paths that may lead to all of them, the fittest first.

    Raises:
        AnswerInQuery: a defect of ours. StoreError: the graph failed.
    """
    wanted = {item.value for item in chosen}
    answers = tuple(sorted(chosen, key=_by_name))
    open_, evidence = set(wanted), []
    for candidate in candidates:
        try:
            read = read_off(graph, candidate, None, empty.topics, trace, chosen=wanted)
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
        if read is not None and every & open_:
            open_ -= every
            evidence += read.paths
    note = "No single path leads to all of these answers, so there is no query that returns them."
    return replace(
        empty,
        status="answered",
        answers=answers,
        paths=tuple(evidence),
        grounding="graph" if not open_ else "model",
        notes=(*empty.notes, note),
    )
