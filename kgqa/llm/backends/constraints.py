"""Constraint modes: they limit a language model to choices or to a JSON schema, by a method that its server supports.

The mode "structured_outputs" sends a field that only vLLM knows; the text of the reply is then one of the choices. The
mode "json_schema" sends a schema in the field `response_format`; other servers support this field too, and the reply is
then a JSON object. The mode "free" constrains nothing. If a server rejects or ignores a field, the next mode is used.
A JSON schema is sent in `response_format` only, because servers with `structured_outputs` support that field as well.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal

ConstraintMode = Literal["structured_outputs", "json_schema", "free"]
CONSTRAINT_MODES: tuple[ConstraintMode, ...] = ("structured_outputs", "json_schema", "free")
REQUEST_FIELDS: dict[ConstraintMode, str] = {
    "structured_outputs": "structured_outputs",
    "json_schema": "response_format",
}
"""Map from a mode to the request field that selects the mode."""
JSON_TOKENS = 16
"""Most tokens that `{"choice": "..."}` takes, apart from the choice itself."""
_MEANT = re.compile(r"structured.?output|guided|grammar|json.?schema|response.?format", re.IGNORECASE)


class ConstraintSupport:
    """The constraint mode `mode` of the next request to a server, starting with `first`. Thread-safe."""

    def __init__(self, first: ConstraintMode = "structured_outputs") -> None:
        self.mode = first
        self._lock = threading.Lock()

    def fall_back(self, mode: ConstraintMode) -> bool:
        """Switch from `mode` to the next mode; return False if another thread has switched already."""
        with self._lock:
            if self.mode != mode or mode == "free":
                return False
            self.mode = CONSTRAINT_MODES[CONSTRAINT_MODES.index(mode) + 1]
            return True


def constraint_fields(mode: ConstraintMode, choices: Sequence[str]) -> dict[str, Any]:
    """Return the request fields that constrain the reply to one of the choices."""
    distinct = list(dict.fromkeys(choices))
    if mode == "structured_outputs":
        return {"structured_outputs": {"choice": distinct}}
    if mode == "json_schema":
        schema = {
            "type": "object",
            "properties": {"choice": {"type": "string", "enum": distinct}},
            "required": ["choice"],
            "additionalProperties": False,
        }
        return schema_fields(schema, "choice")
    return {}


def schema_fields(schema: Mapping[str, Any], name: str = "reply") -> dict[str, Any]:
    """Return the request fields that constrain the reply to a JSON schema."""
    format_ = {"name": name, "strict": _is_closed(schema), "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": format_}}


def _is_closed(schema: Any) -> bool:
    """Return whether every object in a schema has exactly its declared keys, as OpenAI's strict mode requires."""
    if isinstance(schema, list):
        return all(map(_is_closed, schema))
    if not isinstance(schema, Mapping):
        return True
    if "properties" in schema or schema.get("type") == "object":
        keys = set(schema.get("properties", ()))
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != keys:
            return False
    return all(map(_is_closed, schema.values()))


def is_of_schema(text: str, schema: Mapping[str, Any]) -> bool:
    """Return whether a reply is JSON with the schema's required and no unknown keys; if not, the server ignored it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if schema.get("type") in ("object", "array") and isinstance(value, dict) != (schema["type"] == "object"):
        return False
    if not isinstance(value, dict):
        return schema.get("type") != "array" or isinstance(value, list)
    allowed = value if schema.get("additionalProperties", True) else schema.get("properties", {})
    return set(schema.get("required", ())) <= set(value) <= set(allowed)


def chosen_option(mode: ConstraintMode, text: str, choices: Sequence[str]) -> str | None:
    """Return the choice in a constrained reply; None if the reply is not a choice (the server ignored the field)."""
    if mode == "json_schema":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict) or list(value) != ["choice"]:
            return None
        return next((choice for choice in choices if choice == value["choice"]), None)
    if mode == "structured_outputs":
        # compared without spaces at the ends, because replies are stripped
        return next((choice for choice in choices if choice.strip() == text), None)
    return None


def mentions_constraint(mode: ConstraintMode, message: str) -> bool:
    """Return whether an error message is about the constraint without naming the field, for example "bad grammar"."""
    return mode != "free" and bool(_MEANT.search(message))
