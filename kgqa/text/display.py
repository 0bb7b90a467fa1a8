"""HTML of values in notebooks.

The data classes stand below the modules that draw them. A class therefore only calls `html_of`, and `kgqa/__init__.py`
registers the function that draws its instances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_RENDERERS: dict[str, Callable[[Any], str]] = {}


def draw_with(kind: str, function: Callable[[Any], str]) -> None:
    """Register the function that returns the HTML of all instances of a class, given by its name."""
    _RENDERERS[kind] = function


def html_of(value: object) -> str:
    """Return a value as HTML for notebooks: self-contained, without scripts, all text escaped."""
    return _RENDERERS[type(value).__name__](value)
