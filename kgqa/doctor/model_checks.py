"""Checks of the language model: whether it answers, how it is constrained to choices, concurrency, and cost."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.doctor.checks import LEFT_OUT, Check, failed, first_case, ok, percentile, seconds_words, skipped, warning
from kgqa.doctor.model_calls import REAL, SECONDS, call_model, open_checked_models
from kgqa.doctor.subject import Subject
from kgqa.llm.backends.constraints import REQUEST_FIELDS
from kgqa.llm.client import Completion
from kgqa.llm.replies.choices import read_choice

NO_MODEL = "No language model is set, so paths are chosen by similarity. Set a model with --llm MODEL."


def check_model(subject: Subject) -> Check:
    """Call the language model, and check whether it answers.

    Raises:
        ModelUnavailable, SettingsError: see `open_models`.
    """
    settings = subject.settings
    why = "" if subject.asks_model else LEFT_OUT
    if settings["llm.replay_only"] == "on":
        why = "Replies come from a file (llm.replay_only), so no model is called."
    if (settings["llm.model"] or "none").strip() == "none":
        why = NO_MODEL
    models = None if why else open_checked_models(settings)
    if models is None:
        subject.reasons["model"] = why or NO_MODEL
        return skipped(why or NO_MODEL)
    try:
        calls = call_model(models, settings["llm.prompts"])
    except TimeoutError:
        return failed(
            f"{models.name} did not answer within {SECONDS:g} s.",
            "Use a faster model, or limit its reasoning (llm.extra_body). Questions wait llm.timeout seconds.",
        )
    finally:
        models.close()
    subject.model = calls
    also = f" Not checked: {', '.join(calls.others)}." if calls.others else ""
    good = [each.seconds for each in calls.all if not each.failure]
    bad = next((each for each in calls.all if each.failure), Completion())
    if not good:
        detail = f": {bad.detail}" if bad.detail else ""
        remedy = "Check llm.max_tokens, llm.extra_body and the server's log."
        return failed(f"{calls.name} gave no usable reply ({bad.failure}{detail}).{also}", remedy)
    times = f"p50 {seconds_words(percentile(good, 0.5))}, slowest {seconds_words(max(good))}"
    found = f"{calls.name} answered {len(good)} of {len(calls.all)} calls ({times}).{also}"
    if bad.failure:
        return warning(f"{found} The other calls: {bad.failure}. {bad.detail}".rstrip(), "Check the server's log.")
    return ok(found)


def check_mode(subject: Subject) -> Check:
    """Check whether the model is constrained to choices, and whether its replies can be read."""
    mode = subject.model.mode
    usable = [each for each in subject.model.concurrent if not each.failure]
    read = sum(read_choice(each.text, options=REAL).value is not None for each in usable)
    parsed = f"{read} of {len(usable)} replies could be read."
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
    found = f"{len(calls.concurrent)} concurrent calls took {seconds_words(calls.seconds)}"
    found += f", the median call {seconds_words(percentile(seconds, 0.5))}" if seconds else ""
    found += f". {cost_words(calls.all, calls.price)}"
    if failures:
        return warning(f"{len(failures)} calls failed ({failures[0]}). {found}", "Lower llm.concurrency.")
    return ok(found)


def cost_words(completions: Sequence[Completion], price: tuple[float, float] | None) -> str:
    """Describe the cost of calls: number, tokens and, if the price is known, USD."""
    prompt = sum(each.prompt_tokens for each in completions)
    reply = sum(each.completion_tokens for each in completions)
    money = "" if price is None else f", {(prompt * price[0] + reply * price[1]) / 1_000_000:.4f} USD"
    return f"The checks made {len(completions)} calls: {prompt + reply:,} tokens{money}."
