"""Records, the lines of predictions.jsonl: a question with its answer, gold answers and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from kgqa.storage.loading import convert
from kgqa.storage.untrusted_json import (
    check_keys,
    is_count,
    is_number,
    is_object,
    is_score,
    is_text,
    list_of,
    object_with,
    optional,
    shown,
)


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
    hops: int | None = None
    kind: str = ""
    level: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    loss: str = ""
    failure: str = ""
    leaks: int = 0
    seconds: float = 0.0
    at: str = ""
    support: tuple[tuple[str, ...], ...] = ()
    group: str = ""
    rollout: int = 0
    number: int | None = None

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
        record = convert(data, Record)
        check_keys(data, _NUMBERS)
        for name, value in record.scores.items():
            if not is_score(value):
                raise ValueError(f"scores, {name} must not be {shown(value)}")
        check_keys(record.answer, _ANSWER)
        return record
    except (ValueError, KeyError) as error:
        raise ValueError(f"this is not a record of a run: {error}") from error


_NUMBERS = {
    **dict.fromkeys(("hops", "number"), optional(is_count)),
    **dict.fromkeys(("leaks", "rollout"), is_count),
    "seconds": is_number,
}
_NAMED = object_with(**dict.fromkeys(("id", "name", "iri", "value", "datatype", "language"), optional(is_text)))
_SPENT = dict.fromkeys(("calls", "rounds", "prompt_tokens", "completion_tokens", "cost"), optional(is_number))
_STAGE = object_with(stage=is_text, **_SPENT, **dict.fromkeys(("unparsed", "repaired", "reasked", "failed"), is_count))
_ANSWER = {
    **dict.fromkeys(("status", "method"), is_text),
    **dict.fromkeys(("reason", "response", "sparql", "query_class", "grounding"), optional(is_text)),
    **dict.fromkeys(("answers", "topics"), optional(list_of(_NAMED))),
    **dict.fromkeys(("evidence_sparql", "evidence_class"), optional(is_text)),
    **dict.fromkeys(("paths", "evidence", "citations", "nearest", "trace"), optional(list_of(is_object))),
    "hints": optional(list_of(is_text)),
    "confidence": optional(is_score),
    "usage": optional(
        object_with(
            **_SPENT,
            **dict.fromkeys(("seconds", "hops", "candidates", "comparisons", "queries"), optional(is_number)),
            stages=optional(list_of(_STAGE)),
        )
    ),
}
"""A check for each key of an answer object that evaluation reads (docs/answer-json.md)."""
