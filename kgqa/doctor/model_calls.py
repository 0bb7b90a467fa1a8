"""Calls of the language model that `kgqa doctor` checks."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from kgqa.llm.backends.constraints import CONSTRAINT_MODES, REQUEST_FIELDS, ConstraintMode
from kgqa.llm.client import LLM, Completion, Prompt
from kgqa.llm.models import Models, open_models
from kgqa.llm.prompts import Prompts
from kgqa.servers import OPENAI_URL
from kgqa.settings import Settings

PROMPT = "top/compare"
REAL = ("A", "B")
"""The choices given in the text of the prompt."""
STRANGE = ("FIRST", "SECOND")
"""Choices that are not in the prompt. A model replies with them only if the server constrains the model to them."""
TRIES = 3
"""The largest number of calls with STRANGE: one for each constraint mode."""
AT_ONCE = 4
SECONDS = 20.0
RETRIES = 1


@dataclass(frozen=True)
class ModelCalls:
    """The calls of the model of the tournament.

    `all`: all completions. `concurrent`: those of AT_ONCE calls, which together took `seconds`. `mode`: how the server
    constrains the model to choices. `price`: USD per million prompt and completion tokens, None if unknown. `others`:
    models of other stages, which were not called.
    """

    name: str
    all: list[Completion]
    concurrent: list[Completion]
    seconds: float
    mode: ConstraintMode
    price: tuple[float, float] | None
    others: list[str]


def open_checked_models(settings: Settings) -> Models | None:
    """Open the language models with short time limits; replies are not recorded. None if no model is set."""
    values = dict(settings.values) | {"llm.replay": None, "llm.retries": min(RETRIES, settings["llm.retries"])}
    values["llm.timeout"] = min(SECONDS, settings["llm.timeout"])
    return open_models(replace(settings, values=values))


def call_model(models: Models, prompts: str | None) -> ModelCalls:
    """Call the language model of the tournament, at most TRIES + AT_ONCE times.

    Raises:
        TimeoutError: the model did not answer within SECONDS.
    """
    model = models.by_stage["tournament"]
    texts = Prompts(Path(prompts) if prompts else None)
    prompt = texts.prompt(PROMPT, "tournament", **texts.get(PROMPT).example)
    prompt = replace(prompt, sampling=models.sampling["tournament"], choices=STRANGE)

    def complete(*prompts: Prompt) -> list[Completion]:
        return list(model.complete(prompts, deadline=time.monotonic() + SECONDS))

    single: list[Completion] = []
    for _ in range(TRIES):  # until a reply is constrained to the choices, or all constraint modes have been tried
        before = rejected_modes(model)
        single += complete(prompt)
        rejected = rejected_modes(model)
        if single[-1].constrained or single[-1].failure or rejected in (before, set(REQUEST_FIELDS)):
            break
    modes = CONSTRAINT_MODES if getattr(model, "url", "") != OPENAI_URL else CONSTRAINT_MODES[1:]
    started = time.monotonic()
    concurrent = complete(*[replace(prompt, choices=REAL)] * AT_ONCE)
    return ModelCalls(
        model.name,
        single + concurrent,
        concurrent,
        time.monotonic() - started,
        next(mode for mode in modes if mode not in rejected) if single[-1].constrained else "free",
        models.prices.get(model.name),
        [name for name in models.name.split(", ") if name != model.name],
    )


def rejected_modes(model: LLM) -> set[ConstraintMode]:
    """Return the constraint modes that failed, according to the model's notes."""
    # the wording of the note in kgqa/llm/backends/openai.py
    texts = {mode: f"to choices with {field}," for mode, field in REQUEST_FIELDS.items()}
    return {mode for mode, text in texts.items() if any(text in note for note in model.notes)}
