"""The forms of replies that methods over text share: a yes or no, a text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeVar

from kgqa.llm.replies.json_values import Reading, json_values, last_part
from kgqa.llm.replies.reply import Reply
from kgqa.text.words import safe_text

T = TypeVar("T")
YesNo = Literal["yes", "no"]
MAX_PROSE_CHARS = 8_000
_YES_OR_NO = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
_STATED_YES = re.compile(r"(?:^|[^\w\s]\s*|\n\s*|\bis\s+)yes\b(?!\s+\w)", re.IGNORECASE)
"""A yes that is a statement of its own, unlike that of "I cannot say yes" or "yes or no"."""


def stated(text: str) -> YesNo | None:
    """Return the last yes or no of a text; None if there is neither, or the last is a yes within a sentence."""
    last = max(_YES_OR_NO.finditer(text), key=lambda found: found.end(), default=None)
    if last is None or last[1].casefold() == "no":
        return None if last is None else "no"
    return "yes" if any(found.end() == last.end() for found in _STATED_YES.finditer(text)) else None


def or_stated(form: Reply[T], of: Callable[[YesNo], T]) -> Reply[T]:
    """Return a form that a reply without a JSON object may also have: a text that ends in yes or no."""

    def read(text: str) -> Reading[T]:
        reading, word = form.read(text), None
        if reading.value is None and not json_values(last_part(text)):
            word = stated(last_part(text))
        return reading if word is None else Reading(of(word), repaired=True)

    return Reply(read, form.schema, form.choices)


def prose(text: str) -> str:
    """Return a text without unsafe characters, at most `MAX_PROSE_CHARS` long."""
    return safe_text(text[:MAX_PROSE_CHARS]).strip()


def _read_prose(text: str) -> Reading[str]:
    found = prose(last_part(text))
    return Reading(found or None, problem="It has no text.")


PROSE: Reply[str] = Reply(_read_prose)
"""A text; an empty one is unusable."""
