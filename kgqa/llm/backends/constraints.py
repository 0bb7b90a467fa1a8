"""Constraining a model to choices, by the best method that its server supports.

vLLM's own field `structured_outputs` constrains the text itself to one of the choices; `response_format` with a
schema, which other servers support too, makes the reply a JSON object. A server may reject or ignore a field that it
does not support: then the next mode is used, and the last mode is free text.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from typing import Any, Literal

ConstraintMode = Literal["structured_outputs", "json_schema", "free"]
CONSTRAINT_MODES: tuple[ConstraintMode, ...] = ("structured_outputs", "json_schema", "free")
REQUEST_FIELDS: dict[ConstraintMode, str] = {
    "structured_outputs": "structured_outputs",
    "json_schema": "response_format",
}
"""The field of a request that selects each mode."""
JSON_TOKENS = 16
"""The most tokens that `{"choice": "..."}` takes in addition to those of the choice."""
_MEANT = re.compile(r"structured.?output|guided|grammar|json.?schema|response.?format", re.IGNORECASE)


class ConstraintSupport:
    """The mode in which a server is asked, from `first` on downwards. Thread-safe."""

    def __init__(self, first: ConstraintMode = "structured_outputs") -> None:
        self._at = CONSTRAINT_MODES.index(first)
        self._lock = threading.Lock()

    @property
    def mode(self) -> ConstraintMode:
        """The mode to use now."""
        return CONSTRAINT_MODES[self._at]

    def fall_back(self, mode: ConstraintMode) -> bool:
        """Switch from this mode to the next one; return False if another thread did so before."""
        with self._lock:
            if self.mode != mode or mode == "free":
                return False
            self._at += 1
            return True


def constraint_fields(mode: ConstraintMode, choices: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a request that constrain the reply to one of the choices."""
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
        return {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "choice", "strict": True, "schema": schema},
            }
        }
    return {}


def chosen_option(mode: ConstraintMode, text: str, choices: Sequence[str]) -> str | None:
    """Return the choice that a reply is; None if the server did not constrain the model to the choices."""
    if mode == "json_schema":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict) or list(value) != ["choice"]:
            return None
        return next((choice for choice in choices if choice == value["choice"]), None)
    if mode == "structured_outputs":
        # replies are stripped
        return next((choice for choice in choices if choice.strip() == text), None)
    return None


def mentions_constraint(mode: ConstraintMode, message: str) -> bool:
    """Return whether an error that does not name the field is about it, such as one that mentions a grammar."""
    return mode != "free" and bool(_MEANT.search(message))
