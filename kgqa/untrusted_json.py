"""Reads JSON that anybody may have written: its depth, its types and its numbers are checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

DEEPEST = 100
"""Levels of lists and objects within each other; what kgqa writes has a dozen."""
LARGEST = 1e15
"""The largest number that kgqa counts or sums up."""
_STEP = np.zeros(256, dtype=np.int8)
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1

Check = Callable[[Any], bool]


def load_json(data: bytes) -> Any:
    """What a JSON text says.

    Raises:
        ValueError: it is no JSON, or is nested deeper than `DEEPEST`, which Python's own functions for JSON and copies
            could not bear.
    """
    # brackets in texts are counted too; only where there are many is it worth a closer look
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
    """Check the values of those keys that are there.

    Raises:
        ValueError: a value is not what its key holds.
    """
    for key, check in checks.items():
        if key in data and not check(data[key]):
            raise ValueError(f"{key} must not be {shown(data[key])}")


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_number(value: Any) -> bool:
    """Whether it is a number from 0 to `LARGEST`."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LARGEST


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, below 0 too."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST


def is_count(value: Any) -> bool:
    """Whether it is a whole number from 0 to `LARGEST`."""
    return is_whole(value) and value >= 0


def is_score(value: Any) -> bool:
    """Whether it is a number from 0 to 1."""
    return is_number(value) and value <= 1


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def optional(check: Check) -> Check:
    """Null, or what `check` says."""
    return lambda value: value is None or check(value)


def list_of(check: Check) -> Check:
    """A list whose items are all what `check` says."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def object_of(check: Check) -> Check:
    """An object whose values are all what `check` says."""
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def object_with(**checks: Check) -> Check:
    """An object of which those keys that are there hold what the checks say."""
    return lambda value: isinstance(value, dict) and all(check(value[k]) for k, check in checks.items() if k in value)


def shown(value: Any) -> str:
    """A value for a message: short, however much it is."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects stand in each other deeper than that."""
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
