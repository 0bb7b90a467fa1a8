"""Query shapes: a template runs only once for all queries that differ only in their entities.

Exploration renders thousands of queries, and Jinja takes longer to render a query than a local server takes to answer
it. The shape of a query consists of the values passed to its template, with a number in place of each distinct entity.
For each shape, the template runs once, with placeholders for the entities. Later queries of the shape only replace the
placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import attrgetter
from typing import Any
from uuid import uuid4

import msgspec

from kgqa.model import Entity

MAX_SHAPES = 200
_PLACEHOLDER = f"urn:uuid:{uuid4()}:"  # random, so that no comment in a query contains a placeholder
_POSITIONS = re.compile(f"(<{_PLACEHOLDER}[0-9]+>)")
_TRUTH = {True: object(), False: object()}  # not True and False, which equal 1 and 0


class Shapes:
    """The shapes of one template. Thread-safe.

    The first `MAX_SHAPES` shapes are kept. A template has more shapes only if its queries differ in more than their
    entities. For each further shape, the template runs every time.

    Args:
        run: renders the template with some values.
        show: renders an entity.
    """

    def __init__(self, run: Callable[[Mapping[str, Any]], str], show: Callable[[Entity], str]) -> None:
        self._run = run
        self._show = show
        self._texts: dict[tuple[Any, ...], tuple[str | int, ...]] = {}

    def render(self, values: Mapping[str, Any]) -> str:
        """Render the template with these values. Raises the same errors as `run` and `show`."""
        numbers: dict[str, int] = {}
        try:
            shape = tuple([(name, _shape(value, numbers)) for name, value in values.items()])
        except _Shapeless:
            return self._run(values)
        text = self._texts.get(shape)
        if text is None:
            if len(self._texts) >= MAX_SHAPES:
                return self._run(values)
            text = self._texts[shape] = self._text(values, numbers)
        entities = list(numbers)
        # type() is faster than isinstance(), but mypy does not narrow by it
        show = self._show
        return "".join([part if type(part) is str else show(Entity(entities[part])) for part in text])  # type: ignore[index]

    def _text(self, values: Mapping[str, Any], numbers: Mapping[str, int]) -> tuple[str | int, ...]:
        text = self._run({name: _with_placeholders(value, numbers) for name, value in values.items()})
        parts = _POSITIONS.split(text)
        start = len(_PLACEHOLDER) + 1
        return tuple(int(part[start:-1]) if number % 2 else part for number, part in enumerate(parts))


class _Shapeless(Exception):
    """A value of an unknown type, for which there is no shape."""


@cache
def _reader(kind: type) -> Callable[[Any], Any]:
    """Return a function that reads the fields of a class of kgqa: a tuple, or the value of the only field."""
    if kind.__module__.startswith("kgqa."):
        if issubclass(kind, msgspec.Struct):
            return attrgetter(*kind.__struct_fields__)
        if is_dataclass(kind):
            return attrgetter(*(field.name for field in fields(kind)))
    raise _Shapeless


def _shape(value: Any, numbers: dict[str, int]) -> Any:
    kind = type(value)
    if kind is Entity:
        # a negative number, since numbers passed to templates are not negative
        return ~numbers.setdefault(value.iri, len(numbers))
    if value is None or kind is str:
        return value
    if kind is tuple or kind is list:
        return tuple([_shape(each, numbers) for each in value])
    if kind is bool:
        return _TRUTH[value]
    if kind is int and value >= 0:
        return value
    found = _reader(kind)(value)  # type: ignore[arg-type]  # mypy takes type[Any] for unhashable
    return kind, _shape(found, numbers)


def _with_placeholders(value: Any, numbers: Mapping[str, int]) -> Any:
    """Replace each entity in a value by the entity's placeholder."""
    if isinstance(value, Entity):
        return Entity(f"{_PLACEHOLDER}{numbers[value.iri]}")
    if isinstance(value, (tuple, list)):
        return type(value)(_with_placeholders(each, numbers) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {field.name: _with_placeholders(getattr(value, field.name), numbers) for field in fields(value)}
        return replace(value, **changed)
    return value
