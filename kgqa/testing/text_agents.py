"""Scripted agents: simulated language models for methods over text, which know the right sub-questions and passages.

An agent reads only the text of a prompt, and looks up the question in a table. It answers only what the passages in the
prompt contain, with a quote from them, so what a method retrieves and shows decides what is answered. With a scripted
server that calls the agent, a test covers a whole run: prompts, HTTP, replies, quotes and rounds.

    with ScriptedServer(RagAgent({"Where ...?": TextGold(steps, ("London",))})) as server: ...

The agent of another method is a subclass of `TextAgent` with its own `reply`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgqa.quotes import find_quote

_REFERENCE = re.compile(r"#(\d+)")
_FENCE = re.compile(r"`{3,}")
_HEADING = re.compile(r'([A-Z][A-Za-z ]*?) (\d+)(?:, from "(.*)")?:')
_SUB_QUESTION = re.compile(r"Sub-question (\d+): ?(.*)")
_LISTED = re.compile(r"(?:\[(\d+)\]|(\d+)[.:)]) (.*)")
_SENTENCE = re.compile(r"\[(\d+)\] ?(.*)")


@dataclass(frozen=True)
class GoldStep:
    """A right sub-question of a question.

    Attributes:
        question: The sub-question; `#1` stands for the answer of the first one.
        answer: Its answer.
        passages: The texts of the passages that contain the answer; all of them are needed.
    """

    question: str
    answer: str
    passages: tuple[str, ...] = ()


@dataclass(frozen=True)
class TextGold:
    """The right sub-questions of a question, in order, and its answers."""

    steps: tuple[GoldStep, ...] = ()
    answers: tuple[str, ...] = ()

    @property
    def passages(self) -> tuple[str, ...]:
        """The texts of all passages that are needed."""
        return tuple(dict.fromkeys(text for step in self.steps for text in step.passages))

    def needs(self, number: int) -> tuple[int, ...]:
        """Return the numbers of the steps that step `number`, from 1, refers to."""
        return tuple(int(each) for each in dict.fromkeys(_REFERENCE.findall(self.steps[number - 1].question)))

    def grounded(self, number: int) -> str:
        """Return the sub-question of step `number`, from 1, with the answers of earlier ones filled in."""
        template = self.steps[number - 1].question
        return _REFERENCE.sub(lambda match: self.steps[int(match[1]) - 1].answer, template)

    def step_of(self, text: str) -> int:
        """Return the number of the step, from 1, that a sub-question stands for; 0 if it stands for none.

        The sub-question may contain the references, the right answers, or anything else in their place.
        """
        wanted = _words(text)
        numbers = range(1, len(self.steps) + 1)
        for number in numbers:
            if wanted in (_words(self.grounded(number)), _words(self.steps[number - 1].question)):
                return number
        fitting = [number for number in numbers if self._pattern(number).fullmatch(wanted)]
        return max(fitting, key=lambda number: len(self.steps[number - 1].question), default=0)

    def _pattern(self, number: int) -> re.Pattern[str]:
        parts = _REFERENCE.split(_words(self.steps[number - 1].question))[::2]
        return re.compile("(.+)".join(map(re.escape, parts)))


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


@dataclass
class TextAgent:
    """Replies for `ScriptedServer`.

    Args:
        table: map from each question, worded as in the prompt, to its gold; other questions have no answer.
    """

    table: Mapping[str, TextGold] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._table = {_words(question): gold for question, gold in self.table.items()}

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str:
        prompt = read_prompt(messages)
        reply = self.reply(prompt, self.gold(prompt))
        return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)

    def reply(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        """Return the reply: a text, or a value that is sent as JSON."""
        raise NotImplementedError

    def gold(self, prompt: ShownPrompt) -> TextGold:
        """Return the gold of the prompt's question."""
        return self._table.get(_words(prompt.question), TextGold())


class RagAgent(TextAgent):
    """Answers the prompts of `rag`, if their passages contain everything that is needed."""

    def reply(self, prompt: ShownPrompt, gold: TextGold) -> Any:
        """Return the answers with quotes, or an empty list."""
        return answer_from(prompt, gold.steps, gold.answers)


def answer_from(prompt: ShownPrompt, steps: Sequence[GoldStep], answers: Sequence[str]) -> dict[str, Any]:
    """Return a reply of the form of `rag/answer.json`: the answers, if the prompt shows all passages of the steps.

    Each step is supported by quotes of the sentences that contain its answer.
    """
    support = quotes_of(prompt, steps)
    if not answers or not support or not prompt.shows(text for step in steps for text in step.passages):
        return {"answers": [], "response": "The passages do not contain the answer.", "support": []}
    return {"answers": list(answers), "response": f"The answer is {', '.join(answers)}.", "support": support}


def quotes_of(prompt: ShownPrompt, steps: Sequence[GoldStep]) -> list[dict[str, Any]]:
    """Return the claims and quotes of the steps whose passages the prompt shows: `{"claim", "passage", "quote"}`."""
    support = []
    for step in steps:
        for passage in filter(None, map(prompt.passage_with, step.passages)):
            claim = f"{step.question} {step.answer}"
            support.append({"claim": claim, "passage": passage.number, "quote": passage.quote(step.answer)})
    return support


def _words(text: str) -> str:
    return " ".join(text.split())


def _letters(text: str) -> str:
    """Return a text without blanks and invisible characters, composed, as prompts show it."""
    kept = (each for each in text if not each.isspace() and not unicodedata.category(each).startswith("C"))
    return unicodedata.normalize("NFC", "".join(kept))
