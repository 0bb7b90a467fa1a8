"""Small phrases for events in words: counts, lists and shortened texts."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.text.words import clean

SHOWN = 5
LONGEST = 160


def listed(items: Sequence[object]) -> str:
    """List the first items, shortened, and the number of further ones."""
    more = f" and {len(items) - SHOWN:,} more" if len(items) > SHOWN else ""
    return ", ".join(shortened(str(item)) for item in items[:SHOWN]) + more


def shortened(text: str, most: int = LONGEST) -> str:
    """Return a text as one line without control characters, with at most `most` characters."""
    cut = clean(text[: 4 * most])
    return cut if len(cut) <= most and len(text) <= 4 * most else f"{cut[: most - 1]}…"
