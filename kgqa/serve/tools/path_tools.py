"""Follows relation paths step by step: the possible next steps of a path, and its ends with the query that finds them.

A step is written as the id or IRI of a relation; `<-` before it means that the relation is followed backwards, from
object to subject.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kgqa.errors import QuestionError, SchemaError
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.tokens import shorten_iris
from kgqa.model import Candidate, RelationPath, Step
from kgqa.serve.tools.graph_tools import BACKWARDS, MAX_TEXT, entity_by_id, written
from kgqa.storage.answer_json import named_object
from kgqa.text.words import arrow_words, clean, short_words, type_words

MAX_STEPS = 8
"""Maximum steps of a path; the two steps through a mediator count as two."""
MAX_NEXT = 500
MAX_ENDS = 1000


def next_steps(graph: KnowledgeGraph, topic: str, steps: Sequence[str] = (), *, limit: int = 200) -> dict[str, Any]:
    """Return the steps that can follow a path; those with the same meaning as another are left out.

    Args:
        topic: id or IRI of the entity where the path starts.
        steps: the steps so far; none for the steps from the topic itself.
        limit: maximum steps returned.

    Returns:
        {topic, words, steps, total, more, approximate}; a step is {step, iri, direction, words, leads_to, mediator}.
        `step` is how the step is written in a path. `mediator` is "all" or "some" if all or some nodes that it leads
        to are mediators, else "none".

    Raises:
        QuestionError: the topic is not in the graph, or a step is not one of a path.
        StoreError: a query failed.
    """
    path = read_path(graph, topic, steps)
    found = graph.paths.steps([Candidate(path)])[0]
    shown = found.steps[: max(1, min(limit, MAX_NEXT))]
    return {
        **_described(graph, path),
        "steps": [_step_object(graph, step) for step in shown],
        "total": len(found.steps),
        "more": len(found.steps) > len(shown),
        "approximate": found.approximate,
    }


def ends(graph: KnowledgeGraph, topic: str, steps: Sequence[str], *, limit: int = 50) -> dict[str, Any]:
    """Return the distinct entities and literals at the end of a path, without mediators, and the query that finds them.

    Args:
        topic: id or IRI of the entity where the path starts.
        steps: one step or more.
        limit: maximum ends returned.

    Returns:
        {topic, words, ends, more, sparql}; `more` says that there are further ends. The query returns all of them.

    Raises:
        QuestionError: the topic is not in the graph, a step is not one of a path, or all ends are mediators.
        StoreError: a query failed.
    """
    if not steps:
        raise QuestionError("The path has no steps.", "Give one step or more, such as those that next_steps returns.")
    path = read_path(graph, topic, steps)
    if graph.paths.ends_on_mediators(path):
        raise QuestionError(
            "All ends of this path are mediators, which are not answers.", "Add the step that leads on from them."
        )
    found = graph.paths.ends([Candidate(path)], limit=max(1, min(limit, MAX_ENDS)))[0]
    return {
        **_described(graph, path),
        "ends": [named_object(each) for each in graph.named(found.values)],
        "more": found.approximate,
        "sparql": shorten_iris(graph.answer_query(path), graph.schema.prefixes),
    }


def read_path(graph: KnowledgeGraph, topic: str, steps: Sequence[str]) -> RelationPath:
    """Return the path from an entity along steps as they are written.

    Raises:
        QuestionError: the topic is not in the graph, a step cannot be read, the graph does not have its relation, or
            there are more than `MAX_STEPS`.
    """
    if len(steps) > MAX_STEPS:
        raise QuestionError(f"The path has more than {MAX_STEPS} steps.", "Ask for a shorter path.")
    return RelationPath(entity_by_id(graph, topic), tuple(_read_step(graph, step) for step in steps))


def _read_step(graph: KnowledgeGraph, text: str) -> Step:
    name = text.strip()
    backwards = name.startswith(BACKWARDS)
    name = name.removeprefix(BACKWARDS if backwards else "->").strip()
    try:
        relation = graph.schema.iri(name)
    except SchemaError:
        relation = ""
    if not relation or (graph.tables.relations and relation not in graph.tables.relations):
        raise QuestionError(
            f"“{clean(text)[:MAX_TEXT]}” is not a step: the graph has no such relation.",
            f"Write the id of a relation, with {BACKWARDS} before it to follow it backwards; next_steps lists them.",
        )
    return Step(relation, "in" if backwards else "out")


def _step_object(graph: KnowledgeGraph, step: Step) -> dict[str, Any]:
    type_ = graph.tables.target_type(step)
    return {
        "step": written(graph, step),
        "iri": step.relation,
        "direction": step.direction,
        "words": short_words(step.relation, graph.schema, graph.tables.relation_labels),
        "leads_to": type_words(type_, graph.schema) if type_ else "",
        "mediator": graph.tables.mediators.extent(step),
    }


def _described(graph: KnowledgeGraph, path: RelationPath) -> dict[str, Any]:
    (topic,) = graph.named([path.topic])
    words = arrow_words(
        topic.name, path, graph.schema, graph.tables.relation_labels, is_mediator=graph.tables.leads_to_mediator
    )
    return {"topic": named_object(topic), "words": words}
