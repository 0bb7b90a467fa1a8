"""The base class of events, and events of other packages and versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, to_builtins


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
