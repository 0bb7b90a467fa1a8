"""A scripted agent that plays gold programs with Graph Counselor (see `kgqa.testing.agents.text_agents`)."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kgqa.llm.replies.action_lines import Call, read_action_line
from kgqa.testing.agents.shown_prompt import ShownPrompt, read_prompt

TurnLabel = Literal["plan", "need", "action", "merged", "verify", "reflect"]
JudgeKind = Literal["perfect", "yes", "no", "unreadable"]
_ASKED = re.compile(r"^(?:Write (Plan|Need|Action) (\d+)\b|(Plan|Need|Action) (\d+):$|Give step (\d+):$)", re.MULTILINE)
_JUDGE, _REFLECT = "Judge the answer.", "It reads only what you write now."
_ATTEMPT = re.compile(r"attempt (\d+)")
_FENCED = re.compile(r"\n(`{3,})\n(.*?)\n\1(?=\n|$)", re.DOTALL)


@dataclass(frozen=True)
class GoldProgram:
    """The lines of calls that answer a question, the last of which is `Finish[...]`, and the names of the answers.

    If `answers` is empty, the text of `Finish` is right.
    """

    lines: tuple[str, ...]
    answers: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text of `Finish`."""
        return self.lines[-1].partition("[")[2].rpartition("]")[0]


@dataclass(frozen=True)
class Asked:
    """Which turn a prompt asks for, and the number of the step; 0 for a verdict and a reflection."""

    turn: TurnLabel
    step: int = 0


def asked_turn(user: str) -> Asked:
    """Return which turn a prompt asks for.

    Raises:
        ValueError: The prompt is none of Graph Counselor's.
    """
    rest = user.rpartition("\nQuestion: ")[2]
    if _REFLECT in rest:
        return Asked("reflect")
    if _JUDGE in rest:
        return Asked("verify")
    found = list(_ASKED.finditer(user))
    if not found:
        raise ValueError("no turn is asked for")
    label, step, published, published_step, merged = found[-1].groups()
    turns: dict[str, TurnLabel] = {"Plan": "plan", "Need": "need", "Action": "action"}
    return Asked(turns.get(label or published, "merged"), int(step or published_step or merged))


@dataclass
class CounselorAgent:
    """Replies for `ScriptedServer`: plays the gold program of the question that a prompt shows, one line a step.

    Args:
        table: map from each question, worded as in the prompt, to its program; other questions have no answer.
        noise: how likely a trial fails. It then finishes after its first line with the name of a node that it has
            looked up.
        seed: decides which trials fail.
        judge: perfect accepts the right answers only; yes and no always say so; unreadable gives no verdict.
    """

    table: Mapping[str, GoldProgram] = field(default_factory=dict)
    noise: float = 0.0
    seed: int = 0
    judge: JudgeKind = "perfect"

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str:
        return self.reply(read_prompt(messages))

    def reply(self, prompt: ShownPrompt) -> str:
        """Return the reply to a prompt."""
        gold = self.table.get(prompt.question)
        asked = asked_turn(prompt.user)
        match asked.turn:
            case "plan":
                return "The goal is what the question asks for. The next line of the program leads there."
            case "need":
                return "What the next line of the program returns."
            case "action":
                return self.line(prompt, gold, asked.step)
            case "merged":
                line = self.line(prompt, gold, asked.step)
                return json.dumps({"plan": "Go on.", "need": "The next line.", "actions": line}, ensure_ascii=False)
            case "verify":
                return self._verdict(prompt, gold)
            case "reflect":
                return (
                    f"Recap: the trial failed.\nAnalysis: it was wrong.\nStrategy: attempt {self.attempt(prompt) + 1}"
                )

    def attempt(self, prompt: ShownPrompt) -> int:
        """Return the number of the trial, from 0, which the reflection before it says."""
        before = prompt.user.rpartition("\nQuestion: ")[0]
        numbers = _ATTEMPT.findall(before)
        return int(numbers[-1]) if numbers else 0

    def line(self, prompt: ShownPrompt, gold: GoldProgram | None, step: int) -> str:
        """Return the line of calls of a step."""
        if gold is None:
            return "Finish[nothing is known]"
        chance = random.Random(f"{self.seed} {prompt.question} {self.attempt(prompt)}").random()
        if chance < self.noise and step > 1:
            return f"Finish[{_looked_up(gold)}]"
        return gold.lines[min(step, len(gold.lines)) - 1]

    def _verdict(self, prompt: ShownPrompt, gold: GoldProgram | None) -> str:
        if self.judge == "unreadable":
            return "It may be right, yes or no."
        right = self.judge == "yes" or (self.judge == "perfect" and _is_right(prompt.user, gold))
        published = "[Yes] or [No]" in prompt.user
        word = ("[Yes]" if right else "[No]") if published else f"Judgment: {'yes' if right else 'no'}"
        return f"The answer was compared with the lines. That is all.\n{word}"


def _is_right(user: str, gold: GoldProgram | None) -> bool:
    """Return whether the answer in a prompt for a verdict is the right one."""
    rest = user.rpartition("The trial ended with this answer:")[2]
    texts = [found[2] for found in _FENCED.finditer(rest)]
    if gold is None or not texts:
        return False
    wanted = "; ".join(gold.answers) or gold.text
    return set(texts[-1].split("; ")) == set(wanted.split("; "))


def _looked_up(gold: GoldProgram) -> str:
    """Return the text of the first `Retrieve` of a program."""
    calls: list[Call] = list(read_action_line(gold.lines[0]).value or ())
    while calls:
        call = calls.pop(0)
        if call.name == "Retrieve":
            return str(call.arguments[0])
        calls[:0] = [each for each in call.arguments if isinstance(each, Call)]
    return "nothing"
