"""What an oracle has to know of a question: its solutions in this graph, in the words of the prompts."""

from __future__ import annotations

from collections.abc import Hashable

from kgqa.errors import KgqaError
from kgqa.evaluation.keys import gold_keys
from kgqa.evaluation.questions import GoldQuestion
from kgqa.evaluation.reach import Reach, exact_paths
from kgqa.explore.beam import BeamSettings
from kgqa.methods.resources import Resources
from kgqa.methods.showing import Shown
from kgqa.model import Candidate, Entity, Join, RelationPath, Value
from kgqa.testing.model_oracle import Gold
from kgqa.trace import Trace

WALKS = 300


def gold_for(question: GoldQuestion, resources: Resources, *, known: dict[Hashable, Reach] | None = None) -> Gold:
    """The solutions of a question within the depth that the settings allow: paths, or paths that meet, whose ends are
    exactly the gold answers. Without solutions the question cannot be answered by paths in this graph.

    Args:
        known: solutions found before, which do not depend on how paths are worded; they are added to.
    """
    known = {} if known is None else known
    graph, settings = resources.graph, resources.settings
    try:
        topics = list(dict.fromkeys(Entity(graph.schema.iri(topic)) for topic in question.topics))
        if not topics:
            return Gold(answers=question_names(question))
        beam = BeamSettings(settings["explore.depth"], settings["explore.mediator_hop"])
        joins = settings["explore.combine"] == "intersect"
        key = (question, beam.depth, beam.mediator_hop, joins)
        if key not in known:
            known[key] = exact_paths(graph, topics, gold_keys(question.answers), beam, join=joins)
        reach = known[key]
    except KgqaError:
        return Gold(answers=question_names(question))
    named = graph.named(topics)
    shown = Shown(graph, question.text, named, {each.value: [each.name] for each in named}, settings, Trace())
    solutions = tuple(
        frozenset(" ".join(shown.elements(Candidate(path, ""))) for path in solution) for solution in reach.solutions
    )
    nodes, ends = set(), {}
    for solution in reach.solutions:
        for path in solution:
            for walk in _walks(resources, path, solution):
                nodes |= set(walk[1:])
                ends[walk[-1]] = None
    names = {each.value: shown.name(each.value, each.name) for each in graph.named(nodes)}
    answers = tuple(dict.fromkeys(names[end] for end in ends if end in names)) or question_names(question)
    return Gold(solutions, frozenset(names.values()), answers)


def question_names(question: GoldQuestion) -> tuple[str, ...]:
    return tuple(answer.name or answer.id for answer in question.answers if answer.name or answer.id)


def _walks(resources: Resources, path: RelationPath, solution: tuple[RelationPath, ...]) -> list[tuple[Value, ...]]:
    joins = [Join(len(path), other) for other in solution if other is not path]
    try:
        return resources.graph.walks_along(path, joins=joins, limit=WALKS)
    except KgqaError:
        return []
