"""What a rule finds, and the names and values in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kgqa.corpus.extraction.rules.values import read_value
from kgqa.corpus.items import EntityItem, Party, StatementItem, normal_name
from kgqa.model.terms import Literal
from kgqa.text.words import clean

MAX_NAME_CHARS = 80
MAX_NAME_WORDS = 10
MAX_TEXT_CHARS = 1_000
"""Longest text that a rule takes as the value of a fact."""
_NO_NAMES = {"yes", "no", "true", "false", "none", "unknown", "n/a", "na", "tbd", "-", "–", "—"}
_NO_NAMES |= {"ja", "nein", "oui", "non", "sí", "да", "нет", "是", "否"}
_SENTENCE = re.compile(r"[.!?;:]\s|[。！？\n]")


@dataclass(frozen=True, slots=True)
class RuleFact:
    """An item that a rule found. `begin`, `end`: its place in the text of the document."""

    rule: str
    item: StatementItem | EntityItem
    begin: int
    end: int
    confidence: float


def value_of(text: str, *, about: str = "") -> Party | Literal | None:
    """Return what a cell or the value of a key means: a number, a date, an address, a name, or a text.

    Args:
        text: The text of the value.
        about: What it is the value of, in words.

    Returns:
        None if the text is empty or too long.
    """
    text = clean(text)
    if not text or len(text) > MAX_TEXT_CHARS:
        return None
    return read_value(text, about) or (Party(text) if is_name(text) else Literal(text))


def is_name(text: str) -> bool:
    """Return whether a short text looks like the name of something, not like a sentence, a number or a yes."""
    first = next((character for character in text if character.isalnum()), "")
    return (
        first.isalpha()
        and not first.islower()
        and len(text) <= MAX_NAME_CHARS
        and len(text.split()) <= MAX_NAME_WORDS
        and normal_name(text) not in _NO_NAMES
        and not _SENTENCE.search(text)
    )
