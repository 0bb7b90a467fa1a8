"""Asks questions one after the other, scores the answers, and finds the step at which right answers were lost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import partial

from kgqa.errors import SchemaError, StoreError
from kgqa.evaluation.analysis.losses import Loss, lost_at
from kgqa.evaluation.analysis.reach import Reach, exact_paths
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.metrics.keys import gold_keys
from kgqa.evaluation.metrics.measures import Outcome, score_answer
from kgqa.evaluation.runs.plan import Topics
from kgqa.explore.beam import BeamSettings, logical_hops
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.ask import ask
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Entity, Question
from kgqa.training.gold_paths import gold_paths


def ask_all(
    questions: Iterable[GoldQuestion], resources: Resources, *, topics: Topics = "gold", losses: bool = False
) -> Iterator[tuple[Outcome, Answer]]:
    """Ask every question and yield its score with its answer.

    Args:
        topics: `gold` uses the topic entities of the data set, if there are any; `linked` finds topic entities in the
            text of the question.
        losses: also find the step at which a right answer was lost. This requires following all paths up to the depth
            in the settings.
    """
    for question in questions:
        started = time.perf_counter()
        given = question.topics if topics == "gold" else ()
        answer = ask(Question(question.text, id=question.id), topics=given, resources=resources)
        seconds = time.perf_counter() - started
        found = score_answer(answer, question.answers)
        loss = loss_of(answer, question, resources, right=found.em == 1.0) if losses else ""
        outcome = Outcome(
            id=question.id,
            dataset=question.dataset,
            hops=hops_of(question, resources.graph),
            status=answer.status,
            query_class=answer.query_class,
            score=found,
            seconds=seconds,
            loss=loss,
        )
        yield outcome, answer


def loss_of(answer: Answer, question: GoldQuestion, resources: Resources, *, right: bool) -> Loss:
    """Find the step at which the gold answers of a question were lost, up to the depth in the settings."""
    graph, settings = resources.graph, resources.settings
    if right:
        return "right"
    reach, topics = Reach(capped=True), []
    try:
        topics = [Entity(graph.schema.iri(topic)) for topic in question.topics]
        if topics and answer.status not in ("unsupported", "failed"):
            beam = BeamSettings(depth=settings["explore.depth"], mediator_hop=settings["explore.mediator_hop"])
            reach = exact_paths(graph, topics, gold_keys(question.answers), beam)
    except SchemaError:
        return "failed"  # the id of a topic entity is not valid in this graph
    except StoreError:
        pass  # the result is "unknown"
    hops = partial(logical_hops, graph)
    return lost_at(answer, reach, graph.schema, right=False, gold_topics=topics, hops=hops)


def hops_of(question: GoldQuestion, graph: KnowledgeGraph) -> int | None:
    """Return the number of hops given by the data set, or else the length of the longest path in the gold query.

    A mediator and the edges on both sides count as one hop.
    """
    if question.hops is not None:
        return question.hops
    return max((logical_hops(graph, path) for path in gold_paths(question.row, graph.schema)), default=None)
