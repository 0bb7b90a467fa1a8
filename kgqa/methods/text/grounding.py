"""Grounds answers over text: the facts that were used, the path through them to the answer, and the queries."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.inspection.evidence import facts_in_spans, facts_in_text
from kgqa.corpus.items import HYPEREDGE
from kgqa.errors import StoreError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.text.pieces import INFERRED, UNQUOTED, with_quote_query
from kgqa.methods.tournament.path_answers import answer_of_entities
from kgqa.model import Answer, Candidate, Entity, Named, Piece, QuoteEvidence, RelationPath, Step, Triple, Value
from kgqa.text.quotes import find_name
from kgqa.text.words import normalise, published_words
from kgqa.trace import GaveUp
from kgqa.trace.trace import BudgetExhausted, Trace

MAX_FACTS = 50
"""Most used facts among which a path to the answer is searched."""
MAX_HOPS = 3


def grounded(
    answer: Answer,
    used: Sequence[Piece],
    graph: KnowledgeGraph,
    corpus: Corpus,
    trace: Trace,
    *,
    others: Iterable[Piece] = (),
) -> Answer:
    """Add to an answer with checked quotes the facts that it rests on, and its queries.

    If facts of the corpus lead from an entity of the question to every answer, the answers become nodes of the graph,
    and `sparql` follows this path through the nodes between them. Facts are those of the used and other pieces, and
    those that stand in verified quotes. The evidence query returns the statements and the chunks of the quotes.

    Args:
        answer: The answer.
        used: The pieces that the answer cites.
        graph: The graph of the corpus, charged to the question.
        corpus: The corpus.
        trace: The trace of the question.
        others: Further pieces whose facts the path may follow; only those on the path are evidence.

    Raises:
        AnswerInQuery: A query contains an answer, which is a bug in kgqa.
    """
    quoted = [each.span for each in answer.evidence if isinstance(each, QuoteEvidence) and each.verified]
    try:
        cited = list(_facts_of(used))
        found = (*cited, *_facts_of(others), *facts_in_spans(corpus, graph, quoted))
        facts = list(dict.fromkeys(found))[:MAX_FACTS]
        if answer.answers and facts:
            answer = with_path_query(answer, facts, graph, trace)
        answer = replace(answer, evidence=(*answer.evidence, *facts_in_text(corpus, graph, cited)))
        return with_quote_query(answer, graph, corpus)
    except (StoreError, BudgetExhausted) as error:
        trace.record(GaveUp(error=str(error)))
        return replace(answer, notes=(*answer.notes, f"The query of the answer is missing: {error}"))


def _facts_of(pieces: Iterable[Piece]) -> Iterator[Triple]:
    """Yield the triples of statements and paths among pieces."""
    for piece in pieces:
        if piece.kind in ("statement", "path"):
            yield from (each for each in piece.triples if not each.subject.iri.startswith(HYPEREDGE))


def with_path_query(
    answer: Answer, facts: Sequence[Triple], graph: KnowledgeGraph, trace: Trace, *, hops: int = MAX_HOPS
) -> Answer:
    """Make the answers nodes of the graph, if facts lead from a node that the question names to every one of them.

    Args:
        answer: The answer.
        facts: The triples that the path may follow.
        graph: The graph that contains them.
        trace: The trace of the question.
        hops: Most steps of the path.

    Raises:
        AnswerInQuery: The query contains an answer, which is a bug in kgqa.
        StoreError: The graph failed.
    """
    nodes = dict.fromkeys(node for fact in facts for node in (fact.subject, fact.object))
    named = graph.named(nodes)
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
    candidates = [_candidate(topic, walk, graph) for topic, walk in walks]
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


Walk = tuple[tuple[Step, Value], ...]
"""A walk from a node that is not part of it: steps, and the node to which each one leads."""


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


def _candidate(topic: Entity, walk: Walk, graph: KnowledgeGraph) -> Candidate:
    """Return the path of a walk, which leads through the inner nodes of the walk only."""
    path = RelationPath(topic, tuple(step for step, _ in walk))
    inner = tuple((at, (node,)) for at, (_, node) in enumerate(walk[:-1], 1) if isinstance(node, Entity))
    return Candidate(path, published_words(path, graph.schema), restricted=inner)
