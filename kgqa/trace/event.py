"""The base class of events, and events of other packages and versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """An event in a trace. `at`: seconds since the question started; set when the event is recorded."""

    kind = "event"
    """The kind in JSON. A subclass gets its own name in snake case, such as `gave_up`, unless it sets another."""
    at: float = field(default=0.0, kw_only=True)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kind = cls.__dict__.get("kind") or re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @property
    def detail(self) -> dict[str, Any]:
        """The fields as JSON data, without `at` and without optional fields that are None."""
        values = [(field, getattr(self, field.name)) for field in fields(self) if field.name != "at"]
        return {
            field.metadata.get("formerly", field.name): _plain(value)
            for field, value in values
            if value is not None or "optional" not in field.metadata
        }


@dataclass(frozen=True)
class UnknownEvent(Event):
    """An event of another package or version, or one whose JSON does not fit its kind."""

    kind: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def detail(self) -> dict[str, Any]:
        """The event's JSON data, unchanged."""
        return dict(self.values)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def optional() -> Any:
    """Declare a field that is left out of the JSON while it is None."""
    return field(default=None, metadata={"optional": True})
