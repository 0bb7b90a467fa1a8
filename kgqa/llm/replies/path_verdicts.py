"""A verdict on numbered paths: whether one of them answers the question, and under what conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any
from typing import Literal as OneOf

from kgqa.llm.replies.json_values import key_name
from kgqa.llm.replies.reply import Form, Reply, reply_of

VerdictKind = OneOf["complete", "missing", "wrong"]
MAX_CONDITIONS = 6
SIGNS = {
    **{sign: sign for sign in ("=", "!=", "<", "<=", ">", ">=", "present", "absent")},
    "==": "=",
    "is": "=",
    "equals": "=",
    "contains": "=",
    "not": "!=",
    "is not": "!=",
    "<>": "!=",
    "\u2260": "!=",
    "\u2264": "<=",
    "\u2265": ">=",
    "before": "<",
    "after": ">",
    "missing": "absent",
    "exists": "present",
}
"""The comparisons of conditions, with other ways to write them."""
DOINGS = {
    **{kind: kind for kind in ("count", "exists", "most", "least", "sum", "average", "difference")},
    "max": "most",
    "largest": "most",
    "last": "most",
    "latest": "most",
    "min": "least",
    "smallest": "least",
    "first": "least",
    "earliest": "least",
    "fewest": "least",
}
"""The operations, with other names for them."""


def _one_of(words: Mapping[str, str]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        name = key_name(value) if isinstance(value, str) else ""
        if name not in words:
            raise ValueError("none of the words")
        return words[name]

    return read


@dataclass(frozen=True, slots=True)
class RepliedCondition:
    """A condition as in the reply: a field that was shown, one of `SIGNS`, and a value ("" for present and absent)."""

    field: Annotated[str, Form(chars=300)]
    sign: Annotated[str, Form(name="is", keys=("comparison", "op"), strict=True, read=_one_of(SIGNS))] = "="
    value: Annotated[str, Form(chars=300, strict=True)] = ""


@dataclass(frozen=True, slots=True)
class RepliedOperation:
    """An operation as in the reply.

    Attributes:
        kind: One of `DOINGS`.
        field: The field whose values are compared or added; "" for the answers themselves.
        rank: 2 for the second largest value, and so on.
        counted: Whether the values of the field are counted.
        compared: Whether the topics of the question are compared.
    """

    kind: Annotated[str, Form(name="do", keys=("kind",), read=_one_of(DOINGS))]
    field: Annotated[str, Form(chars=300)] = ""
    rank: Annotated[int, Form(strict=True)] = 1
    counted: bool = False
    compared: Annotated[bool, Form(name="compare", read=bool)] = False


@dataclass(frozen=True, slots=True)
class PathVerdict:
    """A verdict. `path`: index of the path from 0. `operations`: at most one. `answer`: another field."""

    kind: Annotated[VerdictKind, Form(name="verdict")]
    path: Annotated[int, Form(keys=("number", "index"), strict=True)] = 0
    conditions: Annotated[tuple[RepliedCondition, ...], Form(keys=("condition",), strict=True)] = ()
    operations: Annotated[tuple[RepliedOperation, ...], Form(name="operation", keys=("operations",), strict=True)] = ()
    answer: Annotated[str, Form(chars=300)] = ""


def path_verdict(size: int) -> Reply[PathVerdict]:
    """Return the form of a verdict on `size` paths, numbered from 1.

    A reply is unusable if a part of it has an unknown form, because a verdict without one of its conditions has a
    different meaning.
    """

    def check(read: PathVerdict) -> PathVerdict:
        if read.kind == "wrong":
            return PathVerdict("wrong")
        path = 1 if size == 1 and not read.path else read.path
        if not 1 <= path <= size:
            raise ValueError(f'The reply names no path: give "path" as a number from 1 to {size}.')
        if len(read.conditions) > MAX_CONDITIONS or len(read.operations) > 1:
            raise ValueError(f"The reply has more than {MAX_CONDITIONS} conditions, or more than one operation.")
        operations = (replace(each, compared=each.compared or each.kind == "difference") for each in read.operations)
        return replace(
            read, path=path - 1, conditions=tuple(map(_complete, read.conditions)), operations=tuple(operations)
        )

    return Reply(reply_of(PathVerdict).then(check).read)


def _complete(condition: RepliedCondition) -> RepliedCondition:
    """Return a condition with a value; one without a value tests whether the field is absent or present."""
    signs = {"=": "absent", "!=": "present", "absent": "absent", "present": "present"}
    if condition.value and condition.sign not in ("present", "absent"):
        return condition
    if condition.sign not in signs:
        raise ValueError('The reply has a condition without a value: give {"field": "...", "is": "<", "value": "..."}.')
    return RepliedCondition(condition.field, signs[condition.sign])
