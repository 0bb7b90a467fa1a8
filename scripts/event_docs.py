"""Writes docs/events.md and docs/events.schema.json from kgqa/trace/. Run: python -m scripts.event_docs."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec

from kgqa.trace import KINDS, AnyEvent, Event

DOCS = Path(__file__).resolve().parent.parent / "docs"
_HEAD = """\
# Events

<!-- Written by `python -m scripts.event_docs`. Change the docstrings in kgqa/trace/ instead of this page. -->

The trace of a question is a list of events. `kgqa ask --trace` prints each event when it happens; with `--json`, and in
the file `predictions.jsonl` of a run, an event is an object `{kind, at, ...}`, where `at` is the time in seconds since
the question was asked. In Python, `answer.trace` contains objects of the classes of `kgqa.trace`, and
`kgqa.trace.read_event` restores them from JSON. [events.schema.json](events.schema.json) is the JSON Schema of an
event.

Methods of other packages may record events of further kinds: subclasses of `kgqa.trace.Event`. Reports show them with
their keys and values; `read_event` returns them as `UnknownEvent`.

| kind | class | keys | meaning |
|---|---|---|---|
"""
_NAMES = {"string": "text", "boolean": "true/false"}
Definition = dict[str, Any]


def schema() -> dict[str, Any]:
    """Return the JSON Schema of an event of kgqa's own kinds."""
    (found,), definitions = msgspec.json.schema_components([AnyEvent], ref_template="#/$defs/{name}")
    for each in definitions.values():
        each.pop("description", None)  # docs/events.md has it
    start = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "An event of a kgqa trace"}
    return {**start, **found, "$defs": definitions}


def schema_text() -> str:
    """Return the text of docs/events.schema.json, with one line per class."""
    whole = schema()
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in whole.pop("$defs").items())
    return f'{json.dumps(whole)[:-1]}, "$defs": {{\n{lines}\n}}}}\n'


def page() -> str:
    """Return the text of docs/events.md."""
    definitions = schema()["$defs"]
    return _HEAD + "".join(_row(event, definitions[event.__name__], definitions) for event in KINDS)


def _row(event: type[Event], definition: Definition, definitions: dict[str, Definition]) -> str:
    text = " ".join((inspect.getdoc(event) or "").split())
    properties = definition["properties"]
    optional = event.__struct_config__.omit_defaults
    keys = [
        f"`{key}`: {_words(value, definitions)}" + (" (optional)" if optional and "default" in value else "")
        for key, value in properties.items()
        if key not in ("kind", "at")
    ]
    return f"| `{properties['kind']['enum'][0]}` | `{event.__name__}` | {'; '.join(keys)} | {text} |\n"


def _words(value: Definition, definitions: dict[str, Definition]) -> str:
    """Describe a type for people, such as "list of text"."""
    if "$ref" in value:
        properties = definitions[value["$ref"].rsplit("/", 1)[-1]]["properties"]
        return "{" + ", ".join(f"`{key}`: {_words(each, definitions)}" for key, each in properties.items()) + "}"
    if "anyOf" in value:
        return " or ".join(_words(each, definitions) for each in value["anyOf"])
    match value.get("type"):
        case "array":
            items = value.get("items") or {"anyOf": value["prefixItems"][:1]}
            item = _words(items, definitions)
            return f"list of ({item})" if " or " in item and "{" not in item else f"list of {item}"
        case "object":
            return f"object of {_words(value.get('additionalProperties') or {}, definitions)}"
        case None:
            return "any"
        case name:
            return _NAMES.get(name, name)


if __name__ == "__main__":
    (DOCS / "events.md").write_text(page(), encoding="utf-8")
    (DOCS / "events.schema.json").write_text(schema_text(), encoding="utf-8")
