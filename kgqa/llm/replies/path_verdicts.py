"""Reader of a verdict on numbered paths: whether one of them answers the question, and under what conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args
from typing import Literal as OneOf

from kgqa.llm.replies.json_values import Reading, find_key, json_values, key_name, last_part
from kgqa.text.words import clean

VerdictKind = OneOf["complete", "missing", "wrong"]
KINDS: tuple[VerdictKind, ...] = get_args(VerdictKind)
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


@dataclass(frozen=True, slots=True)
class RepliedCondition:
    """A condition as in the reply: a field that was shown, one of `SIGNS`, and a value ("" for present and absent)."""

    field: str
    sign: str
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

    kind: str
    field: str = ""
    rank: int = 1
    counted: bool = False
    compared: bool = False


@dataclass(frozen=True, slots=True)
class PathVerdict:
    """A verdict. `path`: index of the path from 0; None if the verdict is "wrong". `answer`: another field."""

    kind: VerdictKind
    path: int | None = None
    conditions: tuple[RepliedCondition, ...] = ()
    operation: RepliedOperation | None = None
    answer: str = ""


def read_path_verdict(text: str, *, size: int) -> Reading[PathVerdict]:
    """Read the last verdict in a reply, a JSON object with the keys verdict, path, conditions and operation.

    Args:
        text: A reply, of any length and content.
        size: Number of paths in the prompt, numbered from 1.

    Returns:
        The verdict; no value if there is none, or if a part of it has an unknown form, because a verdict without one of
        its conditions has a different meaning. Never raises, whatever the text.
    """
    found = [each for each in json_values(last_part(text)) if find_key(each.value, ("verdict",))[0]]
    try:
        if not found:
            raise ValueError('has no JSON object such as {"path": 1, "verdict": "complete"}')
        return Reading(_verdict(found[-1].value, size), found[-1].repaired)
    except ValueError as wrong:
        return Reading(None, problem=f"The reply {wrong}.")


def _verdict(value: Any, size: int) -> PathVerdict:
    name = key_name(find_key(value, ("verdict",))[1])
    kind = next((each for each in KINDS if each == name), None)
    if kind is None:
        raise ValueError(f"has none of the verdicts {', '.join(KINDS)}")
    if kind == "wrong":
        return PathVerdict(kind)
    number = _whole(find_key(value, ("path", "number", "index"))[1], 1 if size == 1 else None)
    if number is None or not 1 <= number <= size:
        raise ValueError(f'names no path: give "path" as a number from 1 to {size}')
    conditions = _each(find_key(value, ("conditions", "condition"))[1], _condition)
    operations = _each(find_key(value, ("operation", "operations"))[1], _operation)
    if None in conditions or len(conditions) > MAX_CONDITIONS:
        raise ValueError('has a condition that is not of the form {"field": "a field", "is": "=", "value": "a value"}')
    if None in operations or len(operations) > 1:
        raise ValueError('has an operation that is not of the form {"do": "count"} or {"do": "most", "field": F}')
    answer = _text(find_key(value, ("answer",))[1])
    return PathVerdict(kind, number - 1, tuple(conditions), operations[0] if operations else None, answer)


def _each(value: Any, read: Callable[[dict[str, Any]], Any]) -> list[Any]:
    """Read an object or a list of objects, with None in place of one that cannot be read."""
    if value in (None, "", "none", "None", [], {}, False):
        return []
    items = value if isinstance(value, list) else [value]
    return [
        read({key_name(key): inner for key, inner in each.items()} if isinstance(each, dict) else {"do": each})
        for each in items[: MAX_CONDITIONS + 1]
    ]


def _condition(item: dict[str, Any]) -> RepliedCondition | None:
    field = _text(item.get("field"))
    sign = SIGNS.get(key_name(item.get("is", item.get("comparison", item.get("op", "=")))))
    value = item.get("value")
    if not field or sign is None:
        return None
    if sign in ("present", "absent"):
        return RepliedCondition(field, sign)
    if value is None and sign in ("=", "!="):
        return RepliedCondition(field, "absent" if sign == "=" else "present")
    return RepliedCondition(field, sign, _text(value)) if _text(value) else None


def _operation(item: dict[str, Any]) -> RepliedOperation | None:
    kind = DOINGS.get(key_name(item.get("do", item.get("kind", ""))))
    rank = _whole(item.get("rank"), 1)
    if kind is None or rank is None:
        return None
    counted = key_name(item.get("counted")) in ("true", "yes", "1")
    compared = bool(item.get("compare")) or kind == "difference"
    return RepliedOperation(kind, _text(item.get("field")), rank, counted, compared)


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return clean(str(value)[: 4 * MAX_CHARS])[:MAX_CHARS].strip()


def _whole(value: Any, otherwise: int | None) -> int | None:
    if value is None:
        return otherwise
    digits = str(value).strip("[] #")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else None
