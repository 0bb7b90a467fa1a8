"""Restores the events of a trace from JSON, also from other versions and from damaged files."""

from __future__ import annotations

import math
from collections import abc
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

from kgqa.events import KINDS, Event, UnknownEvent


def read_event(data: Mapping[str, Any]) -> Event:
    """Restore an event from its JSON object `{kind, at, ...}`; never raises.

    Returns:
        An event of the first class in `KINDS` whose kind and fields fit, without keys that are not fields; otherwise an
        `UnknownEvent` with all the data.
    """
    kind = data.get("kind")
    at: Any = data.get("at") if _is_number(data.get("at")) else 0.0
    for reader in _readers().get(kind, ()) if isinstance(kind, str) else ():
        given = {name: data[key] for name, key in reader.keys.items() if key in data}
        if reader.required <= given.keys() and all(reader.checks[name](value) for name, value in given.items()):
            values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
            return reader.event(at=at, **values)
    values = {str(key): value for key, value in data.items() if key not in ("kind", "at")}
    return UnknownEvent(kind if isinstance(kind, str) else "", values, at=at)


_Check = Callable[[Any], bool]


@dataclass(frozen=True)
class _Reader:
    """A class of events, and for each field its JSON key and a check of its value, by the field's name."""

    event: type[Event]
    keys: Mapping[str, str]
    checks: Mapping[str, _Check]
    required: frozenset[str]


@cache
def _readers() -> dict[str, list[_Reader]]:
    """Map each kind to the readers of its classes."""
    found: dict[str, list[_Reader]] = {}
    for event in KINDS:
        own = [field for field in fields(event) if field.name != "at"]
        hints = get_type_hints(event)
        reader = _Reader(
            event,
            {field.name: field.metadata.get("key", field.name) for field in own},
            {field.name: _check(hints[field.name]) for field in own},
            frozenset(field.name for field in own if field.default is MISSING),
        )
        found.setdefault(event.kind_name, []).append(reader)
    return found


def _is_number(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:
        return False


def _check(hint: Any) -> _Check:
    """Return a function that tells whether JSON data has the type of a field."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: True
    if hint is float:
        return _is_number
    if origin in (Union, UnionType):
        any_of = [_check(each) for each in arguments]
        return lambda value: any(check(value) for check in any_of)
    if is_typeddict(hint):
        items = {name: _check(each) for name, each in get_type_hints(hint).items()}
        return lambda value: type(value) is dict and all(n in value and check(value[n]) for n, check in items.items())
    if not arguments:
        return lambda value: type(value) is hint
    item = _check(arguments[1 if origin is abc.Mapping else 0])
    if origin is abc.Mapping:
        return lambda value: type(value) is dict and all(map(item, value.values()))
    return lambda value: type(value) is list and all(map(item, value))
