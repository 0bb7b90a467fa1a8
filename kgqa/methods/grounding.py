"""Grounds the answers of replies: in paths of the graph, in facts of the corpus that lead to them, or in quotes."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.inspection.evidence import facts_in_spans, facts_in_text
from kgqa.corpus.items import HYPEREDGE
from kgqa.corpus.rdf.vocabulary import STATEMENT_VOCABULARY, TEXT
from kgqa.errors import PartialResult, QueryRejected, StoreError, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.export import AnswerInQuery, evidence_query
from kgqa.graph.query.text import render
from kgqa.methods.evidence import CheckedReply
from kgqa.methods.tournament.path_answers import answer_of_entities
from kgqa.model import (
    Answer,
    Candidate,
    Entity,
    Grounding,
    HyperedgeEvidence,
    Named,
    Piece,
    QueryClass,
    QuoteEvidence,
    RelationPath,
    StatementEvidence,
    Step,
    Triple,
    Value,
)
from kgqa.text.quotes import find_name
from kgqa.text.words import counted, normalise, published_words, sentence
from kgqa.trace import GaveUp
from kgqa.trace.trace import BudgetExhausted, Trace

UNQUOTED = "No verified quote contains the answer; the language model may have it from elsewhere."
INFERRED = "The answer does not stand in a quote; it follows from claims that are all quoted."
NOT_CONTAINED = "The passages that were found do not contain the answer."
COMPUTED = re.compile(r"(?:yes|no|true|false|[-+]?\d[\d.,]*\s?%?)\.?", re.IGNORECASE)
"""Answers that a model may infer from quotes: yes or no, a number."""
MAX_PIECES = 50
"""Most statements and chunks in an evidence query; servers are slow with long lists."""
MAX_FACTS = 50
"""Most used facts among which a path to the answer is searched."""
MAX_HOPS = 3
"""Most steps of such a path; twice as many through hyperedges."""
Walk = tuple[tuple[Step, Value], ...]
"""A walk from a node that is not part of it: steps, and the node to which each one leads."""


def ground(
    reply: CheckedReply[Any],
    empty: Answer,
    graph: KnowledgeGraph,
    trace: Trace,
    corpus: Corpus,
    *,
    used: Sequence[Piece] = (),
    others: Iterable[Piece] = (),
    hyper: bool = False,
    notes: Iterable[str] = (),
) -> Answer:
    """Build the answer of a checked reply, with its evidence and queries.

    Answers become nodes of the graph if facts
    of the corpus lead from an entity of the question to every one of them: facts of the used and other pieces, and
    those that stand in verified quotes. Otherwise their quotes stand for them, or else they are the model's own.

    Args:
        reply: The reply.
        empty: An answer without results, which provides the question, the method, the topics and the notes.
        graph: The graph of the corpus, charged to the question.
        trace: The trace of the question.
        corpus: The corpus from which the reply quotes.
        used: The pieces that the answer rests on.
        others: Further pieces whose facts the path may follow; only those on the path are evidence.
        hyper: Whether the facts are those of hyperedges.
        notes: Notes that follow those on the reply.

    Raises:
        AnswerInQuery: A query contains an answer, which is a bug in kgqa.
    """
    named = reply.named
    grounding, doubts = _grounding(reply)
    answer = replace(
        empty,
        status="answered" if named else "no_answer",
        reason="" if named else NOT_CONTAINED,
        answers=named,
        response=reply.response,
        citations=reply.citations,
        evidence=reply.quotes,
        grounding=grounding if named else "none",
        notes=(*empty.notes, *reply.notes, *(doubts if named else ()), *notes),
    )
    try:
        facts = [triple for piece in used for triple in _facts_of(piece, hyper)]
        way = graph.view_of(*view) if hyper and (view := corpus.views.get("hyper")) else graph
        if not hyper:
            more = [triple for piece in others for triple in _facts_of(piece, hyper)]
            quoted = facts_in_spans(corpus, graph, [each.span for each in reply.quotes])
            answer = _with_path(answer, list(dict.fromkeys([*facts, *more, *quoted]))[:MAX_FACTS], way, trace)
        elif way is not graph:
            answer = _with_path(answer, facts, way, trace, hops=2 * MAX_HOPS)
        if not hyper or way is not graph:
            answer = replace(answer, evidence=(*answer.evidence, *facts_in_text(corpus, graph, facts)))
        if answer.grounding == "text" and not answer.sparql and reply.places:
            answer = _with_words_query(answer, reply, graph, corpus)
        iris = [iri for name in ("statements", "text") for iri in corpus.views.get(name, ())]
        if iris and answer.evidence:
            answer = with_evidence_query(graph.view_of(*iris), answer, STATEMENT_VOCABULARY)
        return answer
    except (StoreError, BudgetExhausted) as error:
        trace.record(GaveUp(error=str(error)))
        return replace(answer, notes=(*answer.notes, f"The query of the answer is missing: {error}"))


def _grounding(reply: CheckedReply[Any]) -> tuple[Grounding, tuple[str, ...]]:
    """Return what the answers of a reply rest on, and a note if a quote does not contain them."""
    stated = reply.stated
    left = [each.name for each in reply.named if each.name not in stated]
    if not left:
        return "text", ()
    if reply.proven and all(COMPUTED.fullmatch(name.strip()) for name in left):
        return "text", (INFERRED,)
    return "model", (UNQUOTED,)


def _facts_of(piece: Piece, hyper: bool) -> Iterable[Triple]:
    """Return the triples of a statement or path, or those of a hyperedge."""
    if hyper:
        return piece.triples if piece.kind == "hyperedge" else ()
    kinds = ("statement", "path")
    return [each for each in piece.triples if piece.kind in kinds and not each.subject.iri.startswith(HYPEREDGE)]


def _with_path(
    answer: Answer, facts: Sequence[Triple], graph: KnowledgeGraph, trace: Trace, *, hops: int = MAX_HOPS
) -> Answer:
    """Make the answers nodes of the graph, if facts lead from a node that the question names to every one of them."""
    if not answer.answers or not facts:
        return answer
    named = graph.named(dict.fromkeys(node for fact in facts for node in (fact.subject, fact.object)))
    ends: dict[str, Named] = {}
    for each in answer.answers:
        match = next((node for node in named if normalise(node.name) == normalise(each.name)), None)
        if match is None:
            return answer
        ends[each.name] = match
    wanted = {each.value for each in ends.values()}
    topics = [node.value for node in named if _is_named(node, answer.question.text)]
    if wanted & set(topics):
        return answer  # the question names its answer, as comparisons do; a path to it explains nothing
    starts = [topic for topic in topics if isinstance(topic, Entity)]
    walks = [
        (topic, walk) for topic in starts for end in wanted if (walk := shortest_walk(facts, topic, end, wanted, hops))
    ]
    walks.sort(key=lambda each: (len(each[1]), repr(each)))
    candidates = [_path_of(topic, walk, graph) for topic, walk in walks]
    empty = Answer(answer.question, "no_answer", method=answer.method, topics=tuple(graph.named(starts)))
    found = answer_of_entities(graph, empty, list(ends.values()), candidates, trace)
    if not found.sparql:
        return answer
    return replace(
        answer,
        answers=found.answers,
        evidence=(*found.evidence, *answer.evidence),
        sparql=found.sparql,
        query_class=found.query_class,
        grounding="graph",
        topics=tuple(each for each in empty.topics if each.value == found.paths[0].path.topic),
        approximate=found.approximate,
        defects=(*answer.defects, *found.defects),
        notes=(*(note for note in answer.notes if note not in (UNQUOTED, INFERRED)), *found.notes),
    )


def _is_named(node: Named, question: str) -> bool:
    """Return whether a question names a node; words in lower case, such as "band", name a kind of thing."""
    special = node.name != node.name.lower() or not node.name.isascii()
    return special and find_name(question, node.name) is not None


def _with_words_query(answer: Answer, reply: CheckedReply[Any], graph: KnowledgeGraph, corpus: Corpus) -> Answer:
    """Add the query that returns the answers as words of their chunks, and classify it by its result."""
    view = corpus.views.get("text", ())
    if not view:
        return answer
    places = [(Entity(chunk), begin + 1, end - begin) for chunk, begin, end in reply.places]  # SPARQL counts from 1
    text = render("quoted_answers", view=tuple(map(Entity, view)), places=places, text_relation=Entity(TEXT))
    sparql = "\n".join(line.rstrip() for line in text.split("\n") if line.strip())
    same = {*graph.run_exported(sparql)} == {each.value for each in answer.answers}
    defects = () if same else ("The exported query returned other texts than the answers.",)
    class_: QueryClass = "exact" if same else "none"
    return replace(answer, sparql=sparql, query_class=class_, defects=(*answer.defects, *defects))


def shortest_walk(
    facts: Iterable[Triple], start: Value, end: Value, avoided: Collection[Value] = (), hops: int = MAX_HOPS
) -> Walk:
    """Return the shortest walk along facts, in any direction, from a node to another; empty if there is none.

    Among walks of equal length, the order of the facts decides.

    Args:
        facts: The facts.
        start: Where the walk starts.
        end: Where it ends.
        avoided: Nodes through which it must not lead.
        hops: Most steps of the walk.
    """
    steps: dict[Value, list[tuple[Step, Value]]] = defaultdict(list)
    for fact in facts:
        steps[fact.subject].append((Step(fact.relation, "out"), fact.object))
        steps[fact.object].append((Step(fact.relation, "in"), fact.subject))
    seen, waiting = {start}, deque([(start, Walk())])
    while waiting:
        node, walk = waiting.popleft()
        for step, there in steps[node] if len(walk) < hops else ():
            if there == end:
                return (*walk, (step, there))
            if there not in seen and there not in avoided and isinstance(there, Entity):
                seen.add(there)
                waiting.append((there, (*walk, (step, there))))
    return ()


def _path_of(topic: Entity, walk: Walk, graph: KnowledgeGraph) -> Candidate:
    """Return the path of a walk, which leads through the inner nodes of the walk only."""
    path = RelationPath(topic, tuple(step for step, _ in walk))
    inner = tuple((at, (node,)) for at, (_, node) in enumerate(walk[:-1], 1) if isinstance(node, Entity))
    return Candidate(path, published_words(path, graph.schema), restricted=inner)


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
