"""Computes the solutions of a question in a graph, worded as in the prompts, for simulated language models."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from kgqa.errors import KgqaError
from kgqa.evaluation.analysis.reach import Reach, exact_paths
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.metrics.keys import gold_keys
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.prompt_view import PromptView, path_words
from kgqa.methods.resources import Resources
from kgqa.model import Candidate, Entity, Join, RelationPath, Step, Value
from kgqa.search.beam import BeamSettings
from kgqa.search.topics import names_of_topics
from kgqa.testing.gold_verdicts import gold_verdict
from kgqa.testing.model_oracle import Gold
from kgqa.text.words import relation_words
from kgqa.trace.trace import Trace

WALKS = 300


def gold_for(question: GoldQuestion, resources: Resources, *, known: dict[Hashable, Reach] | None = None) -> Gold:
    """Find the solutions of a question with at most as many hops as the settings allow.

    A solution is a path, or several joined paths, that ends at exactly the gold answers. Without a solution, paths in
    this graph cannot answer the question.

    Args:
        known: cache of solutions; new solutions are added. Solutions do not depend on the wording of paths.
    """
    known = {} if known is None else known
    graph, settings = resources.graph, resources.settings
    try:
        topics = list(dict.fromkeys(Entity(graph.schema.iri(topic)) for topic in question.topics))
        if not topics:
            return Gold(answers=question_names(question))
        beam = BeamSettings(settings.explore.depth, settings.explore.mediator_hop)
        joins = settings.explore.combine == "intersect"
        key = (question, beam.depth, beam.mediator_hop, joins)
        if key not in known:
            known[key] = exact_paths(graph, topics, gold_keys(question.answers), beam, join=joins)
        reach = known[key]
    except KgqaError:
        return Gold(answers=question_names(question))
    shown = view_of(question.text, topics, resources)
    solutions = tuple(
        frozenset(" ".join(shown.elements(Candidate(path, ""))) for path in solution) for solution in reach.solutions
    )
    nodes: set[Value] = set()
    ends: dict[Value, None] = {}
    for solution in reach.solutions:
        for path in solution:
            for walk in walks_of(resources, path, solution):
                nodes |= set(walk[1:])
                ends[walk[-1]] = None
    names = {each.value: shown.name(each.value, each.name) for each in graph.named(nodes)}
    answers = tuple(dict.fromkeys(names[end] for end in ends if end in names)) or question_names(question)
    paths = [path for solution in reach.solutions for path in solution]
    found = Gold(solutions, frozenset(names.values()), answers, relation_names(graph, paths))
    demanded = (
        None if solutions or settings.rank.wording == "published" else gold_verdict(question, topics, shown, resources)
    )
    if demanded is None:
        return found
    return replace(found, solutions=(demanded.paths,), verdicts={demanded.main: demanded.demanded})


def view_of(text: str, topics: Sequence[Entity], resources: Resources) -> PromptView:
    """Return a question as `ask` shows it to a language model if it is given the topics."""
    named, names = names_of_topics(resources.graph, text, topics, (), given=True)
    return PromptView(resources.graph, text, named, names, resources.settings, Trace())


def relation_names(graph: KnowledgeGraph, paths: Sequence[RelationPath]) -> frozenset[str]:
    """Return the ids and the words of all relations on paths, and of their inverses."""
    relations = {step.relation for path in paths for step in path.steps}
    relations |= {twin for relation in relations if (twin := graph.tables.inverses.get(relation))}
    words = {relation_words(relation, graph.schema, graph.tables.relation_labels) for relation in relations}
    steps = [Step(relation, direction) for relation in relations for direction in ("out", "in")]
    words |= {path_words(graph, RelationPath(path.topic, (step,)))[0] for path in paths[:1] for step in steps}
    return frozenset(words | {graph.schema.short_id(relation) for relation in relations})


def question_names(question: GoldQuestion) -> tuple[str, ...]:
    """Return the names of a question's gold answers; for an answer without a name, return its id."""
    return tuple(answer.name or answer.id for answer in question.answers if answer.name or answer.id)


def walks_of(
    resources: Resources, path: RelationPath, solution: tuple[RelationPath, ...], limit: int = WALKS
) -> list[tuple[Value, ...]]:
    """Return the walks along a path of a solution; none if the graph does not answer."""
    joins = tuple(Join(len(path), other) for other in solution if other is not path)
    try:
        walks: list[tuple[Value, ...]] = resources.graph.paths.walks([Candidate(path, joins=joins)], limit=limit)[0]
    except KgqaError:
        return []
    return walks
