"""Describes the events of all methods in words: one line each, progress, and the steps of an answer."""

from __future__ import annotations

from collections.abc import Iterable

from kgqa.trace import acting_words, text_words
from kgqa.trace.event import Event

MAX_LINES = 12


def event_words(event: Event) -> str:
    """Describe an event in one line; "" if only its fields can tell what happened."""
    return text_words.event_words(event) or acting_words.event_words(event)


def progress_words(event: Event) -> str:
    """Describe in a few words what a method does after an event; "" if there is nothing to show."""
    return text_words.progress_words(event) or acting_words.progress_words(event)


def step_lines(trace: Iterable[Event], *, most: int = MAX_LINES) -> list[str]:
    """Describe the steps of a method over text or one that acts in turns, in few lines; empty for other methods."""
    events = list(trace)
    return acting_words.step_lines(events, most=most) or text_words.step_lines(events, most=most)
