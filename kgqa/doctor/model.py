"""Whether the language model answers, what holds it to choices, how many calls at once it bears, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kgqa.doctor.checks import Check, percentile, seconds_words, skipped, what_and_next
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
"""The choices that the prompt asks for."""
STRANGE = ("FIRST", "SECOND")
"""Choices that it does not speak of: a model that is held to nothing does not hit upon them."""
TRIES = 3
"""One for each way of holding a model to choices."""
AT_ONCE = 4
SECONDS = 20.0
RETRIES = 1
NO_MODEL = "No language model is set: paths are chosen by similarity. One is given by --llm MODEL."


@dataclass(frozen=True)
class Calls:
    """What was asked and came back. `seconds`: what all of it took, calls of one batch being made at once."""

    completions: tuple[Completion, ...]
    seconds: float

    @property
    def failures(self) -> list[Completion]:
        return [each for each in self.completions if each.failure]


def check_model(settings: Settings) -> list[Check]:
    """Ask the model that the tournament of paths asks, TRIES + AT_ONCE times at most. No reply is kept in a file.

    Returns:
        One check for each of NAMES.
    """
    why = why_none(settings)
    if why:
        return [skipped(name, why) for name in NAMES]
    try:
        models = open_models(_in_a_hurry(settings))
        prompts = Prompts(Path(settings["llm.prompts"]) if settings["llm.prompts"] else None)
    except KgqaError as error:
        return _without(*what_and_next(str(error)))
    if models is None:
        return [skipped(name, NO_MODEL) for name in NAMES]
    try:
        return _asked(models, prompts)
    finally:
        models.close()


def why_none(settings: Settings) -> str:
    """Why there is no model to ask by these settings; empty where there is one."""
    if (settings["llm.model"] or "none").strip() == "none":
        return NO_MODEL
    if settings["llm.replay_only"] == "on":
        return "Replies come from a file (llm.replay_only): no model is asked."
    return ""


def _in_a_hurry(settings: Settings) -> Settings:
    values = dict(settings.values) | {"llm.replay": None, "llm.retries": min(RETRIES, settings["llm.retries"])}
    values["llm.timeout"] = min(SECONDS, settings["llm.timeout"])
    return replace(settings, values=values)


def _without(found: str, remedy: str) -> list[Check]:
    return [Check(NAMES[0], "failed", found, remedy)] + [
        skipped(name, "The model does not answer.") for name in NAMES[1:]
    ]


def _asked(models: Models, prompts: Prompts) -> list[Check]:
    model, sampling = models.by_stage["tournament"], models.sampling["tournament"]
    messages = prompts.render(PROMPT, **prompts.get(PROMPT).example)
    prompt = Prompt(messages, "tournament", sampling=sampling)
    try:
        tried = _try_choices(model, replace(prompt, choices=STRANGE))
        at_once = _complete(model, [replace(prompt, choices=REAL)] * AT_ONCE)
    except TimeoutError:
        late = f"{models.name} has not answered within {SECONDS:g} s."
        return _without(
            late, "Ask a faster one, or have it think less (llm.extra_body); llm.timeout is what questions grant."
        )
    except KgqaError as error:
        return _without(*what_and_next(str(error)))
    others = [name for name in models.name.split(", ") if name != model.name]
    calls = Calls((*tried.completions, *at_once.completions), tried.seconds + at_once.seconds)
    return [
        judge_model(model.name, calls, others=others),
        judge_mode(choice_mode(model, tried.completions), at_once.completions),
        judge_at_once(at_once, cost_words(calls.completions, models.prices.get(model.name))),
    ]


def _try_choices(model: LLM, prompt: Prompt) -> Calls:
    """Ask until the model is held to the choices, or until nothing more is found out."""
    completions: list[Completion] = []
    started = time.monotonic()
    for _ in range(TRIES):
        before = ways_given_up(model)
        completions += _complete(model, [prompt]).completions
        now = ways_given_up(model)
        if completions[-1].constrained or completions[-1].failure or now in (before, set(REQUEST_FIELDS)):
            break
    return Calls(tuple(completions), time.monotonic() - started)


def _complete(model: LLM, prompts: Sequence[Prompt]) -> Calls:
    started = time.monotonic()
    completions = model.complete(prompts, deadline=started + SECONDS)
    return Calls(tuple(completions), time.monotonic() - started)


def choice_mode(model: LLM, completions: Sequence[Completion]) -> ConstraintMode:
    """The way in which a server holds the model to choices, by what it did and what was noted of it."""
    if not completions[-1].constrained:
        return "free"
    ways = CONSTRAINT_MODES if getattr(model, "url", "") != OPENAI_URL else CONSTRAINT_MODES[1:]
    return next(way for way in ways if way not in ways_given_up(model))


def ways_given_up(model: LLM) -> set[ConstraintMode]:
    """The ways of holding the model to choices that its notes say were tried in vain."""
    return {
        way for way in REQUEST_FIELDS if any(f"to choices by {REQUEST_FIELDS[way]}," in note for note in model.notes)
    }


def judge_model(name: str, calls: Calls, *, others: Sequence[str]) -> Check:
    """The verdict on whether the model answers; `others`: models of other stages, which were not asked."""
    also = f" Not asked: {', '.join(others)}." if others else ""
    bad = calls.failures
    if len(bad) == len(calls.completions):
        detail = f": {bad[0].detail}" if bad[0].detail else ""
        remedy = "Look at the model's parameters: llm.max_tokens, llm.extra_body, and what the server logs."
        return Check("model", "failed", f"{name} gave no usable reply ({bad[0].failure}{detail}).{also}", remedy)
    good = [each.seconds for each in calls.completions if not each.failure]
    times = f"p50 {seconds_words(percentile(good, 0.5))}, slowest {seconds_words(max(good))}"
    found = f"{name} answered {len(good)} of {len(calls.completions)} calls ({times}).{also}"
    if bad:
        return Check(
            "model",
            "warning",
            f"{found} The others: {bad[0].failure}. {bad[0].detail}".rstrip(),
            "See what the server logs.",
        )
    return Check("model", "ok", found)


def judge_mode(mode: ConstraintMode, completions: Sequence[Completion]) -> Check:
    """The verdict on how choices are kept to, and on whether replies can be read."""
    name = "choice mode"
    usable = [each for each in completions if not each.failure]
    read = sum(read_choice(each.text, options=REAL).value is not None for each in usable)
    parsed = f"{read} of {len(usable)} replies could be read."
    if not usable:
        return Check(name, "skipped", "There was no reply to read.")
    if mode == "free":
        found = f"Free text: the server holds the model to nothing. {parsed}"
        verdict = "ok" if read == len(usable) else "warning" if read else "failed"
        remedy = (
            ""
            if verdict == "ok"
            else "Take a model that follows its instructions, or a server that holds it to choices, such as vLLM."
        )
        return Check(name, verdict, found, remedy)
    if read < len(usable):
        return Check(
            name, "warning", f"{mode}, yet only {parsed}", "See what the server does with " + REQUEST_FIELDS[mode] + "."
        )
    return Check(name, "ok", f"{mode}: the server holds the model to the choices. {parsed}")


def judge_at_once(calls: Calls, cost: str) -> Check:
    """The verdict on several calls at once: they should take little more time than one."""
    name = "model concurrency"
    seconds = [each.seconds for each in calls.completions if not each.failure]
    found = f"{len(calls.completions)} calls at once took {seconds_words(calls.seconds)}"
    if seconds:
        one = percentile(seconds, 0.5)
        found += f", one of them {seconds_words(one)}"
    found = f"{found}. {cost}"
    if calls.failures:
        remedy = "Send fewer at once: llm.concurrency."
        return Check(name, "warning", f"{len(calls.failures)} failed ({calls.failures[0].failure}). {found}", remedy)
    return Check(name, "ok", found)


def cost_words(completions: Sequence[Completion], price: tuple[float, float] | None) -> str:
    """What calls cost: how many, tokens and, where the price of the model is known, USD."""
    asked = sum(each.prompt_tokens for each in completions)
    said = sum(each.completion_tokens for each in completions)
    money = "" if price is None else f", {(asked * price[0] + said * price[1]) / 1_000_000:.4f} USD"
    return f"This examination made {len(completions)} calls: {asked + said:,} tokens{money}."
