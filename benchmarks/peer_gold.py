"""The gold of a question whose gold paths are known, worded as in the prompts, for the simulated language model."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.errors import KgqaError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.metrics.keys import answer_keys, gold_keys
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.resources import Resources
from kgqa.model import Candidate, RelationPath, Step
from kgqa.testing.gold_table import gold_for, question_names, relation_names, view_of, walks_of
from kgqa.testing.model_oracle import Gold

MANY_WALKS = 5000


def gold_along(question: GoldQuestion, resources: Resources, paths: Sequence[RelationPath]) -> Gold:
    """Return the gold of a question whose gold paths are known.

    No other path counts as right, even if that path leads to the same answers.

    Args:
        paths: one path per topic entity, from the question's gold query or chain (see `kgqa.training.gold_queries`). If
            empty, `gold_for` searches the graph.
    """
    if not paths:
        return gold_for(question, resources)
    graph = resources.graph
    try:
        wanted = gold_keys(question.answers)
        explored = [_as_explored(graph, path) for path in paths]
        shown = view_of(question.text, list(dict.fromkeys(path.topic for path in explored)), resources)
        walks = [walk for path in explored for walk in walks_of(resources, path, (path,), limit=MANY_WALKS)]
        ends = {each.value: each for each in graph.named({walk[-1] for walk in walks})}
        right = {end for end, each in ends.items() if answer_keys([each], wanted) <= wanted}
        nodes = {node for walk in walks if walk[-1] in right for node in walk[1:]}
        names = {each.value: shown.name(each.value, each.name) for each in graph.named(nodes)}
        joined = resources.settings.explore.combine == "intersect"
        found = _meeting(graph, explored) if joined else [(path,) for path in explored]
    except KgqaError:
        return Gold(answers=question_names(question))
    solutions = tuple(
        frozenset(" ".join(shown.elements(Candidate(path, ""))) for path in solution) for solution in found
    )
    answers = tuple(dict.fromkeys(names[end] for end in sorted(right, key=str))) or question_names(question)
    return Gold(solutions, frozenset(names.values()), answers, relation_names(graph, paths))


def _as_explored(graph: KnowledgeGraph, path: RelationPath) -> RelationPath:
    """Rewrite a path with the steps that exploration offers; it offers only one of a relation and its inverse."""
    found = RelationPath(path.topic)
    for step in path.steps:
        twin = graph.tables.inverses.get(step.relation)
        offered = graph.paths.steps([Candidate(found)])[0].steps if twin else ()
        other = Step(twin, step.direction).reversed() if twin else step
        found = found.then(other if step not in offered and other in offered else step)
    return found


def _meeting(graph: KnowledgeGraph, paths: Sequence[RelationPath]) -> list[tuple[RelationPath, ...]]:
    """Join the paths of several topic entities at their ends, or at a mediator if all steps after it are equal."""
    if len(paths) != 2:
        return [tuple(paths)]
    first, second = paths
    common = 0
    while common < min(len(first), len(second)) and first.steps[-1 - common] == second.steps[-1 - common]:
        common += 1
    before = [RelationPath(path.topic, path.steps[: len(path) - common]) for path in paths]
    if not common or not all(len(path) and graph.paths.ends_on_mediators(path) for path in before):
        return [(first, second)]
    return [(first, before[1]), (second, before[0])]
