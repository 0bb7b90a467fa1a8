"""Calls of the language model that `kgqa doctor` checks."""

from __future__ import annotations

import time
from collections.abc import Sequence
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

    `single`: completions of calls one after the other. `concurrent`: completions of AT_ONCE calls, which together took
    `seconds`. `mode`: how the server constrains the model to choices. `price`: USD per million prompt and completion
    tokens, None if unknown. `others`: models of other stages, which were not called.
    """

    name: str
    single: tuple[Completion, ...]
    concurrent: tuple[Completion, ...]
    seconds: float
    mode: ConstraintMode
    price: tuple[float, float] | None
    others: tuple[str, ...]

    @property
    def all(self) -> tuple[Completion, ...]:
        """All completions."""
        return (*self.single, *self.concurrent)


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
    model, sampling = models.by_stage["tournament"], models.sampling["tournament"]
    texts = Prompts(Path(prompts) if prompts else None)
    prompt = replace(texts.prompt(PROMPT, "tournament", **texts.get(PROMPT).example), sampling=sampling)
    single = _try_choices(model, replace(prompt, choices=STRANGE))
    started = time.monotonic()
    concurrent = _complete(model, [replace(prompt, choices=REAL)] * AT_ONCE)
    return ModelCalls(
        model.name,
        tuple(single),
        tuple(concurrent),
        time.monotonic() - started,
        choice_mode(model, single),
        models.prices.get(model.name),
        tuple(name for name in models.name.split(", ") if name != model.name),
    )


def _try_choices(model: LLM, prompt: Prompt) -> list[Completion]:
    """Call the model until a reply is constrained to the choices, or until all constraint modes have been tried."""
    completions: list[Completion] = []
    for _ in range(TRIES):
        before = rejected_modes(model)
        completions += _complete(model, [prompt])
        now = rejected_modes(model)
        if completions[-1].constrained or completions[-1].failure or now in (before, set(REQUEST_FIELDS)):
            break
    return completions


def _complete(model: LLM, prompts: Sequence[Prompt]) -> Sequence[Completion]:
    return model.complete(prompts, deadline=time.monotonic() + SECONDS)


def choice_mode(model: LLM, completions: Sequence[Completion]) -> ConstraintMode:
    """Return how the server constrains the model to choices, judged by the model's completions and notes."""
    if not completions[-1].constrained:
        return "free"
    modes = CONSTRAINT_MODES if getattr(model, "url", "") != OPENAI_URL else CONSTRAINT_MODES[1:]
    return next(mode for mode in modes if mode not in rejected_modes(model))


def rejected_modes(model: LLM) -> set[ConstraintMode]:
    """Return the constraint modes that failed, according to the model's notes."""
    # the wording of the note in kgqa/llm/backends/openai.py
    texts = {mode: f"to choices with {field}," for mode, field in REQUEST_FIELDS.items()}
    return {mode for mode, text in texts.items() if any(text in note for note in model.notes)}
