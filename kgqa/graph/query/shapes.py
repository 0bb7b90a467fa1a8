"""Queries that differ in their entities alone, rendered by one run of their template.

Exploration sends thousands of them, and running a template takes longer than a server on the same machine takes for
many. A shape is the values of a template with the entities numbered in the order they come in, equal ones alike. The
template is run once for a shape, with stand-ins for the entities; their places in the text are filled from then on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import attrgetter
from typing import Any
from uuid import uuid4

from kgqa.model import Entity

MOST_SHAPES = 200
_STAND_IN = f"urn:uuid:{uuid4()}:"  # drawn anew, so that no comment in a query can hold one
_PLACES = re.compile(f"(<{_STAND_IN}[0-9]+>)")
_TRUTH = {True: object(), False: object()}  # as numbers they would equal 1 and 0


class Shapes:
    """The texts of the shapes of one template, of the first `MOST_SHAPES`: a template whose queries differ in more than
    entities, in texts that are searched for say, is run each time. Thread-safe.

    Args:
        run: renders the template with these values.
        show: an entity as it stands in a query.
    """

    def __init__(self, run: Callable[[Mapping[str, Any]], str], show: Callable[[Entity], str]) -> None:
        self._run = run
        self._show = show
        self._texts: dict[tuple, tuple[str | int, ...]] = {}

    def render(self, values: Mapping[str, Any]) -> str:
        """What running the template with these values gives. Raises as `run` and `show` do."""
        numbers: dict[str, int] = {}
        try:
            shape = tuple([(name, _shape(value, numbers)) for name, value in values.items()])
        except _Shapeless:
            return self._run(values)
        text = self._texts.get(shape)
        if text is None:
            if len(self._texts) >= MOST_SHAPES:
                return self._run(values)
            text = self._texts[shape] = self._text(values, numbers)
        entities = list(numbers)
        return "".join([part if type(part) is str else self._show(Entity(entities[part])) for part in text])

    def _text(self, values: Mapping[str, Any], numbers: Mapping[str, int]) -> tuple[str | int, ...]:
        text = self._run({name: _with_stand_ins(value, numbers) for name, value in values.items()})
        parts = _PLACES.split(text)
        place = len(_STAND_IN) + 1
        return tuple(int(part[place:-1]) if number % 2 else part for number, part in enumerate(parts))


class _Shapeless(Exception):
    """Something of a kind that is not known here."""


@cache
def _reader(kind: type) -> Callable[[Any], Any]:
    """Gives the fields of one of kgqa's own dataclasses, as a tuple or, where there is but one, as it is."""
    if not is_dataclass(kind) or not kind.__module__.startswith("kgqa."):
        raise _Shapeless
    return attrgetter(*(field.name for field in fields(kind)))


def _shape(value: Any, numbers: dict[str, int]) -> Any:
    kind = type(value)
    if kind is Entity:
        # below zero, where no number of a template is
        return ~numbers.setdefault(value.iri, len(numbers))
    if value is None or kind is str:
        return value
    if kind is tuple or kind is list:
        return tuple([_shape(each, numbers) for each in value])
    if kind is bool:
        return _TRUTH[value]
    if kind is int and value >= 0:
        return value
    found = _reader(kind)(value)
    return kind, _shape(found, numbers)


def _with_stand_ins(value: Any, numbers: Mapping[str, int]) -> Any:
    """The same value with a stand-in for each entity."""
    if isinstance(value, Entity):
        return Entity(f"{_STAND_IN}{numbers[value.iri]}")
    if isinstance(value, (tuple, list)):
        return type(value)(_with_stand_ins(each, numbers) for each in value)
    if is_dataclass(value):
        changed = {field.name: _with_stand_ins(getattr(value, field.name), numbers) for field in fields(value)}
        return replace(value, **changed)  # type: ignore[type-var]
    return value
