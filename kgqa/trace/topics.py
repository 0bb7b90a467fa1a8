"""Events about the topics and the wording of the question."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kgqa.text.words import counted
from kgqa.trace.event import Event
from kgqa.trace.phrases import listed


class LinkedMention(Struct, frozen=True):
    """A part of the question, and the short ids of the entities that it may mean, most likely first (at most 5).

    `exact`: whether the text is the whole name of the first entity.
    """

    text: str
    entities: tuple[str, ...]
    exact: bool = True


class Linked(Event, frozen=True):
    """The parts of the question that name entities of the graph."""

    mentions: tuple[LinkedMention, ...]

    def in_words(self) -> str:
        named = [f"“{each.text}”" for each in self.mentions]
        return f"topics in the question: {listed(named)}" if named else "no topic found in the question"


class Masked(Event, frozen=True):
    """The question, with its topics masked, as the ranking compares it with paths.

    `unmasked`: number of topics without a mention in the question. `leaks`: number of names that are still readable.
    """

    question: str
    unmasked: int
    leaks: int


class Shown(Event, frozen=True):
    """The question as prompts show it."""

    question: str


class CuesRead(Event, frozen=True, tag="cues"):
    """What the wording of the question says about the path.

    `words`: words for the hops, from the topic outward. `hops`: number of hops that the wording suggests. `asked_for`:
    the kind of answer, such as "person"; "" if unknown.
    """

    words: tuple[str, ...]
    hops: int
    asked_for: str

    def in_words(self) -> str:
        wanted = f", asked for: {self.asked_for}" if self.asked_for else ""
        return f"the wording suggests {counted(self.hops, 'hop')}{wanted}"


class Clauses(Event, frozen=True):
    """The clause of the question for each topic, by the topic's mark in prompts; empty after an unusable reply."""

    clauses: Mapping[str, str]

    def in_words(self) -> str:
        return f"the question has {counted(len(self.clauses), 'clause')}"


class Unsupported(Event, frozen=True):
    """The method declined the question. `asks_for`: what paths cannot answer, such as "a count"."""

    asks_for: str

    def in_words(self) -> str:
        return f"paths cannot answer {self.asks_for}"
