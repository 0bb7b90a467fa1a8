"""Think-on-Graph (Sun et al. 2024), the baseline: the answer to a question from the end of the search."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from kgqa.errors import StoreError
from kgqa.methods.direct import UNREADABLE, recalled
from kgqa.methods.registry import TogSettings
from kgqa.methods.resources import Resources
from kgqa.methods.tog.published import Chain, ThinkOnGraph
from kgqa.methods.tog.robust import RobustThinkOnGraph
from kgqa.methods.tournament.path_answers import answer_of_entities
from kgqa.model import Answer, Candidate, Entity, Literal, Named, Question, RelationPath, Value
from kgqa.text.words import normalise
from kgqa.trace import Accepted, GaveUp
from kgqa.trace.trace import BudgetExhausted, Trace

METHOD = "tog"


def answer(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named],
    names: Mapping[Value, Sequence[str]],
) -> Answer:
    """Answer by Think-on-Graph; arguments and errors as in `top.answer`. Names of topics are not masked."""
    assert resources.models is not None
    faithful = resources.settings.of(TogSettings).parse == "faithful"
    search = (ThinkOnGraph if faithful else RobustThinkOnGraph)(question, resources, trace)
    notes = (f"Explored by {resources.models.name}.",)
    empty = Answer(question, "no_answer", method=METHOD, notes=notes, topics=tuple(topics))
    frontier = [Chain(RelationPath(topic.value), ()) for topic in topics if isinstance(topic.value, Entity)]
    texts: tuple[str, ...] | None = None
    try:
        for _ in range(resources.settings.explore.depth):
            frontier = search.hop(frontier)
            if not frontier:
                break
            texts = search.sufficient()
            if texts:
                trace.record(Accepted(why="the triples are sufficient", answers=texts[:20]))
                break
        if not texts:
            # as published, the model answers from the triples; if there are none, it thinks step by step
            if not search.chains:
                recall = recalled(question, "cot", resources, trace)
                return replace(recall, method=METHOD, topics=tuple(topics), notes=(*notes, *recall.notes))
            texts = search.final_answer()
    except BudgetExhausted as error:
        return _best_so_far(search, empty, error, resources, trace)
    if not texts:
        return replace(empty, reason=UNREADABLE)
    return _grounded(search, texts, empty, resources, trace)


def _best_so_far(
    search: ThinkOnGraph, empty: Answer, error: BudgetExhausted, resources: Resources, trace: Trace
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


def _grounded(search: ThinkOnGraph, texts: Sequence[str], empty: Answer, resources: Resources, trace: Trace) -> Answer:
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


def _leading_to(search: ThinkOnGraph, wanted: Collection[Value]) -> Iterator[Candidate]:
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
    for path, chains in along.items():
        for nodes in chains:
            yield _restricted_to(search, path, [nodes])
    for path, chains in along.items():
        if len(chains) > 1:
            yield _restricted_to(search, path, list(chains))


def _restricted_to(search: ThinkOnGraph, path: RelationPath, chains: Sequence[tuple[Value, ...]]) -> Candidate:
    """Return a path restricted, at each position, to the nodes that the chains have at this position."""
    restricted = tuple(
        (position, tuple(dict.fromkeys(node for node in nodes if isinstance(node, Entity))))
        for position, nodes in enumerate(zip(*chains), 1)
    )
    return Candidate(path, ", ".join(search.hops(path)), restricted=restricted)
