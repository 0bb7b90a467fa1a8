"""A verdict on numbered paths: whether one of them answers the question, and under what conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any
from typing import Literal as OneOf

from kgqa.llm.replies.json_values import key_name
from kgqa.llm.replies.reply import Form, Reply, reply_of
from kgqa.text.words import clean

VerdictKind = OneOf["complete", "missing", "wrong"]
MAX_CONDITIONS = 6
MAX_CHARS = 300
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


def _number(value: Any) -> int:
    """Return the number of a path: 0 if there is none, and -1 for another value."""
    digits = str(value).strip(" []#*")
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else 0
    return 0 if value in (None, "", []) else number or -1


def _condition(value: Any) -> RepliedCondition:
    """Return a condition; one without a value tests whether the field is absent or present."""
    table = {key_name(key): inner for key, inner in value.items()} if isinstance(value, dict) else {}
    sign = _one_of(SIGNS)(next((table[key] for key in ("is", "comparison", "op") if key in table), "="))
    bare = {"present": "present", "absent": "absent"}
    bare |= {"=": "absent", "!=": "present"} if table.get("value") is None else {}
    field, given = _text(table.get("field")), "" if sign in bare else _text(table.get("value"))
    if not field or not (given or sign in bare):
        raise ValueError("no field or no value")
    return RepliedCondition(field, bare.get(sign, sign), given)


def _text(value: Any) -> str:
    is_text = isinstance(value, str | int | float) and not isinstance(value, bool)
    return clean(str(value)[: 4 * MAX_CHARS])[:MAX_CHARS].strip() if is_text else ""


@dataclass(frozen=True, slots=True)
class RepliedCondition:
    """A condition as in the reply: a field that was shown, one of `SIGNS`, and a value ("" for present and absent)."""

    field: str
    sign: Annotated[str, Form(name="is")] = "="
    value: str = ""


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
    field: Annotated[str, Form(chars=MAX_CHARS)] = ""
    rank: Annotated[int, Form(strict=True)] = 1
    counted: bool = False
    compared: Annotated[bool, Form(name="compare", read=bool)] = False


@dataclass(frozen=True, slots=True)
class PathVerdict:
    """A verdict. `path`: index of the path from 0. `operations`: at most one. `answer`: another field."""

    kind: Annotated[VerdictKind, Form(name="verdict")]
    path: Annotated[int, Form(keys=("number", "index"), read=_number)] = 0
    conditions: Annotated[
        tuple[Annotated[RepliedCondition, Form(read=_condition)], ...], Form(keys=("condition",), strict=True)
    ] = ()
    operations: Annotated[tuple[RepliedOperation, ...], Form(name="operation", keys=("operations",), strict=True)] = ()
    answer: Annotated[str, Form(chars=MAX_CHARS)] = ""


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
        return replace(read, path=path - 1, operations=tuple(operations))

    return Reply(reply_of(PathVerdict).then(check).read)
