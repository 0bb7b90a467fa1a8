"""Checks of the language model: whether it answers, how it is constrained to choices, concurrency, and cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kgqa.doctor.checks import LEFT_OUT, Check, failed, first_case, ok, percentile, seconds_words, skipped, warning
from kgqa.doctor.subject import ModelCalls, Subject
from kgqa.llm.backends.constraints import CONSTRAINT_MODES, REQUEST_FIELDS, ConstraintMode
from kgqa.llm.client import LLM, Completion, Prompt
from kgqa.llm.models import Models, open_models
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.choices import read_choice
from kgqa.text.words import counted

REAL = ("A", "B")
"""The choices given in the text of the prompt."""
STRANGE = ("FIRST", "SECOND")
"""Choices that are not in the prompt. A model replies with them only if the server constrains the model to them."""
AT_ONCE = 4
SECONDS = 20.0
NO_MODEL = "No language model is set, so paths are chosen by similarity. Set a model with --llm MODEL."


def check_model(subject: Subject) -> Check:
    """Call the language model, and check whether it answers.

    Raises:
        ModelUnavailable, SettingsError: see `open_models`.
    """
    settings = subject.settings
    reasons = {
        NO_MODEL: (settings.llm.model or "none").strip() == "none",
        "Replies come from a file (llm.replay_only), so no model is called.": settings.llm.replay_only == "on",
        LEFT_OUT: not subject.asks_model,
    }
    why = next((text for text, applies in reasons.items() if applies), "")
    # short time limits, and replies are not recorded
    limits = {"llm.retries": min(1, settings.llm.retries), "llm.timeout": min(SECONDS, settings.llm.timeout)}
    limited = replace(settings, values={**settings.values, **limits, "llm.replay": None})
    models = None if why else open_models(limited)
    if models is None:
        subject.reasons["model"] = why or NO_MODEL
        return skipped(why or NO_MODEL)
    try:
        calls = call_model(models, settings.llm.prompts)
    except TimeoutError:
        return failed(
            f"{models.name} did not answer within {SECONDS:g} s.",
            "Use a faster model, or limit its reasoning (llm.extra_body). Questions wait llm.timeout seconds.",
        )
    finally:
        models.close()
    subject.model = calls
    name = models.by_stage["tournament"].name
    others = [each for each in models.name.split(", ") if each != name]
    also = f" Not checked: {', '.join(others)}." if others else ""
    good = [each.seconds for each in calls.all if not each.failure]
    bad = next((each for each in calls.all if each.failure), Completion())
    if not good:
        why = f"{bad.failure}: {bad.detail}" if bad.detail else bad.failure
        return failed(
            f"{name} gave no usable reply ({why}).{also}",
            "Check llm.max_tokens, llm.extra_body and the server's log.",
        )
    times = f"p50 {seconds_words(percentile(good, 0.5))}, slowest {seconds_words(max(good))}"
    found = f"{name} answered {len(good)} of {counted(len(calls.all), 'call')} ({times}).{also}"
    if bad.failure:
        return warning(f"{found} The other calls: {bad.failure}. {bad.detail}".rstrip(), "Check the server's log.")
    return ok(found)


def call_model(models: Models, prompts: str | None) -> ModelCalls:
    """Call the language model of the tournament, at most once per constraint mode and AT_ONCE times concurrently.

    Raises:
        TimeoutError: the model did not answer within SECONDS.
    """
    model = models.by_stage["tournament"]
    texts = Prompts(Path(prompts) if prompts else None)
    prompt = texts.prompt("top/compare", "tournament", **texts.get("top/compare").example)
    prompt = replace(prompt, sampling=models.sampling["tournament"], choices=STRANGE)

    def complete(*prompts: Prompt) -> list[Completion]:
        return list(model.complete(prompts, deadline=time.monotonic() + SECONDS))

    single: list[Completion] = []
    for _ in CONSTRAINT_MODES:  # until a reply is constrained to the choices, or all constraint modes have been tried
        before = mode_of(model)
        single += complete(prompt)
        if single[-1].constrained or single[-1].failure or mode_of(model) in (before, "free"):
            break
    started = time.monotonic()
    concurrent = complete(*[replace(prompt, choices=REAL)] * AT_ONCE)
    return ModelCalls(
        single + concurrent,
        concurrent,
        time.monotonic() - started,
        mode_of(model) if single[-1].constrained else "free",
        models.prices.get(model.name),
    )


def mode_of(model: LLM) -> ConstraintMode:
    """Return how the next request constrains a model on a server to choices, or how models in this process do."""
    mode: ConstraintMode = getattr(model, "constraint_mode", "structured_outputs")
    return mode


def check_mode(subject: Subject) -> Check:
    """Check whether the model is constrained to choices, and whether its replies can be read."""
    mode = subject.model.mode
    usable = [each for each in subject.model.concurrent if not each.failure]
    read = sum(read_choice(each.text, options=REAL).value is not None for each in usable)
    parsed = f"{read} of {counted(len(usable), 'reply', 'replies')} could be read."
    free = f"Free text: the server does not constrain the model. {parsed}"
    follow = "Use a model that follows instructions, or a server that can constrain it to choices, such as vLLM."
    handles = f"Check how the server handles {REQUEST_FIELDS.get(mode)}."
    return first_case(
        (not usable, skipped("There was no reply to read.")),
        (mode == "free" and not read, failed(free, follow)),
        (mode == "free" and read < len(usable), warning(free, follow)),
        (mode == "free", ok(free)),
        (read < len(usable), warning(f"{mode}, but only {parsed}", handles)),
        otherwise=ok(f"{mode}: the server constrains the model to the choices. {parsed}"),
    )


def check_concurrency(subject: Subject) -> Check:
    """Check concurrent calls, which together should take little more time than a single call; state the cost."""
    calls = subject.model
    seconds = [each.seconds for each in calls.concurrent if not each.failure]
    failures = [each.failure for each in calls.concurrent if each.failure]
    median = f", the median call {seconds_words(percentile(seconds, 0.5))}" if seconds else ""
    found = f"{len(calls.concurrent)} concurrent calls took {seconds_words(calls.seconds)}{median}. "
    found += cost_words(calls.all, calls.price)
    bad = f"{counted(len(failures), 'call')} failed ({''.join(failures[:1])}). {found}"
    return warning(bad, "Lower llm.concurrency.") if failures else ok(found)


def cost_words(completions: Sequence[Completion], price: tuple[float, float] | None) -> str:
    """Describe the cost of calls: number, tokens and, if the price is known, USD."""
    prompt = sum(each.prompt_tokens for each in completions)
    reply = sum(each.completion_tokens for each in completions)
    money = "" if price is None else f", {(prompt * price[0] + reply * price[1]) / 1_000_000:.4f} USD"
    return f"The checks made {counted(len(completions), 'call')}: {prompt + reply:,} tokens{money}."
