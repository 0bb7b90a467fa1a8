"""The answer to a question from the end of a search of Think-on-Graph."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from kgqa.errors import StoreError
from kgqa.methods.direct import UNREADABLE, recalled
from kgqa.methods.resources import Resources
from kgqa.methods.tog.chains import Chain, ChainSearch
from kgqa.methods.tournament.path_answers import answer_of_entities
from kgqa.model import Answer, Candidate, Entity, Literal, Named, Question, RelationPath, Value
from kgqa.text.words import normalise
from kgqa.trace import Accepted, GaveUp
from kgqa.trace.trace import BudgetExhausted, Trace


def answer_with(
    search: ChainSearch, question: Question, resources: Resources, trace: Trace, topics: Sequence[Named]
) -> Answer:
    """Search until the model says that the triples are enough, at most to the depth; return its answer, grounded."""
    assert resources.models is not None
    notes = (f"Explored by {resources.models.name}.",)
    empty = Answer(question, "no_answer", method="tog", notes=notes, topics=tuple(topics))
    frontier = [Chain(RelationPath(topic.value)) for topic in topics if isinstance(topic.value, Entity)]
    texts: tuple[str, ...] | None = None
    try:
        for _ in range(resources.settings.explore.depth):
            frontier = search.hop(frontier)
            texts = search.sufficient() if frontier else None
            if texts:
                trace.record(Accepted(why="the triples are sufficient", answers=texts[:20]))
            if texts or not frontier:
                break
        if not texts and not search.chains:
            recall = recalled(question, "cot", resources, trace)
            return replace(recall, method="tog", topics=tuple(topics), notes=(*notes, *recall.notes))
        texts = texts or search.final_answer()
    except BudgetExhausted as error:
        return _best_so_far(search, empty, error, resources, trace)
    return _grounded(search, texts, empty, resources, trace) if texts else replace(empty, reason=UNREADABLE)


def _best_so_far(
    search: ChainSearch, empty: Answer, error: BudgetExhausted, resources: Resources, trace: Trace
) -> Answer:
    """Return the end of the best chain in the last finished hop as the answer; called when the budget is spent."""
    spent = replace(empty, status="budget_exhausted", reason=error.reason)
    longest = max((len(chain.nodes) for chain in search.chains), default=0)
    ends = [chain.end for chain in search.chains if len(chain.nodes) == longest and chain.nodes][:1]
    if not ends:
        return spent
    with trace.grace():
        try:
            graph = resources.graph.for_question(trace)
            found = answer_of_entities(graph, empty, graph.named(ends), _leading_to(search, set(ends)), trace)
        except (StoreError, BudgetExhausted) as failure:
            trace.record(GaveUp(path="", error=str(failure)))
            return spent
    notes = (*found.notes, "The search was not finished. This is the answer of the best walk so far.")
    return replace(found, status="budget_exhausted", reason=spent.reason, notes=notes)


def _grounded(search: ChainSearch, texts: Sequence[str], empty: Answer, resources: Resources, trace: Trace) -> Answer:
    """Return an answer of nodes if each string names exactly one node of the chains, else an answer of strings."""
    graph = resources.graph.for_question(trace)
    nodes = list(dict.fromkeys(node for chain in search.chains for node in chain.nodes))
    by_name: dict[str, list[Named]] = {}
    for named in graph.named(nodes):
        by_name.setdefault(normalise(named.name.replace(";", ",")), []).append(named)
    found = [by_name.get(normalise(text), []) for text in texts]
    if not all(len(same) == 1 for same in found):
        answers = tuple(Named(Literal(text), "", text) for text in texts)
        note = "Answered by the language model: not every answer is an entity that the search reached."
        return replace(empty, status="answered", answers=answers, grounding="model", notes=(*empty.notes, note))
    wanted = {same[0].value: same[0] for same in found}
    return answer_of_entities(graph, empty, list(wanted.values()), _leading_to(search, set(wanted)), trace)


def _leading_to(search: ChainSearch, wanted: Collection[Value]) -> Iterator[Candidate]:
    """Yield the chains that lead to wanted nodes, as paths restricted to the nodes of the chains.

    Each chain is yielded separately first; then all chains along the same path are yielded together. Before these come
    the paths that the search yields as `whole_paths`.
    """
    yield from search.whole_paths(wanted)
    along: dict[RelationPath, dict[tuple[Value, ...], None]] = {}
    for chain in search.chains:
        for length in range(1, len(chain.nodes) + 1):
            if chain.nodes[length - 1] in wanted:
                path = RelationPath(chain.path.topic, chain.path.steps[:length])
                along.setdefault(path, {})[chain.nodes[: length - 1]] = None
    single = [(path, [nodes]) for path, chains in along.items() for nodes in chains]
    together = [(path, list(chains)) for path, chains in along.items() if len(chains) > 1]
    for path, several in (*single, *together):
        restricted = tuple(
            (position, tuple(dict.fromkeys(node for node in nodes if isinstance(node, Entity))))
            for position, nodes in enumerate(zip(*several), 1)
        )
        yield Candidate(path, search.hops(path), restricted=restricted)
