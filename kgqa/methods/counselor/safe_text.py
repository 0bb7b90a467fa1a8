"""Texts of the graph on one line, without what a chat template or a terminal would read as its own."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kgqa.model import Entity, Named
from kgqa.text.words import clean

LISTED_CHARS = 2600
"""Most characters of a list in an observation; what stands beside the list fits in the rest."""
LONGEST = 200
"""Longest text of a value that stands among others."""
_CHAT_MARK = re.compile(
    r"<\|[^<>|]{0,60}\|>|<\||\|>|</?(?:s|think|start_of_turn|end_of_turn|tool_call|tool_response|eos|bos)>|"
    r"\[/?INST\]|<<?/?SYS>>?|[\uff1c]\uff5c|\uff5c[\uff1e]",
    re.IGNORECASE,
)


def safe(text: str, limit: int = LONGEST) -> str:
    """Return a text of the graph as one line without control characters and marks of chat templates."""
    line = clean(_CHAT_MARK.sub(" ", text[: 4 * limit]))
    while (again := clean(_CHAT_MARK.sub(" ", line))) != line:  # what is left may be a mark again
        line = again
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}\u2026"


def value_text(named: Named, type_: str = "", *, ids_only: bool = False, limit: int = LONGEST) -> str:
    """Return a value as `name (id, type)`; a literal as its text."""
    name = safe(named.name, limit)
    if not isinstance(named.value, Entity):
        return f"{name} {safe(named.unit)}" if named.unit else name
    ident = safe(named.id or named.value.iri)
    if ids_only:
        return ident
    more = ", ".join(part for part in (ident if ident != name else "", safe(type_, 60)) if part)
    return f"{name} ({more})" if more else name or ident


def list_text(texts: Iterable[str], total: int | None, *, separator: str = ", ", limit: int = LISTED_CHARS) -> str:
    """Return texts as one line of about `limit` characters at most, with the number of those that are left out.

    Args:
        texts: The texts.
        total: How many there are in all; None if there are more than are known.
        separator: What stands between them.
        limit: Most characters, unless the first text is longer.
    """
    shown: list[str] = []
    size = 0
    for text in texts:
        size += len(text) + len(separator)
        if size > limit and shown:
            break
        shown.append(text)
    left = "more" if total is None else f"{total - len(shown)} more" if total > len(shown) else ""
    return separator.join([*shown, *([f"and {left}"] if left else [])])
