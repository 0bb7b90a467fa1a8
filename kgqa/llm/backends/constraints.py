"""Constraint modes: they limit a language model to choices or to a JSON schema, by a method that its server supports.

The mode "structured_outputs" sends a field that only vLLM knows; the text of the reply is then one of the choices. The
mode "json_schema" sends a schema in the field `response_format`; other servers support this field too, and the reply is
then a JSON object. The mode "free" constrains nothing. If a server rejects or ignores a field, the next mode is used.
A JSON schema is sent in `response_format` only, because servers with `structured_outputs` support that field as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from kgqa.llm.client import Prompt

ConstraintMode = Literal["structured_outputs", "json_schema", "free"]
NEXT_MODES: dict[ConstraintMode, ConstraintMode] = {"structured_outputs": "json_schema", "json_schema": "free"}
REQUEST_FIELDS: dict[ConstraintMode, str] = {
    "structured_outputs": "structured_outputs",
    "json_schema": "response_format",
}
"""Map from a mode to the request field that selects the mode."""
JSON_TOKENS = 16
"""Most tokens that `{"choice": "..."}` takes, apart from the choice itself."""
_MEANT = re.compile(r"structured.?output|guided|grammar|json.?schema|response.?format", re.IGNORECASE)


def constraint_fields(mode: ConstraintMode, prompt: Prompt) -> dict[str, Any]:
    """Return the request fields that hold the reply to the choices or the schema of a prompt."""
    distinct = list(dict.fromkeys(prompt.choices))
    if mode == "free":
        return {}
    if mode == "structured_outputs":
        return {"structured_outputs": {"choice": distinct}}
    name, schema = "reply", prompt.schema
    if distinct:
        name, keys = "choice", {"choice": {"type": "string", "enum": distinct}}
        schema = {"type": "object", "properties": keys, "required": ["choice"], "additionalProperties": False}
    format_ = {"name": name, "strict": _is_closed(schema), "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": format_}}


def _is_closed(schema: Any) -> bool:
    """Return whether every object in a schema has exactly its declared keys, as OpenAI's strict mode requires."""
    if not isinstance(schema, Mapping):
        return not isinstance(schema, list) or all(map(_is_closed, schema))
    if "properties" in schema or schema.get("type") == "object":
        is_exact = set(schema.get("required", ())) == set(schema.get("properties", ()))
        if schema.get("additionalProperties") is not False or not is_exact:
            return False
    return all(map(_is_closed, schema.values()))


def held_text(text: str, mode: ConstraintMode, prompt: Prompt) -> str | None:
    """Return the choice or the JSON in a constrained reply; None if it is neither: the server ignored the field."""
    if not prompt.choices:
        return text if prompt.schema is not None and is_of_schema(text, prompt.schema) else None
    # compared without spaces at the ends, because replies are stripped
    held = {"choice": text} if mode == "structured_outputs" else _value(text)
    return next((choice for choice in prompt.choices if held in ({"choice": choice}, {"choice": choice.strip()})), None)


def is_of_schema(text: str, schema: Mapping[str, Any]) -> bool:
    """Return whether a reply is JSON with the schema's required and no unknown keys; if not, the server ignored it."""
    value = _value(text)
    if value is None or not isinstance(value, {"object": dict, "array": list}.get(str(schema.get("type")), object)):
        return False
    if not isinstance(value, dict):
        return True
    allowed = value if schema.get("additionalProperties", True) else schema.get("properties", {})
    return set(schema.get("required", ())) <= set(value) <= set(allowed)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def mentions_constraint(message: str) -> bool:
    """Return whether an error message is about a constraint without naming the field, for example "bad grammar"."""
    return bool(_MEANT.search(message))
