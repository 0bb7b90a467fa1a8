"""Phrases for the words of events, and the steps of an answer as lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kgqa.text.words import clean
from kgqa.trace.event import Event

SHOWN = 5
MAX_STEPS = 12
_FIRST_STEPS = 5
_LONGEST = 160
_LONGEST_STEP = 350


def step_lines(trace: Iterable[Event], *, most: int = MAX_STEPS) -> list[str]:
    """Describe the steps of a method over text, or of one that acts in turns; empty for other methods.

    If there are more than `most` lines, the first ones and the last ones are returned, with a line between them.
    """
    lines = [shortened(event.in_words(), _LONGEST_STEP) for event in trace if event.is_step]
    more = len(lines) - most
    if more <= 0:
        return lines
    return [*lines[:_FIRST_STEPS], f"... {more:,} more here (--trace shows all) ...", *lines[_FIRST_STEPS + more :]]


def listed(items: Sequence[object]) -> str:
    """List the first items, shortened, and the number of further ones."""
    more = f" and {len(items) - SHOWN:,} more" if len(items) > SHOWN else ""
    return ", ".join(shortened(str(item)) for item in items[:SHOWN]) + more


def shortened(text: str, most: int = _LONGEST) -> str:
    """Return a text as one line without control characters, with at most `most` characters."""
    cut = clean(text[: 4 * most])
    return cut if len(cut) <= most and len(text) <= 4 * most else f"{cut[: most - 1]}…"
