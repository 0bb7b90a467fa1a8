"""Finds the words in which two texts differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MAX_WORDS = 1200
"""Longer texts are shown as changed as a whole, because comparing them would take long."""
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Words:
    """Words of a text. `changed`: whether the other text does not have them here."""

    text: str
    changed: bool = False


def changed_words(old: str, new: str) -> tuple[tuple[Words, ...], tuple[Words, ...]]:
    """Split two texts into the words that both have and those that only one has.

    If one of the texts is empty, nothing in the other is marked as changed.
    """
    one, other = _TOKEN.findall(old), _TOKEN.findall(new)
    if not one or not other or max(len(one), len(other)) > MAX_WORDS:
        return tuple(_whole(old, bool(other))), tuple(_whole(new, bool(one)))
    codes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return (
        _joined([Words("".join(one[i:j]), tag != "equal") for tag, i, j, _, _ in codes]),
        _joined([Words("".join(other[k:m]), tag != "equal") for tag, _, _, k, m in codes]),
    )


def _whole(text: str, changed: bool) -> Iterator[Words]:
    if text:
        yield Words(text, changed)


def _joined(parts: Sequence[Words]) -> tuple[Words, ...]:
    """Join neighbours of one kind; blanks between changed words count as changed."""
    found: list[Words] = []
    for place, part in enumerate(parts):
        changed = part.changed
        if part.text.isspace() and 0 < place < len(parts) - 1:
            changed = parts[place - 1].changed and parts[place + 1].changed
        if not part.text:
            continue
        if found and found[-1].changed == changed:
            found[-1] = Words(found[-1].text + part.text, changed)
        else:
            found.append(Words(part.text, changed))
    return tuple(found)
