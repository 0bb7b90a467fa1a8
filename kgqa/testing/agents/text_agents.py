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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgqa.testing.agents.shown_prompt import ShownPrompt, read_prompt

_REFERENCE = re.compile(r"#(\d+)")


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
