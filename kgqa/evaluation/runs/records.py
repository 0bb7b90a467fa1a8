"""What became of one question of a run: a line of predictions.jsonl, which holds all that scores and reports need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from types import NoneType
from typing import Any, TypeVar

from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from kgqa.untrusted_json import (
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

T = TypeVar("T")


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
        known = {name: _known(data[name], types, name) for name, types in _TYPES.items() if name in data}
        known["answers"] = _golds(known["answers"])
        known["parses"] = tuple(_golds(_known(parse, (list, tuple), "parses")) for parse in known.get("parses", ()))
        known["topics"] = _texts(known.get("topics", ()), "topics")
        check_keys(known, _NUMBERS)
        for name, value in known.get("scores", {}).items():
            if not is_score(value):
                raise TypeError(f"scores, {name} must not be {shown(value)}")
        check_keys(known["answer"], _ANSWER)
        return Record(**known)
    except KeyError as error:
        raise ValueError(f"this is no record of a run: it has no {error}") from error
    except (TypeError, AttributeError) as error:
        raise ValueError(f"this is no record of a run: {error}") from error


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("id", "dataset", "text", "kind", "level", "loss", "failure", "at"), str),
    **dict.fromkeys(("answers", "parses", "topics"), (list, tuple)),
    **dict.fromkeys(("answer", "scores"), dict),
    "hops": (int, NoneType),
    "leaks": int,
    "seconds": (int, float),
}


_NUMBERS = {"hops": optional(is_count), "leaks": is_count, "seconds": is_number}
_NAMED = object_with(**dict.fromkeys(("id", "name", "iri", "value", "datatype", "language"), optional(is_text)))
_SPENT = dict.fromkeys(("calls", "rounds", "prompt_tokens", "completion_tokens", "cost"), optional(is_number))
_STAGE = object_with(stage=is_text, **_SPENT, **dict.fromkeys(("unparsed", "repaired", "reasked", "failed"), is_count))
_ANSWER = {
    **dict.fromkeys(("status", "method"), is_text),
    **dict.fromkeys(("reason", "sparql", "query_class", "grounding"), optional(is_text)),
    **dict.fromkeys(("answers", "topics"), optional(list_of(_NAMED))),
    **dict.fromkeys(("paths", "trace"), optional(list_of(is_object))),
    "usage": optional(
        object_with(
            **_SPENT,
            **dict.fromkeys(("seconds", "hops", "candidates", "comparisons", "queries"), optional(is_number)),
            stages=optional(list_of(_STAGE)),
        )
    ),
}
"""What evaluation reads of the object of an answer (docs/answer-json.md)."""


def _known(value: T, types: type | tuple[type, ...], name: str) -> T:
    """The value. Raises TypeError where it is of none of these types; true and false are no numbers."""
    if not isinstance(value, types) or isinstance(value, bool):
        raise TypeError(f"{name} must not be {shown(value)}")
    return value


def _golds(items: Iterable[Any]) -> tuple[GoldAnswer, ...]:
    return tuple(_gold(_known(item, dict, "answers")) for item in items)


def _gold(data: Mapping[str, Any]) -> GoldAnswer:
    texts = (data["id"], data["name"], data.get("datatype", ""))
    return GoldAnswer(
        *_texts(texts, "id, name and datatype of an answer"), _texts(data.get("aliases", ()), "answers, aliases")
    )


def _texts(items: Any, name: str) -> tuple[str, ...]:
    return tuple(_known(item, str, name) for item in _known(items, (list, tuple), name))
