"""What a prompt of a method over text shows, read from its messages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgqa.text.quotes import find_quote

_FENCE = re.compile(r"`{3,}")
_HEADING = re.compile(r'([A-Z][A-Za-z ]*?) (\d+)(?:, from "(.*)")?:')
_SUB_QUESTION = re.compile(r"Sub-question (\d+): ?(.*)")
_LISTED = re.compile(r"(?:\[(\d+)\]|(\d+)[.:)]) (.*)")
_SENTENCE = re.compile(r"\[(\d+)\] ?(.*)")


@dataclass(frozen=True)
class ShownPassage:
    """A passage in a prompt. `number`: counted from 1. `sentences`: its numbered sentences, without the numbers."""

    number: int
    title: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences as one text."""
        return " ".join(self.sentences)

    def contains(self, text: str) -> bool:
        """Return whether the title and the passage contain a text, blanks and invisible characters aside."""
        return _letters(text) in _letters(f"{self.title} {self.text}")

    def quote(self, text: str) -> str:
        """Return the sentence that contains a text, or the neighbouring sentences that contain it together.

        Without such a sentence, return the first one, which is a quote, too.
        """
        for size in (1, 2, 3):
            for begin in range(len(self.sentences) - size + 1):
                part = " ".join(self.sentences[begin : begin + size])
                if find_quote(part.casefold(), text.casefold()):
                    return part
        return self.sentences[0] if self.sentences else ""


@dataclass(frozen=True)
class ShownPrompt:
    """What a prompt shows.

    Attributes:
        system: The rules.
        user: The text after the rules, with the passages.
        question: The text of the line `Question: ...`.
        fields: The texts of all lines `Label: ...` that are not inside a passage, by label.
        sub_questions: The texts of the lines `Sub-question N: ...`, by number.
        passages: The passages; their texts are in no other attribute.
        blocks: The lines of other numbered texts between two fences, by label and number: `("Draft", 1)`.
        listed: The texts of numbered lines (`1. ...` or `[1] ...`) outside passages, by number; of several lists
            with the same number the last one counts.
    """

    system: str
    user: str
    question: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    sub_questions: Mapping[int, str] = field(default_factory=dict)
    passages: tuple[ShownPassage, ...] = ()
    blocks: Mapping[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)
    listed: Mapping[int, str] = field(default_factory=dict)

    def passage_with(self, text: str) -> ShownPassage | None:
        """Return the first passage that contains a text."""
        return next((each for each in self.passages if each.contains(text)), None)

    def shows(self, texts: Iterable[str]) -> bool:
        """Return whether the passages contain all texts."""
        return all(self.passage_with(text) for text in texts)


def read_prompt(messages: Sequence[Mapping[str, Any]]) -> ShownPrompt:
    """Read what a prompt shows; what passages contain is never taken for a part of the prompt."""
    system, user = (
        "\n".join(each["content"] for each in messages if each["role"] == role) for role in ("system", "user")
    )
    fields: dict[str, str] = {}
    sub_questions: dict[int, str] = {}
    passages: list[ShownPassage] = []
    blocks: dict[tuple[str, int], tuple[str, ...]] = {}
    listed: dict[int, str] = {}
    for heading, lines, fenced in _parts(user):
        named = _HEADING.fullmatch(heading)
        if fenced and named and named[1] == "Passage":
            sentences = tuple(match[2] for line in lines if (match := _SENTENCE.fullmatch(line)))
            passages.append(ShownPassage(int(named[2]), named[3] or "", sentences))
        elif fenced and named:
            blocks[named[1], int(named[2])] = tuple(lines)
        else:
            for line in lines:
                if match := _SUB_QUESTION.fullmatch(line):
                    sub_questions[int(match[1])] = match[2]
                elif match := _LISTED.fullmatch(line):
                    listed[int(match[1] or match[2])] = match[3]
                elif not fenced and (match := re.fullmatch(r"([A-Z][A-Za-z0-9 -]*): ?(.*)", line)):
                    fields.setdefault(match[1], match[2])
    question = fields.get("Question", "")
    return ShownPrompt(system, user, question, fields, sub_questions, tuple(passages), blocks, listed)


def _parts(text: str) -> Iterator[tuple[str, list[str], bool]]:
    """Split a text at its fences: yield the line above, the lines, and whether they stand between two fences."""
    heading, fence = "", ""
    lines: list[str] = []
    for line in text.splitlines():
        if fence and line == fence:
            yield heading, lines, True
            heading, lines, fence = "", [], ""
        elif not fence and _FENCE.fullmatch(line):
            yield "", lines, False
            heading, lines, fence = next((each for each in reversed(lines) if each.strip()), ""), [], line
        else:
            lines.append(line)
    yield heading, lines, bool(fence)


def _letters(text: str) -> str:
    """Return a text without blanks and invisible characters, composed, as prompts show it."""
    kept = (each for each in text if not each.isspace() and not unicodedata.category(each).startswith("C"))
    return unicodedata.normalize("NFC", "".join(kept))
