"""The text of an observation: what a language model is shown of the values that a call found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from kgqa.model import Entity, Named, Value
from kgqa.text.words import clean

MAX_CHARS = 3000
"""Most characters of an observation."""
LONGEST = 200
"""Longest text of a value that stands among others."""
LONGEST_ALONE = 2500
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


def list_text(texts: Iterable[str], total: int | None, *, separator: str = ", ") -> str:
    """Return texts as one line of at most `MAX_CHARS` characters, with the number of those that are left out.

    Args:
        total: How many there are in all; None if there are more than are known.
    """
    shown: list[str] = []
    size = 0
    for text in texts:
        size += len(text) + len(separator)
        if size > MAX_CHARS and shown:
            break
        shown.append(text)
    if total is None:
        return f"{separator.join(shown)}{separator}and more"
    rest = f"{separator}and {total - len(shown)} more" if total > len(shown) else ""
    return separator.join(shown) + rest


def pairs_text(
    nodes: Sequence[Named],
    values: Mapping[Value, tuple[Sequence[Named], int]],
    types: Mapping[Value, str],
    *,
    most: int,
    ids_only: bool,
) -> str:
    """Return what each of several nodes has, as `node: value, value; node: value`.

    Args:
        nodes: The nodes.
        values: The first values of each node, and how many it has.
        types: The types of values in words.
        most: Most values that are shown.
        ids_only: Whether nodes are shown by their ids only.
    """
    lines, left, cut = [], most, False
    for node in nodes:
        own, total = values.get(node.value, ((), 0))
        if not total:
            continue
        if left <= 0 or not own:
            cut = True
            break
        shown = [value_text(each, types.get(each.value, ""), ids_only=ids_only) for each in own[:left]]
        left -= len(shown)
        lines.append(f"{value_text(node, ids_only=ids_only)}: {list_text(shown, total)}")
    empty = sum(not values.get(node.value, ((), 0))[1] for node in nodes)
    text = list_text(lines, len(lines), separator="; ")
    parts = [text, *(["and more"] if cut else []), *([f"none of {empty} others"] if empty and lines else [])]
    return "; ".join(parts)
