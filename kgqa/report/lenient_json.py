"""Reads values from untrusted JSON without errors: a value of an unexpected type is treated as missing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def text_of(value: Any) -> str:
    """Return a string, or a number as string; empty for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def number_of(value: Any) -> float | None:
    """Return a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def count_of(value: Any) -> int | None:
    """Return a finite number as integer; None for anything else."""
    found = number_of(value)
    return None if found is None else int(found)


def object_of(value: Any) -> Mapping[str, Any]:
    """Return an object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any) -> list[Any]:
    """Return a list; an empty one for anything else."""
    return list(value) if isinstance(value, (list, tuple)) else []


def objects_of(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a list."""
    return [each for each in list_of(value) if isinstance(each, Mapping)]


def texts_of(value: Any) -> list[str]:
    """Return the strings in a list."""
    return [each for each in list_of(value) if isinstance(each, str)]
