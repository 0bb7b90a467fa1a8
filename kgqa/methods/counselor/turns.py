"""The turns of the language model in a step: plan, missing fact, actions; each with a prompt of its own or in one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from kgqa.llm.asking import ask_readings
from kgqa.llm.client import Prompt, Stage
from kgqa.llm.replies.action_lines import MAX_DEPTH, Call, call_text
from kgqa.llm.replies.json_values import Reading
from kgqa.methods.acting.declarations import CounselorSettings
from kgqa.methods.acting.tokens import prompt_tokens
from kgqa.methods.acting.transcript import Transcript
from kgqa.methods.counselor.replies import ActionReply, read_actions, read_sentences, read_turn
from kgqa.methods.resources import Resources
from kgqa.trace import ActionRead, StepPlanned
from kgqa.trace.trace import Trace

T = TypeVar("T")
MAX_PROMPT_TOKENS = 10_000
"""A longer prompt is not sent: it ends the trial."""
PUBLISHED_DEPTH = 2
_FINISH = re.compile(r"\W*Finish *\[", re.IGNORECASE)
UNREAD = "(unreadable)"
"""What stands in the transcript for actions that could not be read."""


class PromptTooLong(Exception):
    """A prompt has more than `MAX_PROMPT_TOKENS` tokens."""


@dataclass(frozen=True)
class Memory:
    """What one trial leaves to the next. `reflection`: a text. `facts`: observations, one line each."""

    reflection: str = ""
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Turn:
    """The actions of a step. `problem`: why there are none; empty if there are."""

    calls: tuple[Call, ...]
    problem: str = ""


class Turns:
    """Asks the language model of one question.

    Args:
        question: The text of the question.
        definition: The definition of the graph, one line per type of nodes.
        resources: The resources of the run.
        trace: The trace of the question.
    """

    def __init__(self, question: str, definition: tuple[str, ...], resources: Resources, trace: Trace) -> None:
        settings = resources.settings.of(CounselorSettings)
        self._resources = resources
        self._trace = trace
        self._published = settings.reading == "published"
        self._merged = settings.agents == "merged"
        self._planned = settings.plan == "on"
        self._steps = settings.steps
        composed = settings.compose == "on"
        self._depth = (PUBLISHED_DEPTH if self._published else MAX_DEPTH) if composed else 1
        self._shared: dict[str, Any] = {
            "question": question,
            "definition": definition,
            "planned": self._planned,
            "depth": self._depth,
            "sets": settings.functions == "sets",
        }

    def take(self, transcript: Transcript, memory: Memory, trial: int, step: int) -> Turn:
        """Ask for the plan, the missing fact and the actions of a step, and add them to the transcript.

        A plan may be `Finish[...]`; then no more is asked.

        Raises:
            PromptTooLong: A prompt is too long.
            BudgetExhausted: The question's budget is used up.
        """
        at = {"trial": trial, "step": step}
        actions = partial(read_actions, depth=self._depth, published=self._published)
        if self._merged:
            reader = partial(read_turn, depth=self._depth, published=self._published)
            reply, problem, raw = self._acts("merged", reader, transcript, memory, step)
            if reply is not None:
                self._add_plan(reply.plan if self._planned else "", transcript, at)
                self._add_plan(reply.need, transcript, at, need=True)
        else:
            if self._planned:
                plan = self._says("plan", "plan", transcript, memory, step)
                finish = None if self._published or not _FINISH.match(plan) else actions(plan).value
                if finish is not None and len(finish.calls) == 1:
                    return self._add_actions(finish.calls, plan, "", transcript, at)
                self._add_plan(plan, transcript, at)
            self._add_plan(self._says("think", "need", transcript, memory, step), transcript, at, need=True)
            reply, problem, raw = self._acts("act", actions, transcript, memory, step)
        return self._add_actions(reply.calls if reply is not None else (), raw, problem, transcript, at)

    def ask(
        self,
        name: str,
        stage: Stage,
        reader: Callable[[str], Reading[T]],
        transcript: list[str],
        memory: Memory,
        **values: Any,
    ) -> Reading[T]:
        """Send a prompt of this method and return what was read.

        Args:
            name: The name of the prompt, without its folder.
            stage: The stage that sends it.
            reader: The reader of the reply.
            transcript: The lines of the trial.
            memory: What earlier trials left.
            values: The values that only this prompt has.

        Raises:
            PromptTooLong: The prompt is too long.
            BudgetExhausted: The question's budget is used up.
        """
        shown = {**self._shared, "reflection": memory.reflection, "facts": memory.facts, "lines": transcript}
        prompt: Prompt = self._resources.prompts.prompt(f"counselor/{name}", stage, **shown, **values)
        if prompt_tokens(prompt) > MAX_PROMPT_TOKENS:
            raise PromptTooLong(f"the prompt would have more than {MAX_PROMPT_TOKENS:,} tokens")
        assert self._resources.models is not None
        models = self._resources.models.for_question(self._trace)
        reask = self._resources.settings.llm.reask
        (found,) = ask_readings(models, self._resources.prompts, [prompt], [reader], reask=reask)
        return found

    def _turn_prompt(
        self,
        stage: Stage,
        name: str,
        label: str,
        reader: Callable[[str], Reading[T]],
        transcript: Transcript,
        memory: Memory,
        step: int,
    ) -> Reading[T]:
        if self._published and name != "merged":
            return self.ask("published_step", stage, reader, transcript.shown(), memory, label=label, step=step)
        steps = self._steps
        return self.ask(name, stage, reader, transcript.shown(), memory, step=step, steps=steps)

    def _says(self, stage: Stage, label: str, transcript: Transcript, memory: Memory, step: int) -> str:
        """Return a plan or a need; "" if the reply could not be read."""
        reader = partial(read_sentences, label=label)
        found = self._turn_prompt(stage, stage, label.capitalize(), reader, transcript, memory, step)
        return found.value or ""

    def _acts(
        self,
        name: str,
        reader: Callable[[str], Reading[ActionReply]],
        transcript: Transcript,
        memory: Memory,
        step: int,
    ) -> tuple[ActionReply | None, str, str]:
        """Return the reply, the problem if there is none, and the text of the last reply."""
        texts: list[str] = []

        def read(text: str) -> Reading[ActionReply]:
            texts.append(text)
            return reader(text)

        found = self._turn_prompt("act", name, "Action", read, transcript, memory, step)
        return found.value, found.problem if found.value is None else "", texts[-1] if texts else ""

    def _add_actions(
        self, calls: tuple[Call, ...], raw: str, problem: str, transcript: Transcript, at: dict[str, int]
    ) -> Turn:
        texts = tuple(map(call_text, calls))
        event = ActionRead(reply=raw, actions=texts, problem=problem, trial=at["trial"], step=at["step"])
        self._trace.record(event)
        transcript.add("Action", at["step"], ", ".join(texts) or UNREAD)
        return Turn(calls, problem)

    def _add_plan(self, text: str, transcript: Transcript, at: dict[str, int], *, need: bool = False) -> None:
        if text:
            self._trace.record(StepPlanned(text=text, need=need, trial=at["trial"], step=at["step"]))
            transcript.add("Need" if need else "Plan", at["step"], text)
