"""Responses that are shown to a judge."""

from __future__ import annotations

from dataclasses import dataclass

MAX_SHOWN = 50
"""Maximum number of gold answers, or of pieces of evidence, in a prompt."""
NO_RESPONSE = "(nothing)"
"""Text that stands for an empty response in a prompt."""


@dataclass(frozen=True)
class JudgedResponse:
    """A response to a question, with gold answers and evidence if known."""

    question: str
    response: str
    gold: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
