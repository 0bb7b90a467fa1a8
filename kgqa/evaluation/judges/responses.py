"""Responses that are shown to a judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgqa.evaluation.metrics.scores import answer_texts, gold_texts
from kgqa.evaluation.runs.records import Record

MAX_SHOWN = 50
"""Maximum number of gold answers, or of pieces of evidence, in a prompt."""
NO_RESPONSE = "(nothing)"
"""Text that stands for an empty response in a prompt."""


@dataclass(frozen=True)
class JudgedResponse:
    """A response to a question, with gold answers and evidence if known."""

    question: str
    response: str
    gold: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


def response_of(record: Record, evidence: Sequence[str] = ()) -> JudgedResponse:
    """Build a response from a record: the answer's long text or, if there is none, the names of the answers."""
    gold = gold_texts(record.readings, aliases=False)
    response = record.answer.get("response") or ", ".join(answer_texts(record.answer))
    return JudgedResponse(record.text, response, tuple(gold), tuple(evidence))
