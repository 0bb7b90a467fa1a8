"""Builds answers from relation paths: runs their queries, compares results with what the search saw, shows walks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from kgqa.errors import PartialResult, QueryRejected, StoreError, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.paths import Ends
from kgqa.graph.query.export import AnswerInQuery, Exported, all_words, export, refuse_named_end
from kgqa.graph.query.tokens import iris_of
from kgqa.methods.tournament.path_evidence import gather_evidence, present_notes, with_units
from kgqa.model import Answer, Candidate, Entity, Literal, Named, PathEvidence, QueryClass, Value
from kgqa.search.tolerance import TOLERATED
from kgqa.text.words import counted, local_words, normalise
from kgqa.trace import GaveUp, Read
from kgqa.trace.trace import BudgetExhausted, Trace

SEEN = 200
"""Most ends with which the result of an exported query is compared, if the search saw no more."""
MAX_NAMED = 1000
"""Most answers whose names are looked up at once; more than any page shows."""
MAX_RIVALS = 2
"""Most ends whose values are shown beside those of an extreme."""


def answer_of_path(
    graph: KnowledgeGraph,
    candidate: Candidate,
    score: float | None,
    empty: Answer,
    trace: Trace,
    *,
    chosen: Collection[Value] = (),
) -> Answer | None:
    """Build the answer that consists of the end nodes of a path, or of what its operation returns.

    Args:
        graph: The graph.
        candidate: The path.
        score: The score of the path; None if a language model chose the path.
        empty: An answer without results, which provides the question, the method, the topics and the notes.
        trace: Records the answer.
        chosen: The end nodes whose walks are shown; empty for the first end nodes.

    Returns:
        The answer; None if the path has no end nodes except other topics of the question.

    Raises:
        AnswerInQuery: The query contains an answer, which is a bug in kgqa.
        StoreError: The graph failed.
    """
    operation = candidate.operation
    exported = export(graph, candidate)
    values = tuple(dict.fromkeys(graph.run_exported(exported.sparql)))
    words, computed = all_words(graph, candidate)
    trace.record(Read(path=candidate.words, answers=len(values), conditions=words, operation=computed))
    compared = {candidate.path.topic, *(operation.topics if operation else ())}
    topics = {topic.value for topic in empty.topics}
    if not {*values} - (topics - compared):
        return None
    if operation is None:
        refuse_named_end(candidate.path, candidate.conditions)
    given = compared | topics | {each.test for each in candidate.conditions if isinstance(each.test, Entity)}
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
    return replace(
        empty,
        status="answered",
        answers=tuple(named),
        evidence=evidence,
        sparql=exported.sparql,
        query_class=class_,
        grounding="graph",
        reason="",
        defects=(defect,) if defect else (),
        approximate=candidate.approximate,
        notes=(*empty.notes, *notes, *present_notes(candidate.conditions, words)),
    )


def best_so_far(
    graph: KnowledgeGraph,
    empty: Answer,
    error: BudgetExhausted,
    candidates: Iterable[Candidate],
    trace: Trace,
    *,
    chosen: Collection[Value] = (),
) -> Answer:
    """Answer from the best path that was found before the budget was spent; `chosen` as for `answer_of_path`."""
    spent = replace(empty, status="budget_exhausted", reason=error.reason)
    with trace.grace():
        for candidate in candidates:
            try:
                found = answer_of_path(graph, replace(candidate, approximate=True), None, empty, trace, chosen=chosen)
            except (StoreError, BudgetExhausted) as failure:
                trace.record(GaveUp(path=candidate.words, error=str(failure)))
                continue
            if found is not None:
                note = "The search was not finished. This is the answer of the best path so far."
                notes = (*empty.notes, note, *found.notes[len(empty.notes) :])
                return replace(found, status=spent.status, reason=spent.reason, notes=notes)
    return spent


def _by_name(item: Named) -> tuple[str, str, str]:
    # entities with equal names and ids are sorted by value, because the engine's order may change
    return item.name.casefold(), item.id, str(item.value)


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
) -> tuple[QueryClass, str]:
    """Compare the result of an exported query with what the search saw: the ends, the best of them, or a total.

    Returns:
        The class of the query, and a sentence about a difference; "" if there is none.
    """
    operation, returned = candidate.operation, {*values}
    same: QueryClass = "restricted" if candidate.restricted else "exact"
    seen, whole = _seen(graph, candidate, exported)
    if operation is None or not operation.is_computed:
        if seen == returned or (seen < returned and not whole):
            return same, ""
        difference = f"The exported query returned {counted(len(values), 'answer')}; the search saw {len(seen)}."
        return "superset" if seen < returned else "none", difference
    expected = exported.totals
    if operation.kind in ("count", "exists"):
        expected = [len(seen) if operation.kind == "count" else bool(seen)] if whole else None
    texts = [each.value if isinstance(each, Literal) else str(each) for each in values]
    shown = None if expected is None else [f"{float(each):g}" for each in expected]
    if shown is None or {*shown} == {*map(_rounded, texts)}:
        return same, ""
    return "none", f"The exported query returned {' and '.join(texts)}; what the search saw gives {' or '.join(shown)}."


def _rounded(text: str) -> str:
    try:
        return f"{float({'true': '1', 'false': '0'}.get(text, text)):g}"
    except ValueError:
        return text


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
            read = answer_of_path(graph, candidate, None, empty, trace, chosen=wanted)
        except TOLERATED as error:
            trace.record(GaveUp(path=candidate.words, error=str(error)))
            continue
        every = {item.value for item in read.answers} if read else set()
        if read and wanted <= every:
            return replace(read, answers=answers, query_class=read.query_class if every == wanted else "superset")
        if read and every & missing:
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
