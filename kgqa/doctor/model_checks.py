"""Checks of the language model: whether it answers, how it is constrained to choices, concurrency, and cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kgqa.doctor.checks import Check, Verdict, percentile, seconds_words, skipped, split_message
from kgqa.errors import KgqaError
from kgqa.llm.backends.constraints import CONSTRAINT_MODES, REQUEST_FIELDS, ConstraintMode
from kgqa.llm.client import LLM, Completion, Prompt
from kgqa.llm.models import Models, open_models
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.choices import read_choice
from kgqa.servers import OPENAI_URL
from kgqa.settings import Settings

NAMES = ("model", "choice mode", "model concurrency")
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
NO_MODEL = "No language model is set, so paths are chosen by similarity. Set a model with --llm MODEL."


@dataclass(frozen=True)
class Calls:
    """Completed calls, and their wall time in seconds. The calls of a batch run concurrently."""

    completions: tuple[Completion, ...]
    seconds: float

    @property
    def failures(self) -> list[Completion]:
        """The failed calls."""
        return [each for each in self.completions if each.failure]


def check_model(settings: Settings) -> list[Check]:
    """Call the language model of the tournament, at most TRIES + AT_ONCE times. Replies are not recorded.

    Returns:
        One check for each of NAMES.
    """
    why = no_model_reason(settings)
    if why:
        return [skipped(name, why) for name in NAMES]
    try:
        models = open_models(_in_a_hurry(settings))
        prompts = Prompts(Path(settings["llm.prompts"]) if settings["llm.prompts"] else None)
    except KgqaError as error:
        return _without(*split_message(str(error)))
    if models is None:
        return [skipped(name, NO_MODEL) for name in NAMES]
    try:
        return _call_model(models, prompts)
    finally:
        models.close()


def no_model_reason(settings: Settings) -> str:
    """Explain why there is no language model to call; return an empty text if there is one."""
    if (settings["llm.model"] or "none").strip() == "none":
        return NO_MODEL
    if settings["llm.replay_only"] == "on":
        return "Replies come from a file (llm.replay_only), so no model is called."
    return ""


def _in_a_hurry(settings: Settings) -> Settings:
    values = dict(settings.values) | {"llm.replay": None, "llm.retries": min(RETRIES, settings["llm.retries"])}
    values["llm.timeout"] = min(SECONDS, settings["llm.timeout"])
    return replace(settings, values=values)


def _without(found: str, remedy: str) -> list[Check]:
    return [Check(NAMES[0], "failed", found, remedy)] + [
        skipped(name, "The model does not answer.") for name in NAMES[1:]
    ]


def _call_model(models: Models, prompts: Prompts) -> list[Check]:
    model, sampling = models.by_stage["tournament"], models.sampling["tournament"]
    prompt = replace(prompts.prompt(PROMPT, "tournament", **prompts.get(PROMPT).example), sampling=sampling)
    try:
        tried = _try_choices(model, replace(prompt, choices=STRANGE))
        at_once = _complete(model, [replace(prompt, choices=REAL)] * AT_ONCE)
    except TimeoutError:
        late = f"{models.name} did not answer within {SECONDS:g} s."
        return _without(
            late,
            "Use a faster model, or limit its reasoning (llm.extra_body). Questions wait llm.timeout seconds.",
        )
    except KgqaError as error:
        return _without(*split_message(str(error)))
    others = [name for name in models.name.split(", ") if name != model.name]
    calls = Calls((*tried.completions, *at_once.completions), tried.seconds + at_once.seconds)
    return [
        judge_model(model.name, calls, others=others),
        judge_mode(choice_mode(model, tried.completions), at_once.completions),
        judge_at_once(at_once, cost_words(calls.completions, models.prices.get(model.name))),
    ]


def _try_choices(model: LLM, prompt: Prompt) -> Calls:
    """Call the model until a reply is constrained to the choices, or until all constraint modes have been tried."""
    completions: list[Completion] = []
    started = time.monotonic()
    for _ in range(TRIES):
        before = rejected_modes(model)
        completions += _complete(model, [prompt]).completions
        now = rejected_modes(model)
        if completions[-1].constrained or completions[-1].failure or now in (before, set(REQUEST_FIELDS)):
            break
    return Calls(tuple(completions), time.monotonic() - started)


def _complete(model: LLM, prompts: Sequence[Prompt]) -> Calls:
    started = time.monotonic()
    completions = model.complete(prompts, deadline=started + SECONDS)
    return Calls(tuple(completions), time.monotonic() - started)


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


def judge_model(name: str, calls: Calls, *, others: Sequence[str]) -> Check:
    """Judge whether the model answers; `others`: models of the remaining stages; they were not called."""
    also = f" Not checked: {', '.join(others)}." if others else ""
    bad = calls.failures
    if len(bad) == len(calls.completions):
        detail = f": {bad[0].detail}" if bad[0].detail else ""
        remedy = "Check llm.max_tokens, llm.extra_body and the server's log."
        return Check("model", "failed", f"{name} gave no usable reply ({bad[0].failure}{detail}).{also}", remedy)
    good = [each.seconds for each in calls.completions if not each.failure]
    times = f"p50 {seconds_words(percentile(good, 0.5))}, slowest {seconds_words(max(good))}"
    found = f"{name} answered {len(good)} of {len(calls.completions)} calls ({times}).{also}"
    if bad:
        return Check(
            "model",
            "warning",
            f"{found} The other calls: {bad[0].failure}. {bad[0].detail}".rstrip(),
            "Check the server's log.",
        )
    return Check("model", "ok", found)


def judge_mode(mode: ConstraintMode, completions: Sequence[Completion]) -> Check:
    """Judge whether the model is constrained to choices, and whether its replies can be read."""
    name = "choice mode"
    usable = [each for each in completions if not each.failure]
    read = sum(read_choice(each.text, options=REAL).value is not None for each in usable)
    parsed = f"{read} of {len(usable)} replies could be read."
    if not usable:
        return Check(name, "skipped", "There was no reply to read.")
    if mode == "free":
        found = f"Free text: the server does not constrain the model. {parsed}"
        verdict: Verdict = "ok" if read == len(usable) else "warning" if read else "failed"
        remedy = (
            ""
            if verdict == "ok"
            else "Use a model that follows instructions, or a server that can constrain it to choices, such as vLLM."
        )
        return Check(name, verdict, found, remedy)
    if read < len(usable):
        return Check(
            name, "warning", f"{mode}, but only {parsed}", "Check how the server handles " + REQUEST_FIELDS[mode] + "."
        )
    return Check(name, "ok", f"{mode}: the server constrains the model to the choices. {parsed}")


def judge_at_once(calls: Calls, cost: str) -> Check:
    """Judge concurrent calls; together they should take little more time than a single call."""
    name = "model concurrency"
    seconds = [each.seconds for each in calls.completions if not each.failure]
    found = f"{len(calls.completions)} concurrent calls took {seconds_words(calls.seconds)}"
    if seconds:
        one = percentile(seconds, 0.5)
        found += f", the median call {seconds_words(one)}"
    found = f"{found}. {cost}"
    if calls.failures:
        remedy = "Lower llm.concurrency."
        return Check(
            name, "warning", f"{len(calls.failures)} calls failed ({calls.failures[0].failure}). {found}", remedy
        )
    return Check(name, "ok", found)


def cost_words(completions: Sequence[Completion], price: tuple[float, float] | None) -> str:
    """Describe the cost of calls: number, tokens and, if the price is known, USD."""
    prompt = sum(each.prompt_tokens for each in completions)
    reply = sum(each.completion_tokens for each in completions)
    money = "" if price is None else f", {(prompt * price[0] + reply * price[1]) / 1_000_000:.4f} USD"
    return f"The checks made {len(completions)} calls: {prompt + reply:,} tokens{money}."
