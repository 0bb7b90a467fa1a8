"""Makes a scripted reply fit the choices or the schema in a request, like a server that constrains its model."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kgqa.llm.backends.constraints import is_of_schema
from kgqa.testing.faults import ModelReply

FIELDS = {"structured_outputs": "structured_outputs", "json_schema": "response_format"}
"""Map from each constraint mode to its field in a request."""


def constrain_reply(reply: ModelReply, body: dict[str, Any], constrains: str) -> ModelReply:
    """Return the reply as a server with this constraint mode changes it; refusals and empty texts stay the same."""
    if not reply.text.strip() or reply.refusal is not None:
        return reply
    if constrains == "structured_outputs":
        choices = _at(body, "structured_outputs", "choice")
        if isinstance(choices, list) and choices:
            return replace(reply, text=nearest(reply.text, choices))
    if constrains == "json_schema":
        schema = _at(body, "response_format", "json_schema", "schema")
        if schema is not None and not is_of_schema(reply.text, schema):
            return replace(reply, text=json.dumps(value_of_schema(schema, reply.text)))
    return reply


def value_of_schema(schema: Any, text: str) -> Any:
    """Return a JSON value of a schema: strings are the text, enumerated values those that occur in it."""
    kind = _at(schema, "type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if choices := _at(schema, "enum"):
        return nearest(text, choices)
    if kind == "object":
        properties = _at(schema, "properties") or {}
        return {name: value_of_schema(each, text) for name, each in properties.items()}
    return {"array": [], "integer": 0, "number": 0, "boolean": False, "null": None}.get(str(kind), text)


def nearest(text: str, choices: Sequence[str]) -> str:
    """Return the choice that equals the text or, if there is none, the first choice that occurs in it as a word.

    If no choice occurs in the text, return the first choice.
    """
    if text in choices:
        return text
    places = ((re.search(rf"(?<!\w){re.escape(choice)}(?!\w)", text), choice) for choice in choices)
    mentioned = [(found.start(), -len(choice), choice) for found, choice in places if found]
    return min(mentioned)[2] if mentioned else choices[0]


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
