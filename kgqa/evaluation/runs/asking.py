"""Asks one question of a data set, scores the answer, and finds the step at which right answers were lost."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from kgqa.errors import KgqaError, QuestionError, SchemaError, StoreError
from kgqa.evaluation.analysis.losses import Loss, lost_at
from kgqa.evaluation.analysis.reach import Reach, exact_paths
from kgqa.evaluation.analysis.supporting import supporting_pieces
from kgqa.evaluation.analysis.text_losses import lost_in_text
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.metrics.keys import gold_keys
from kgqa.evaluation.metrics.scores import score_record
from kgqa.evaluation.runs.plan import Topics
from kgqa.evaluation.runs.records import Record, record_of
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.ask import ask, budget_of
from kgqa.methods.registry import method
from kgqa.methods.resources import Resources
from kgqa.methods.tournament.path_answers import with_all_names
from kgqa.model import Answer, Entity, Question
from kgqa.search.beam import BeamSettings, logical_hops
from kgqa.settings.values import Settings
from kgqa.storage.answer_json import answer_object
from kgqa.text.words import clean
from kgqa.trace import Failed, Leaks
from kgqa.trace.trace import Trace
from kgqa.training.gold_queries import gold_paths


def ask_question(question: GoldQuestion, resources: Resources, *, topics: Topics, losses: bool = False) -> Record:
    """Ask one question and return the record; an exception becomes a failed question.

    Args:
        topics: `gold` uses the topic entities of the data set, if there are any; `linked` finds topic entities in the
            text of the question.
        losses: also find the step at which a right answer was lost. Except over text, this requires following all
            paths up to the depth in the settings.
    """
    started = time.perf_counter()
    asked = Question(question.text, id=question.id)
    given = question.topics if topics == "gold" else ()
    trace = Trace(budget_of(resources.settings))
    if question.group and resources.models is not None:
        resources = replace(resources, models=resources.models.seeded(question.rollout))
    try:
        asked = replace(asked, images=images_of(question, resources.settings))
        answer = with_all_names(resources.graph, ask(asked, topics=given, resources=resources, trace=trace))
        failure = next((event.error for event in answer.trace if isinstance(event, Failed)), "")
        seconds = time.perf_counter() - started
        shown = answer_object(answer, trace=True)
        json.dumps(shown)  # the trace of a plugin may contain values that are not JSON
    except Exception as error:  # noqa: BLE001 - a defect must fail only one question, not the run
        failure = type(error).__name__
        reason = str(error) if isinstance(error, KgqaError) else f"{failure}: {error}"
        name = resources.settings.ask.method
        answer = Answer(asked, "failed", reason=reason, method=name, usage=trace.usage())
        seconds = time.perf_counter() - started
        shown = answer_object(answer, trace=True)
    scores = score_record(shown, question.readings)
    support: tuple[tuple[str, ...], ...] = ()
    with suppress(Exception):  # without the supporting passages the answer is still valid
        support = supporting_pieces(question, shown["trace"], resources.corpus)
    loss = ""
    if losses and question.answers:
        try:
            right = scores.get("em") == 1.0
            found = lost_in_text(answer, support, question.readings)
            loss = found or loss_of(answer, question, resources, right=right)
        except Exception:  # noqa: BLE001 - without a loss analysis the answer is still valid
            loss = "unknown"
    if answer.status == "failed" and not failure:
        failure = "failed"
    hops = None
    with suppress(Exception):  # the gold query may have a syntax error
        hops = hops_of(question, resources.graph)
    return record_of(
        replace(question, hops=hops),
        shown,
        scores=scores,
        loss=loss,
        failure=failure,
        leaks=sum(event.leaks for event in answer.trace if isinstance(event, Leaks)),
        seconds=round(seconds, 4),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        support=support,
    )


def images_of(question: GoldQuestion, settings: Settings) -> tuple[str, ...]:
    """Return the paths of the images that a question is about; none if its method does not look at images.

    Raises:
        QuestionError: The folder of the images is not known, or the image is not in it.
    """
    name = settings.ask.method
    if not question.image or not method(name).images:
        return ()
    folder = settings.values.get(f"{name}.images")
    if folder is None:
        raise QuestionError("The question is about an image.", f"Set {name}.images to the folder of the images.")
    path = Path(folder, question.image)
    if not path.resolve().is_relative_to(Path(folder).resolve()):
        raise QuestionError(f"The image {clean(question.image)} is not in the folder of the images.")
    return (str(path),)


def loss_of(answer: Answer, question: GoldQuestion, resources: Resources, *, right: bool) -> Loss:
    """Find the step at which the gold answers of a question were lost, up to the depth in the settings."""
    graph, settings = resources.graph, resources.settings
    if right:
        return "right"
    reach, topics = Reach(capped=True), []
    try:
        topics = [Entity(graph.schema.iri(topic)) for topic in question.topics]
        if topics and answer.status not in ("unsupported", "failed"):
            beam = BeamSettings(depth=settings.explore.depth, mediator_hop=settings.explore.mediator_hop)
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
