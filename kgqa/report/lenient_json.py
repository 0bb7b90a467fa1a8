"""Reads values from untrusted JSON without errors: a value of an unexpected type is treated as missing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def text_of(value: Any) -> str:
    """Return a string unchanged, a number as a string, and an empty string for any other value."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def number_of(value: Any) -> float | None:
    """Return a finite number unchanged, and None for any other value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def count_of(value: Any) -> int | None:
    """Return a finite number as an integer, and None for any other value."""
    found = number_of(value)
    return None if found is None else int(found)


def object_of(value: Any) -> Mapping[str, Any]:
    """Return an object unchanged, and an empty object for any other value."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any) -> list[Any]:
    """Return a list unchanged, and an empty list for any other value."""
    return list(value) if isinstance(value, (list, tuple)) else []


def objects_of(value: Any) -> list[Mapping[str, Any]]:
    """Return the items of a list that are objects; an empty list if the value is not a list."""
    return [each for each in list_of(value) if isinstance(each, Mapping)]


def texts_of(value: Any) -> list[str]:
    """Return the items of a list that are strings; an empty list if the value is not a list."""
    return [each for each in list_of(value) if isinstance(each, str)]
