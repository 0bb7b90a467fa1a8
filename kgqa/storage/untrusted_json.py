"""Reads JSON from untrusted sources, and checks nesting depth, types and numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

DEEPEST = 100
"""Maximum nesting of lists and objects. Files written by kgqa have about a dozen levels."""
LARGEST = 1e15
"""The largest number accepted."""
_STEP = np.zeros(256, dtype=np.int8)
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1

Check = Callable[[Any], bool]


def load_json(data: bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: the text is not JSON, or is nested deeper than `DEEPEST` levels. Deeper nesting could exceed
            Python's recursion limit in `json` and `copy`.
    """
    # brackets inside strings are also counted, so `suspect` only decides whether the parsed data is checked
    steps = _STEP[np.frombuffer(data, dtype=np.uint8)]
    suspect = steps.size and int(np.cumsum(steps, dtype=np.int64).max()) > DEEPEST
    try:
        found = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if suspect and _deeper(found, DEEPEST):
        raise ValueError("it is nested too deeply")
    return found


def check_keys(data: Mapping[str, Any], checks: Mapping[str, Check]) -> None:
    """Check the values of the keys that are present.

    Raises:
        ValueError: a value fails its check.
    """
    for key, check in checks.items():
        if key in data and not check(data[key]):
            raise ValueError(f"{key} must not be {shown(data[key])}")


def is_text(value: Any) -> bool:
    """Check that a value is a string."""
    return isinstance(value, str)


def is_number(value: Any) -> bool:
    """Check that a value is a number from 0 to `LARGEST`."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LARGEST


def is_whole(value: Any) -> bool:
    """Check that a value is an integer from -`LARGEST` to `LARGEST`."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST


def is_count(value: Any) -> bool:
    """Check that a value is an integer from 0 to `LARGEST`."""
    return is_whole(value) and value >= 0


def is_score(value: Any) -> bool:
    """Check that a value is a number from 0 to 1."""
    return is_number(value) and value <= 1


def is_flag(value: Any) -> bool:
    """Check that a value is true or false."""
    return isinstance(value, bool)


def is_object(value: Any) -> bool:
    """Check that a value is a JSON object."""
    return isinstance(value, dict)


def optional(check: Check) -> Check:
    """Build a check that accepts null and all values that pass `check`."""
    return lambda value: value is None or check(value)


def list_of(check: Check) -> Check:
    """Build a check that accepts a list if all its items pass `check`."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def object_of(check: Check) -> Check:
    """Build a check that accepts an object if all its values pass `check`."""
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def object_with(**checks: Check) -> Check:
    """Build a check that accepts an object if the value of each given key is missing or passes the key's check."""
    return lambda value: isinstance(value, dict) and all(check(value[k]) for k, check in checks.items() if k in value)


def shown(value: Any) -> str:
    """Return the repr of a value for a message, cut to 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _deeper(value: Any, levels: int) -> bool:
    """Check whether lists and objects are nested deeper than `levels`."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [
            item
            for each in layer
            if isinstance(each, (list, dict))
            for item in (each.values() if isinstance(each, dict) else each)
        ]
        if not layer:
            return False
    return True
