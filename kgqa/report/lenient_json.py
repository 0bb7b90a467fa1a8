"""Reads JSON that others wrote: whatever has another type than it should is taken for nothing, never for an error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def text_of(value: Any) -> str:
    """A text; numbers as text; anything else is empty."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def number_of(value: Any) -> float | None:
    """A finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def count_of(value: Any) -> int | None:
    found = number_of(value)
    return None if found is None else int(found)


def object_of(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def objects_of(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in list_of(value) if isinstance(each, Mapping)]


def texts_of(value: Any) -> list[str]:
    return [each for each in list_of(value) if isinstance(each, str)]
