"""Estimates of the length of texts in tokens, and lines cut to a length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kgqa.llm.client import Prompt
from kgqa.methods.text.searching import BYTES_PER_TOKEN

SHORTEST = 120
"""A line is not cut to fewer characters."""
CUT = "\u2026 (cut)"


def tokens_of(text: str) -> int:
    """Estimate the number of tokens of a text."""
    return len(text.encode(errors="replace")) // BYTES_PER_TOKEN


def prompt_tokens(prompt: Prompt) -> int:
    """Estimate the number of tokens of a prompt."""
    return sum(tokens_of(message.text) for message in prompt.messages)


def within(lines: Sequence[str], tokens: int) -> list[str]:
    """Return lines with about so many tokens at most: the longest are cut; if that is not enough, the first left out.

    Args:
        lines: The lines.
        tokens: The number of tokens.
    """
    limit = max((len(line) for line in lines), default=0)
    kept = list(lines)
    while _size(kept) > tokens and limit > SHORTEST:
        limit = max(SHORTEST, limit * 3 // 4)
        kept = [line if len(line) <= limit else line[: limit - len(CUT)].rstrip() + CUT for line in lines]
    while _size(kept) > tokens and kept:
        del kept[0]
    return kept


def _size(lines: Iterable[str]) -> int:
    return sum(tokens_of(line) + 1 for line in lines)
