"""The base class of events, the steps of an answer, and phrases for the words of events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from kgqa.text.words import clean

SHOWN = 5
MAX_STEPS = 12
_FIRST_STEPS = 5
_LONGEST = 160
_LONGEST_STEP = 350


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Event(Struct, frozen=True, kw_only=True, tag_field="kind", tag=_snake_case):
    """An event in a trace. `at`: seconds since the question started; set when the event is recorded.

    Its kind in JSON is the name of its class in snake case, such as `gave_up`, unless the class sets another `tag`.
    """

    at: float = 0.0

    @property
    def kind(self) -> str:
        """The kind in JSON."""
        return str(self.__struct_config__.tag)

    @property
    def detail(self) -> dict[str, Any]:
        """The JSON object of the event without `kind` and `at`."""
        return {name: value for name, value in to_builtins(self).items() if name not in ("kind", "at")}

    @property
    def is_step(self) -> bool:
        """Whether answers show the event among the steps that led to them; a class may set `is_step = True`."""
        return False

    def in_words(self) -> str:
        """Say in one line what happened; "" if only the fields can tell. `clean` it before it is printed."""
        return ""


class UnknownEvent(Event, frozen=True, tag=False):
    """An event of another package or version, or one whose JSON does not fit its kind."""

    kind: str = ""
    values: Mapping[str, Any] = {}

    @property
    def detail(self) -> dict[str, Any]:
        """The event's JSON data, unchanged."""
        return dict(self.values)


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
