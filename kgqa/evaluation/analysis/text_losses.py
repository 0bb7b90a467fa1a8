"""Finds the step at which a method over text lost the right answer.

The events of the question are compared with the supporting passages of the data set: whether their pieces were
retrieved, whether they were kept for a prompt, and whether a prompt was answered rightly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kgqa.evaluation.analysis.losses import Loss
from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.text_metrics import token_overlap
from kgqa.model import Answer
from kgqa.trace import Event, PiecesKept, Retrieved, StepAnswered

Readings = Iterable[Sequence[GoldAnswer]]


def lost_in_text(answer: Answer, support: Sequence[Collection[str]], readings: Readings) -> Loss | None:
    """Find out at which step the gold answers were lost; None for an answer that was not searched in texts.

    Answers are compared by their words, without articles, in any order.

    Args:
        answer: The answer, with its trace.
        support: For each supporting passage, the IRIs of its pieces; a passage without pieces is not in the corpus.
        readings: The gold answers of each interpretation of the question.
    """
    events = [each for each in answer.trace if isinstance(each, Retrieved)]
    if not events:
        return None
    readings = list(readings)
    if answer.status == "failed":
        return "failed"
    if _is_gold([each.name for each in answer.answers], readings):
        return "right"
    if any(_is_gold(each.answers, readings) for each in answer.trace if isinstance(each, StepAnswered)):
        return "not accepted"
    if answer.status == "budget_exhausted":
        return "budget"
    if not support:
        return "unknown" if any(each.pieces for each in events) else "not retrieved"
    if not _contains(events, support):
        return "not retrieved"
    kept: list[Event] = [each for each in answer.trace if isinstance(each, PiecesKept)]
    return "misread" if _contains(kept, support) else "not kept"


def _contains(events: Iterable[Event], support: Sequence[Collection[str]]) -> bool:
    """Return whether the pieces of events contain a part of every supporting passage."""
    pieces = {iri for each in events if isinstance(each, Retrieved | PiecesKept) for iri in each.pieces}
    return all(not pieces.isdisjoint(passage) for passage in support)


def _is_gold(answers: Sequence[str], readings: Readings) -> bool:
    """Return whether answers are exactly the gold answers of a reading."""
    return any(
        len(answers) == len(reading) > 0
        and all(any(_is_same(name, gold) for name in answers) for gold in reading)
        and all(any(_is_same(name, gold) for gold in reading) for name in answers)
        for reading in readings
    )


def _is_same(name: str, gold: GoldAnswer) -> bool:
    return token_overlap(name, [gold.name, *gold.aliases]).em == 1.0
