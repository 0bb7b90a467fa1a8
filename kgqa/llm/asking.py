"""Sends prompts to the language models of a question and reads the replies; unusable replies are asked for again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from kgqa.llm.client import Completion, Message, TypedPrompt
from kgqa.llm.models import QuestionModels
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.json_values import Reading

T = TypeVar("T")
_FINAL = ("rejected", "unreachable")
_REASONS = {
    "refused": "the model declined to reply",
    "rejected": "the server does not accept the prompt",
    "unreachable": "the server did not reply",
}


def ask(models: QuestionModels, prompts: Prompts, asked: Sequence[TypedPrompt[T]], *, reask: int = 1) -> list[T | None]:
    """Send prompts of one stage and return the values read from the replies, in order; None for an unusable reply.

    After an unusable reply, the prompt is sent again with an explanation of the problem, at most `reask` times; the
    value is never guessed. The numbers of repaired, repeated and unusable replies are added to the stage's usage.
    """
    return [reading.value for reading in ask_readings(models, prompts, asked, reask=reask)]


def ask_readings(
    models: QuestionModels,
    prompts: Prompts,
    asked: Sequence[TypedPrompt[T]],
    *,
    reask: int = 1,
    cut_off: bool = False,
    with_reasoning: bool = False,
) -> list[Reading[T]]:
    """Send prompts like `ask`, and return the readings; one without a value says in `problem` why.

    Args:
        models: The models of the question.
        prompts: The prompt files.
        asked: The prompts.
        reask: How often a prompt is sent again.
        cut_off: Whether a reply that was cut off at its token limit is read as far as it goes; `problem` of such a
            reading says so.
        with_reasoning: Whether a reader gets the reasoning, too, before the reply and between `<think>` tags.
    """
    found: list[Reading[T]] = [Reading(None)] * len(asked)
    waiting = dict(enumerate(asked))
    for attempt in range(reask + 1):
        if not waiting:
            break
        stage = asked[0].stage
        if attempt:
            models.trace.tally(stage, reasked=len(waiting))
        completions = models.complete(list(waiting.values()))
        again = {}
        for (index, prompt), completion in zip(waiting.items(), completions):
            text, thought = completion.text, completion.reasoning.replace("</think>", " ")
            if with_reasoning and thought:
                text = f"<think>{thought}</think>\n{text}"
            readable = not completion.failure or (cut_off and completion.failure == "length")
            reading = prompt.reply.read(text) if readable else Reading(None, problem="It has no answer.")
            if reading.value is None and completion.failure not in _FINAL:
                again[index] = _with_problem(prompt, completion, reading.problem, prompts)
            repaired = reading.value is not None and (reading.repaired or bool(completion.failure))
            models.trace.tally(stage, repaired=int(repaired))
            kept = text if readable else ""
            found[index] = Reading(reading.value, repaired, _reason(completion, reading.problem), kept)
        waiting = again
    if unparsed := sum(reading.value is None for reading in found):
        models.trace.tally(asked[0].stage, unparsed=unparsed)
    return found


def _reason(completion: Completion, problem: str) -> str:
    """Return why a reply has no value, or only a part of it: why it failed, or the problem of its reader."""
    parts = (_REASONS.get(completion.failure, ""), completion.detail)
    return ": ".join(filter(None, parts)) or completion.failure or problem


def _with_problem(prompt: TypedPrompt[T], completion: Completion, problem: str, prompts: Prompts) -> TypedPrompt[T]:
    reply = Message("assistant", completion.text.strip()[:4000] or "(nothing)")
    return replace(prompt, messages=(*prompt.messages, reply, *prompts.render("top/reask", problem=problem)))
