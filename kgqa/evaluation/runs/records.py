"""Records, the lines of predictions.jsonl: a question with its answer, gold answers and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from kgqa.model import Usage
from kgqa.storage.loading import Amount, Count, Share, convert


@dataclass(frozen=True)
class Record:
    """A question that was asked, with its answer, gold answers and scores.

    `answer`: answer object with its trace (docs/answer-json.md); `answers`: gold answers; `scores`: each metric by
    name; `loss`: step at which a right answer was lost, empty if not analysed; `failure`: failure class of a failed
    question, else empty; `leaks`: number of masked names that appeared in a prompt by mistake; `seconds`: wall time;
    `at`: time (UTC) at which the question ended; `support`: for each supporting passage of the data set, the IRIs of
    the pieces of the corpus that are parts of it; `group`: id of the question in the data set if it was asked several
    times, else empty; `rollout`: number of this time, from 0; `number`: position of the question in its file, from 0,
    None in runs of earlier versions.
    """

    id: str
    dataset: str
    text: str
    answer: Mapping[str, Any]
    answers: tuple[GoldAnswer, ...]
    parses: tuple[tuple[GoldAnswer, ...], ...] = ()
    topics: tuple[str, ...] = ()
    hops: Count | None = None
    kind: str = ""
    level: str = ""
    scores: Mapping[str, Share] = field(default_factory=dict)
    loss: str = ""
    failure: str = ""
    leaks: Count = 0
    seconds: Amount = 0.0
    at: str = ""
    support: tuple[tuple[str, ...], ...] = ()
    group: str = ""
    rollout: Count = 0
    number: Count | None = None

    @property
    def status(self) -> str:
        return str(self.answer.get("status", ""))

    @property
    def cost(self) -> float | None:
        """Cost of the question in USD; None if unknown."""
        cost = (self.answer.get("usage") or {}).get("cost")
        return None if cost is None else float(cost)

    @property
    def readings(self) -> tuple[tuple[GoldAnswer, ...], ...]:
        """The gold answers of each interpretation of the question; the best match counts."""
        return self.parses or (self.answers,)


def record_of(question: GoldQuestion, answer: Mapping[str, Any], **more: Any) -> Record:
    """Build the record of a question from its answer object; `more` sets other fields of Record."""
    return Record(
        id=question.id,
        dataset=question.dataset,
        text=question.text,
        answer=answer,
        answers=question.answers,
        parses=question.parses,
        topics=question.topics,
        hops=question.hops,
        kind=question.kind,
        level=question.level,
        group=question.group,
        rollout=question.rollout,
        number=question.number,
        **more,
    )


def place_in_file(record: Record) -> tuple[bool, str, int, int]:
    """Return a key that sorts records as in the file of the data set; records of earlier versions come last."""
    return record.number is None, "" if record.number is None else record.dataset, record.number or 0, record.rollout


def read_record(data: Any) -> Record:
    """Convert the JSON data of a record (`asdict`) to a record; unknown keys are ignored.

    Raises:
        ValueError: the data are not a record.
    """
    try:
        record: Record = convert(data, Record)
        convert(record.answer, _AnswerKeys)
    except ValueError as error:
        raise ValueError(f"this is not a record of a run: {error}") from error
    return record


class _NamedKeys(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    iri: str | None = None
    value: str | None = None
    datatype: str | None = None
    language: str | None = None


class _AnswerKeys(msgspec.Struct):
    """The keys of an answer object that evaluation reads (docs/answer-json.md)."""

    status: str = ""
    method: str = ""
    reason: str | None = None
    response: str | None = None
    sparql: str | None = None
    query_class: str | None = None
    grounding: str | None = None
    answers: tuple[_NamedKeys, ...] | None = None
    topics: tuple[_NamedKeys, ...] | None = None
    evidence_sparql: str | None = None
    evidence_class: str | None = None
    paths: tuple[dict[str, Any], ...] | None = None
    evidence: tuple[dict[str, Any], ...] | None = None
    citations: tuple[dict[str, Any], ...] | None = None
    nearest: tuple[dict[str, Any], ...] | None = None
    trace: tuple[dict[str, Any], ...] | None = None
    hints: tuple[str, ...] | None = None
    confidence: Share | None = None
    usage: Usage | None = None
