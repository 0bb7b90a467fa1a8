"""Restores events of a trace from their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from kgqa.storage.loading import convert
from kgqa.trace import KINDS, Event, UnknownEvent


def read_event(data: Mapping[str, Any]) -> Event:
    """Restore an event of a trace from its JSON object `{kind, at, ...}`; never raises.

    Returns:
        An event of the first class in `kgqa.trace.KINDS` whose kind and fields fit, without keys that are not fields;
        otherwise an `UnknownEvent` with all the data.
    """
    kind = data.get("kind")
    at: Any = data.get("at")
    for event in _events_of(kind) if isinstance(kind, str) else ():
        names = {field.metadata.get("formerly", field.name): field.name for field in fields(event)}
        try:
            found: Event = convert({name: data[key] for key, name in names.items() if key in data}, event)
            return found
        except ValueError:
            continue
    values = {str(key): value for key, value in data.items() if key not in ("kind", "at")}
    return UnknownEvent(kind if isinstance(kind, str) else "", values, at=at if type(at) in (int, float) else 0.0)


@cache
def _events_of(kind: str) -> list[type[Event]]:
    return [event for event in KINDS if event.kind == kind]
