"""Responses that are shown to a judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgqa.evaluation.metrics.scores import answer_texts, gold_texts
from kgqa.evaluation.runs.records import Record

MOST_SHOWN = 50
"""Gold answers or pieces of evidence that a judge is shown, at most."""
NO_RESPONSE = "(nothing)"
"""Shown to a judge in place of an empty response."""


@dataclass(frozen=True)
class JudgedResponse:
    """A response to a question, with gold answers, and evidence for the evidence score."""

    question: str
    response: str
    gold: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


def response_of(record: Record, evidence: Sequence[str] = ()) -> JudgedResponse:
    """Build a response from the names of the answers in a record."""
    gold = gold_texts(record.readings, aliases=False)
    return JudgedResponse(record.text, ", ".join(answer_texts(record.answer)), tuple(gold), tuple(evidence))
