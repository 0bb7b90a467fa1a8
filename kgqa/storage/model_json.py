"""Converts the data classes of `kgqa.model` to plain JSON data and back.

A class with a text `kind` writes it into its JSON; where a field may hold one of several such classes, the kind says
which one to build.
"""

from __future__ import annotations

import types
import typing
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union
from typing import Literal as OneOf

from kgqa.storage.untrusted_json import shown
from kgqa.trace import Event, read_event

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Convert a model object to plain JSON data. `from_json` restores an equal object."""
    if isinstance(value, Event):
        return {"kind": value.kind, "at": value.at, **value.detail}
    if is_dataclass(value) and not isinstance(value, type):
        data = {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
        kind = getattr(type(value), "kind", None)  # a field without a default is a descriptor here, not a text
        return {**data, "kind": kind} if isinstance(kind, str) and "kind" not in data else data
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    return value


def from_json(kind: type[T], data: Any) -> T:
    """Build a `kind` from the output of `to_json`.

    Raises:
        ValueError: the data does not have the shape of `kind`.
    """
    try:
        found: T = _build(kind, data)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not the JSON of {getattr(kind, '__name__', kind)}: {error}") from error
    return found


def checked(value: T) -> T:
    """Return an equal model object whose fields all have the declared types; lists become tuples.

    Raises:
        ValueError: a field has a value of a wrong type; the message names the field.
    """
    try:
        found: T = _build(type(value), to_json(value))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error
    return found


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Return the type of each field."""
    hints = typing.get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind) if f.init}


@cache
def _members(union: Any) -> tuple[tuple[type, ...], dict[str | None, type]]:
    """Return the members of a union except None, and its members by kind; None is the kind of JSON without one."""
    members = tuple(each for each in typing.get_args(union) if each is not types.NoneType)
    kinds = {getattr(each, "kind", None): each for each in members}
    kinds.update((None, each) for each in members if getattr(each, "unmarked", False))
    return members, kinds


def _build(kind: Any, data: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin in (Union, types.UnionType):
        if data is None and types.NoneType in typing.get_args(kind):
            return None
        members, kinds = _members(kind)
        if type(data) in (str, int, float) and type(data) in members:
            return data
        if len(members) > 1 and not isinstance(data, dict):
            raise TypeError(f"{shown(data)} is not {' or '.join(each.__name__ for each in members)}")
        return _build(members[0] if len(members) == 1 else kinds[data.get("kind")], data)
    if origin in (tuple, list):
        if not isinstance(data, (list, tuple)):
            raise TypeError(f"{shown(data)} is not a list")
        item = typing.get_args(kind)[0]
        if item is str and set(map(type, data)) <= {str}:  # traces have thousands of strings
            return origin(data)
        return origin(_build(item, each) for each in data)
    if origin is OneOf:
        if data not in typing.get_args(kind):
            raise TypeError(f"{shown(data)} is not one of {typing.get_args(kind)}")
        return data
    if kind is Event:
        return read_event(data)
    if isinstance(kind, type) and is_dataclass(kind):
        return _built(kind, data)
    kind = origin or kind
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if isinstance(kind, type) and (not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool)):
        raise TypeError(f"{shown(data)} is not {kind.__name__}")
    return data


def _built(kind: Any, data: Any) -> Any:
    """Build an object of a data class."""
    if not isinstance(data, dict):
        raise TypeError(f"{shown(data)} is not an object ({kind.__name__})")
    found = {}
    for name, hint in _hints(kind).items():
        if name in data:
            value = data[name]
            try:
                found[name] = value if type(value) is hint else _build(hint, value)
            except (KeyError, TypeError, AttributeError) as error:
                raise TypeError(f"{name}: {error}") from error
    return kind(**found)
