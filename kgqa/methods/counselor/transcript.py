"""The lines of a trial as prompts show them, cut to a number of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.llm.client import Prompt
from kgqa.methods.text.searching import BYTES_PER_TOKEN

SHORTEST = 120
"""A line is not cut to fewer characters."""
CUT = "\u2026 (cut)"


class Transcript:
    """The lines of a trial, in order."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, label: str, step: int, text: str) -> None:
        """Add a line such as `Plan 1: text`; an empty text adds nothing."""
        if text:
            self._lines.append(f"{label} {step}: {text}")

    def shown(self, tokens: int | None = None) -> list[str]:
        """Return the lines; if they are longer than so many tokens, the longest are cut."""
        return list(self._lines) if tokens is None else within(self._lines, tokens)


def tokens_of(text: str) -> int:
    """Estimate the number of tokens of a text."""
    return len(text.encode(errors="replace")) // BYTES_PER_TOKEN


def prompt_tokens(prompt: Prompt) -> int:
    """Estimate the number of tokens of a prompt."""
    return sum(tokens_of(message.text) for message in prompt.messages)


def within(lines: Sequence[str], tokens: int) -> list[str]:
    """Return lines with about so many tokens at most: the longest are cut, then the first left out."""
    limit, kept = max(map(len, lines), default=0), list(lines)
    while sum(tokens_of(line) + 1 for line in kept) > tokens:
        if limit > SHORTEST:
            limit = max(SHORTEST, limit * 3 // 4)
            kept = [line if len(line) <= limit else line[: limit - len(CUT)].rstrip() + CUT for line in kept]
        else:
            del kept[0]
    return kept
