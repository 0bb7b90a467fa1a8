"""Which parts of an answer were never seen."""

from __future__ import annotations

import re

from kgqa.methods.counselor.finishing import chosen_values
from kgqa.methods.counselor.functions import GraphFunctions

_COMPUTED = re.compile(
    r"(?:yes|no|true|false)|(?:about|around|approximately|nearly|over|under|in)?"
    r"\W{0,3}[-+]?[0-9][0-9.,:/ -]{0,30}(?:\s*[^\W\d]{1,20}){0,2}",
    re.IGNORECASE,
)
"""Answers that follow from what was seen without being seen: yes, no, and numbers with their units."""
SHOWN = 5


def unseen_names(text: str, functions: GraphFunctions) -> list[str]:
    """Return the first parts of the text of `Finish` that no observation shows, except yes, no and numbers."""
    others = chosen_values(text, functions).others
    return [each for each in others if not _COMPUTED.fullmatch(each.strip())][:SHOWN]
