"""Writes docs/events.md and docs/events.schema.json from kgqa/trace/. Run: python -m scripts.event_docs."""

from __future__ import annotations

import inspect
import json
import types
from collections import abc
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from kgqa.trace import KINDS, Event

DOCS = Path(__file__).resolve().parent.parent / "docs"
_HEAD = """\
# Events

<!-- Written by `python -m scripts.event_docs`. Change the docstrings in kgqa/trace/ instead of this page. -->

The trace of a question is a list of events. `kgqa ask --trace` prints each event when it happens; with `--json`, and in
the file `predictions.jsonl` of a run, an event is an object `{kind, at, ...}`, where `at` is the time in seconds since
the question was asked. In Python, `answer.trace` contains objects of the classes of `kgqa.trace`, and
`kgqa.storage.model_json.read_event` restores them from JSON. [events.schema.json](events.schema.json) is the JSON
Schema of an event.

Methods of other packages may record events of further kinds: subclasses of `kgqa.trace.Event`. Reports show them with
their keys and values; `read_event` returns them as `UnknownEvent`.

| kind | class | keys | meaning |
|---|---|---|---|
"""
_NAMES = {str: "text", int: "integer", float: "number", bool: "true/false", Any: "any", type(None): "null"}
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def page() -> str:
    """Return the text of docs/events.md."""
    return _HEAD + "".join(_row(event) for event in KINDS)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of an event of kgqa's own kinds."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An event of a kgqa trace",
        "anyOf": [_object_schema(event) for event in KINDS],
    }


def _row(event: type[Event]) -> str:
    text = " ".join((inspect.getdoc(event) or "").split())
    keys = [f"`{key}`: {_words(hint)}" + " (optional)" * optional for key, hint, optional in _keys(event)]
    return f"| `{event.kind}` | `{event.__name__}` | {'; '.join(keys)} | {text} |\n"


def _keys(event: type[Event]) -> list[tuple[str, Any, bool]]:
    """Return the key, the type and whether the key may be missing, for each field except `at`."""
    hints = get_type_hints(event)
    return [
        (field.metadata.get("formerly", field.name), *_without_null(hints[field.name], "optional" in field.metadata))
        for field in fields(event)
        if field.name != "at"
    ]


def _without_null(hint: Any, optional: bool) -> tuple[Any, bool]:
    """Return the type of a field without None if the field is left out while it is None."""
    return (get_args(hint)[0] if optional else hint), optional


def _words(hint: Any) -> str:
    """Describe a type for people, such as "list of text"."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_words(each) for each in arguments)
    if is_dataclass(hint):
        return "{" + ", ".join(f"`{key}`: {_words(each)}" for key, each in get_type_hints(hint).items()) + "}"
    if origin is abc.Mapping:
        return f"object of {_words(arguments[1])}"
    if origin:
        item = _words(arguments[0])
        return f"list of ({item})" if " or " in item and "{" not in item else f"list of {item}"
    return _NAMES[hint]


def _object_schema(event: type[Event]) -> dict[str, Any]:
    keys = _keys(event)
    return {
        "title": event.__name__,
        "type": "object",
        "properties": {
            "kind": {"const": event.kind},
            "at": {"type": "number", "minimum": 0},
            **{key: _type_schema(hint) for key, hint, _ in keys},
        },
        "required": ["kind", "at", *(key for key, _, optional in keys if not optional)],
    }


def _type_schema(hint: Any) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_type_schema(each) for each in arguments]}
    if is_dataclass(hint):
        items = get_type_hints(hint)
        return {
            "type": "object",
            "properties": {key: _type_schema(each) for key, each in items.items()},
            "required": list(items),
        }
    if origin is abc.Mapping:
        return {"type": "object", "additionalProperties": _type_schema(arguments[1])}
    if origin:
        return {"type": "array", "items": _type_schema(arguments[0])}
    return {} if hint is Any else {"type": _TYPES[hint]}


def schema_text() -> str:
    """Return the text of docs/events.schema.json."""
    whole = schema()
    lines = ",\n".join(json.dumps(each) for each in whole.pop("anyOf"))
    return f'{json.dumps(whole)[:-1]}, "anyOf": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    (DOCS / "events.md").write_text(page(), encoding="utf-8")
    (DOCS / "events.schema.json").write_text(schema_text(), encoding="utf-8")
