"""Holding a model to choices: which way a server can do it is found out on the way.

vLLM's own field `structured_outputs` holds the text itself to one of the choices; `response_format` with a schema,
which others know too, makes it a JSON object. A server that knows a field not at all may reject it or ignore it: then
the next way is taken, and the last one is free text.
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
"""The field of a request by which it is asked for."""
JSON_TOKENS = 16
"""Tokens that `{"choice": "..."}` takes beyond those of the choice, at most."""
_MEANT = re.compile(r"structured.?output|guided|grammar|json.?schema|response.?format", re.IGNORECASE)


class ConstraintSupport:
    """The way that a server is asked in, from `first` on downwards. Thread-safe."""

    def __init__(self, first: ConstraintMode = "structured_outputs") -> None:
        self._at = CONSTRAINT_MODES.index(first)
        self._lock = threading.Lock()

    @property
    def mode(self) -> ConstraintMode:
        return CONSTRAINT_MODES[self._at]

    def give_up(self, mode: ConstraintMode) -> bool:
        """Take the next way from now on; True where this call did it, False where another thread was first."""
        with self._lock:
            if self.mode != mode or mode == "free":
                return False
            self._at += 1
            return True


def constraint_fields(mode: ConstraintMode, choices: Sequence[str]) -> dict[str, Any]:
    """The fields of a request that hold the reply to one of the choices in this way."""
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
    """The choice that a reply is; None where it is none, so that the server did not hold the model to them."""
    if mode == "json_schema":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict) or list(value) != ["choice"]:
            return None
        return value["choice"] if value["choice"] in choices else None
    if mode == "structured_outputs":
        # replies have no blanks around them
        return next((choice for choice in choices if choice.strip() == text), None)
    return None


def mentions_constraint(mode: ConstraintMode, message: str) -> bool:
    """Whether an error without the field's name is about it: a server may speak of a grammar instead."""
    return mode != "free" and bool(_MEANT.search(message))
