"""Events about the topics and the wording of the question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgqa.trace.event import Event


@dataclass(frozen=True)
class LinkedMention:
    """A part of the question, and the short ids of the entities that it may mean, most likely first (at most 5).

    `exact`: whether the text is the whole name of the first entity.
    """

    text: str
    entities: tuple[str, ...]
    exact: bool = True


@dataclass(frozen=True, kw_only=True)
class Linked(Event):
    """The parts of the question that name entities of the graph."""

    mentions: tuple[LinkedMention, ...]


@dataclass(frozen=True, kw_only=True)
class Masked(Event):
    """The question, with its topics masked, as the ranking compares it with paths.

    `unmasked`: number of topics without a mention in the question. `leaks`: number of names that are still readable.
    """

    question: str
    unmasked: int
    leaks: int


@dataclass(frozen=True, kw_only=True)
class Shown(Event):
    """The question as prompts show it."""

    question: str


@dataclass(frozen=True, kw_only=True)
class CuesRead(Event):
    """What the wording of the question says about the path.

    `words`: words for the hops, from the topic outward. `hops`: number of hops that the wording suggests. `asked_for`:
    the kind of answer, such as "person"; "" if unknown.
    """

    kind = "cues"
    words: tuple[str, ...]
    hops: int
    asked_for: str


@dataclass(frozen=True, kw_only=True)
class Clauses(Event):
    """The clause of the question for each topic, by the topic's mark in prompts; empty after an unusable reply."""

    clauses: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Unsupported(Event):
    """The method declined the question. `asks_for`: what paths cannot answer, such as "a count"."""

    asks_for: str
