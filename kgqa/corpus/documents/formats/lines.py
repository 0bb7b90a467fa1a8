"""Finds lines of the form `Key: value`, and list items, in text without markup."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kgqa.corpus.documents.document import Element, Span

_LINE = re.compile(r"[^\r\n]+")
_BULLET = r"[ \t]*(?:(?:[-*+•‣◦]|\d{1,3}[.)])[ \t]+)?"
# a key has at most 60 characters and no sentence in it; bold marks may surround it
_KEY_VALUE = re.compile(
    rf"(?P<bullet>{_BULLET})(?P<bold>\*\*|__)?(?P<key>[^\W\d_][^:：|*<>{{}}\[\]\"“”?!;=]{{0,59}}?)"
    r"(?P<after>(?:\*\*|__)?)[ \t]?(?::(?=[*_]*[ \t])|：)(?P<late>(?:\*\*|__)?)[ \t]*(?P<value>\S[^\r\n]*?)[ \t]*$"
)
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+•‣◦]|\d{1,3}[.)])[ \t]+(?P<content>\S[^\r\n]*?)[ \t]*$")
_BULLETED = re.compile(_BULLET.removesuffix("?"))
_MAX_FIRST = 60
_MAX_WORDS = 6
_MAX_VALUE = 300
_MAX_LINE = 1_000


def key_value_lines(text: str, *, skip: Iterable[Span] = (), paragraphs: bool = False) -> list[Element]:
    """Return the key-value lines of a text.

    A line `Key: value` may be a sentence or a part of one. It counts if its paragraph consists of such lines, at least
    two or one with its key in bold marks; other list items, and a short first line, may be among them.

    Args:
        text: The text.
        skip: Spans in which lines do not count, such as code.
        paragraphs: Whether each line is a paragraph; then lines count that follow each other, with or without an empty
            line between.
    """
    found: list[Element] = []
    block: list[tuple[Element, bool]] = []
    is_prose, is_first = False, True
    holes = iter(sorted(skip))
    hole = next(holes, None)
    for begin, end in _lines(text):
        while hole and hole[1] <= begin:
            hole = next(holes, None)
        is_skipped = hole is not None and hole[0] < end
        is_blank = not text[begin:end].strip()
        pair = None if is_blank or is_skipped else _pair(text, begin, end)
        if pair:
            block.append(pair)
        elif is_skipped or (is_blank != paragraphs):
            found += [] if is_prose else _accepted(block)
            block, is_prose, is_first = [], False, True
            continue
        elif not is_blank and not _BULLETED.match(text, begin, end) and (not is_first or end - begin > _MAX_FIRST):
            is_prose = True
        is_first = False
    return found + ([] if is_prose else _accepted(block))


def _lines(text: str) -> Iterable[Span]:
    """Yield the spans of lines; an empty line has an empty span."""
    at = 0
    while at < len(text):
        found = _LINE.match(text, at)
        end = found.end() if found else at
        yield at, end
        at = end + (2 if text.startswith("\r\n", end) else 1)


def _accepted(run: list[tuple[Element, bool]]) -> list[Element]:
    return [element for element, bold in run if bold or len(run) > 1]


def _pair(text: str, begin: int, end: int) -> tuple[Element, bool] | None:
    if not 3 <= end - begin <= _MAX_LINE:
        return None
    found = _KEY_VALUE.match(text, begin, end)
    if (
        found is None
        or text.startswith("//", found.start("value"))
        or found.end("value") - found.start("value") > _MAX_VALUE
    ):
        return None
    marks = found["bold"] or ""
    if (found["after"] or found["late"]) != marks or len(found["key"].split()) > _MAX_WORDS or ". " in found["key"]:
        return None
    key = (found.start("key"), found.start("key") + len(found["key"].rstrip()))
    return Element("key_value", key[0] - len(marks), found.end("value"), cells=(key, found.span("value"))), bool(marks)


def list_items(text: str) -> list[Element]:
    """Return the lines that begin with a bullet or a number, at least two in sequence."""
    found: list[Element] = []
    run: list[Element] = []
    for begin, end in _lines(text):
        item = _ITEM.match(text, begin, end) if end - begin <= _MAX_LINE else None
        if item:
            level = 1 + len(item["indent"].expandtabs(4)) // 2
            run.append(Element("list_item", item.end("indent"), item.end("content"), level, (item.span("content"),)))
        else:
            found += run if len(run) > 1 else []
            run = []
    return found + (run if len(run) > 1 else [])
