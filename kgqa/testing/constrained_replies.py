"""Makes a scripted reply fit the choices in a request, like a server that constrains its language model."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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
        properties = _at(body, "response_format", "json_schema", "schema", "properties")
        for name, schema in properties.items() if isinstance(properties, dict) else ():
            choices = _at(schema, "enum")
            if isinstance(choices, list) and choices:
                return replace(reply, text=json.dumps({name: nearest(reply.text, choices)}))
    return reply


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
