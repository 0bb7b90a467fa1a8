"""What became of one question of a run: a line of predictions.jsonl, which holds all that scores and reports need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from kgqa.evaluation.questions import GoldAnswer, GoldQuestion


@dataclass(frozen=True)
class Record:
    """One question that was asked, with what is known to be right.

    `answer` is the object of docs/answer-json.md with its trace; `scores` each metric by name; `loss` where a right
    answer was lost, empty where nobody looked; `failure` the class of the error of a question that failed, else empty;
    `leaks`: masked names that a prompt showed all the same; `seconds` of wall time; `at` when it ended, UTC.
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

    @property
    def status(self) -> str:
        return str(self.answer.get("status", ""))

    @property
    def readings(self) -> tuple[tuple[GoldAnswer, ...], ...]:
        """The sets of gold answers, the best of which counts."""
        return self.parses or (self.answers,)


def record_of(question: GoldQuestion, answer: Mapping[str, Any], **more: Any) -> Record:
    """The record of a question and the object of its answer."""
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
        **more,
    )


def record_object(record: Record) -> dict[str, Any]:
    """A record as plain JSON data."""
    return asdict(record)


def read_record(data: Any) -> Record:
    """A record from what `record_object` gave; keys it does not know are left out.

    Raises:
        ValueError: it is no record.
    """
    try:
        known = {name: data[name] for name in Record.__dataclass_fields__ if name in data}
        known["answers"] = tuple(map(_gold, known["answers"]))
        known["parses"] = tuple(tuple(map(_gold, parse)) for parse in known.get("parses", ()))
        known["topics"] = tuple(known.get("topics", ()))
        if not isinstance(known["id"], str) or not isinstance(known["answer"], dict):
            raise TypeError("id and answer have other types")
        return Record(**known)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is no record of a run: {error}") from error


def _gold(data: Mapping[str, Any]) -> GoldAnswer:
    return GoldAnswer(data["id"], data["name"], data.get("datatype", ""), tuple(data.get("aliases", ())))
