"""Turns an event of a question into a step for people: its kind, time, words and shortened fields."""

from __future__ import annotations

from typing import Any

from kgqa.text.words import clean
from kgqa.trace import Event

MAX_TEXT = 400
MAX_ITEMS = 12


def step_object(event: Event) -> dict[str, Any]:
    """Return the step of an event; `words` is empty if only its fields can tell what happened."""
    return {"kind": event.kind, "at": event.at, "words": clean(event.in_words()), "detail": shortened(event.detail)}


def shortened(value: Any) -> Any:
    """Return JSON data with long texts cut and long lists ended early."""
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else f"{value[: MAX_TEXT - 1]}…"
    if isinstance(value, (list, tuple)):
        return [shortened(each) for each in value[:MAX_ITEMS]]
    if isinstance(value, dict):
        return {key: shortened(each) for key, each in list(value.items())[: 4 * MAX_ITEMS]}
    return value
