"""Asks the questions of a file one after the other and says how right each answer is, and where it was lost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Literal as OneOf

from kgqa.errors import SchemaError, StoreError
from kgqa.evaluation.analysis.losses import Loss, lost_at
from kgqa.evaluation.analysis.reach import Reach, exact_paths
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.metrics.keys import gold_keys
from kgqa.evaluation.metrics.measures import Outcome, score_answer
from kgqa.explore.beam import BeamSettings, logical_hops
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.ask import ask
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Entity, Question
from kgqa.training.gold_paths import gold_paths

Topics = OneOf["gold", "linked"]


def ask_all(
    questions: Iterable[GoldQuestion], resources: Resources, *, topics: Topics = "gold", losses: bool = False
) -> Iterator[tuple[Outcome, Answer]]:
    """Ask every question and score its answer, as soon as it is there.

    Args:
        topics: `gold`: the topics of the file are given, except where it has none; `linked`: found in the text.
        losses: also say where a right answer was lost, which takes a walk over all paths within the depth.
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
    """Where the gold answers of a question were lost, at the depth that the settings allow."""
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
        return "failed"  # an id that is none in this graph
    except StoreError:
        pass  # then nobody knows
    hops = partial(logical_hops, graph)
    return lost_at(answer, reach, graph.schema, right=False, gold_topics=topics, hops=hops)


def hops_of(question: GoldQuestion, graph: KnowledgeGraph) -> int | None:
    """What the file says, else the hops of the gold query's longest path, a mediator and its exit being one."""
    if question.hops is not None:
        return question.hops
    return max((logical_hops(graph, path) for path in gold_paths(question.row, graph.schema)), default=None)
