"""What run.json says: everything that decides the answers, and nothing secret."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from kgqa.cache import Cache
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.datasets.registry import READERS
from kgqa.evaluation.runs.asking import Topics
from kgqa.evaluation.runs.runs import FORMAT, Run, RunError
from kgqa.methods.ask import cache_of, graph_id
from kgqa.methods.resources import Resources
from kgqa.model import to_json
from kgqa.settings import Settings, check, resolve
from kgqa.settings_table import BY_KEY
from kgqa.version import __version__

PACKAGES = ("pyoxigraph", "openai", "vllm", "sentence-transformers", "onnxruntime", "numpy", "jinja2", "urllib3")
LEFT_OUT = ("llm.extra_body", "llm.stages")
"""Settings that may hold keys: of these only a digest is kept."""
OF_THE_MACHINE = (
    *("cache.folder", "cache.limit_gb", "llm.concurrency", "llm.timeout", "llm.retries", "endpoint.user"),
    *("endpoint.concurrency", "endpoint.rate", "endpoint.contact", "endpoint.connect_timeout", "endpoint.patience"),
    *("endpoint.cache", "endpoint.cache_days", "endpoint.cache_gb", "graph.load_memory"),
)
"""Settings that decide no answer, only where it is found, how fast, and how long somebody waits for it."""


PATHS = (
    *("graph.path", "graph.schema", "rank.ranker", "rank.model", "llm.model", "llm.replay", "llm.prompts"),
    "llm.prices",
)
"""Settings that are paths, or may be."""


@dataclass(frozen=True)
class Plan:
    """What a run was asked to do, besides its settings."""

    dataset: str
    topics: Topics = "gold"
    sample: int | None = None
    seed: int = 0
    shard: str = ""
    concurrency: int = 8
    losses: bool = False
    most_cost: float | None = None
    keep_going: bool = False


def manifest_of(
    plan: Plan, questions: Sequence[GoldQuestion], resources: Resources, *, whole: Sequence[GoldQuestion] = ()
) -> dict[str, Any]:
    """The object of run.json. Of a server the triples are counted for it.

    Args:
        whole: the questions of all parts, where this run is one of them.
    """
    settings = resources.settings
    graph = graph_id(resources.graph)
    prompts = resources.prompts
    found = {
        "format": FORMAT,
        "id": secrets.token_hex(8),
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
        "working_folder": os.getcwd(),
        "method": settings["ask.method"],
        "dataset": {
            "source": plan.dataset,
            "questions": len(questions),
            "digest": digest_of(questions),
            "whole": digest_of(whole or questions),
        },
        "topics": plan.topics,
        "sample": plan.sample,
        "seed": plan.seed,
        "shard": plan.shard,
        "concurrency": plan.concurrency,
        "losses": plan.losses,
        "most_cost": plan.most_cost,
        "graph": to_json(graph),
        "models": resources.models.stage_settings() if resources.models else None,
        "embeddings": resources.encoder.name if resources.encoder else None,
        "settings": {key: value for key, value in settings.values.items() if key not in LEFT_OUT},
        "given": sorted(key for key, origin in settings.origins.items() if origin not in ("default", "graph")),
        "secret": {key: _digest(settings[key]) for key in LEFT_OUT if settings[key] is not None},
        "prompts": {name: _digest(prompts.get(name).source) for name in prompts.names()},
        "versions": {"kgqa": __version__, "python": platform.python_version(), **_versions()},
    }
    return found


def digest_of(questions: Sequence[GoldQuestion]) -> str:
    """Tells question lists apart: ids, texts, topics, gold answers."""
    whole = hashlib.sha256()
    for question in questions:
        gold = [[[a.id, a.name, a.datatype] for a in reading] for reading in question.parses or (question.answers,)]
        whole.update(json.dumps([question.id, question.text, question.topics, gold]).encode())
    return whole.hexdigest()[:32]


def plan_of(run: Run) -> Plan:
    """Raises RunError where run.json is not what a run of this version writes."""
    data = run.manifest
    try:
        return Plan(
            dataset=_located(run, str(data["dataset"]["source"]), kinds=tuple(READERS)),
            topics=data["topics"],
            sample=data["sample"],
            seed=data["seed"],
            shard=data["shard"],
            concurrency=data["concurrency"],
            losses=data["losses"],
            most_cost=data["most_cost"],
        )
    except (KeyError, TypeError) as error:
        raise RunError(f"{run.folder}/run.json lacks {error}: begin anew with kgqa eval run.") from None


def settings_of(run: Run, given: Mapping[str, Any]) -> Settings:
    """The settings of a run, to go on with it: as they were, whatever is set today. What may hold keys comes from the
    user's own settings, as then, and so does what is `OF_THE_MACHINE`.

    Args:
        given: from the command line, before anything else.

    Raises:
        RunError: what may hold keys is not what it was. SettingsError: see `resolve`.
    """
    data = run.manifest
    named = data.get("settings")
    if not isinstance(named, dict):
        raise RunError(f"{run.folder}/run.json has no settings: begin anew with kgqa eval run.")
    named = {key: _located(run, value) if key in PATHS else value for key, value in named.items()}
    old = {key: named[key] for key in data.get("given", ()) if key in BY_KEY and key in named}
    old = {key: value for key, value in old.items() if key not in LEFT_OUT and value is not None}
    settings = resolve({**old, **{key: value for key, value in given.items() if value is not None}})
    values, origins = dict(settings.values), dict(settings.origins)
    for key in set(BY_KEY) & set(named) - {*LEFT_OUT, *OF_THE_MACHINE}:
        if given.get(key) is None and not _alike(values[key], named[key]):
            values[key], origins[key] = check(BY_KEY[key], named[key], "run.json"), "run.json"
    settings = Settings(values, origins, settings.local)
    secret = data.get("secret") or {}
    for key in LEFT_OUT:
        now = _digest(settings[key]) if settings[key] is not None else None
        if now != secret.get(key):
            raise RunError(f"{key} is not what it was when this run began. Set {BY_KEY[key].variable} to what it was.")
    return settings


def _located(run: Run, value: Any, *, kinds: Sequence[str] = ("replay", "vllm")) -> Any:
    """The path in a setting of a run, from where the run was begun if that is not here; else the value as it is.

    Args:
        kinds: of KIND:PATH.
    """
    base = run.manifest.get("working_folder")
    if not isinstance(value, str) or not isinstance(base, str) or "://" in value or base == os.getcwd():
        return value
    kind, colon, rest = value.partition(":")
    start, path = (kind + colon, rest.strip()) if colon and kind.strip() in kinds else ("", value.strip())
    try:
        there = Path(base, path)
        return f"{start}{there}" if path and not Path(path).is_absolute() and there.exists() else value
    except (OSError, ValueError):
        return value


def differences(run: Run, plan: Plan, settings: Settings) -> list[str]:
    """What a run was begun with that is not asked for now: names of settings, and of the plan's. Settings that nobody
    gave, then or now, are not looked at; `check_same` looks at the questions and the graph.
    """
    data = run.manifest
    found = [] if (data.get("dataset") or {}).get("source") == plan.dataset else ["dataset"]
    found += [name for name in ("topics", "sample", "seed", "shard", "losses") if data.get(name) != getattr(plan, name)]
    # what a method or a preset brings along a graph may have overruled
    unasked = ("default", "graph", settings["ask.method"], settings["ask.preset"])
    now = {key for key, origin in settings.origins.items() if origin not in unasked}
    named = data.get("settings") or {}
    for key in sorted({*now, *data.get("given", ())} & set(BY_KEY) - {*LEFT_OUT, *OF_THE_MACHINE}):
        if not _alike(without_address(key, settings[key]), without_address(key, named.get(key))):
            found.append(key)
    secret = data.get("secret") or {}
    return found + [k for k in LEFT_OUT if (None if settings[k] is None else _digest(settings[k])) != secret.get(k)]


def without_address(key: str, value: Any) -> Any:
    """A setting without the address it may have: the same model may be served elsewhere."""
    return str(value).rpartition("#")[2] if key == "llm.model" and value and "#" in str(value) else value


def _alike(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(other, sort_keys=True, default=str)


def check_same(run: Run, questions: Sequence[GoldQuestion], resources: Resources) -> list[str]:
    """Raises RunError where the questions or the graph are not those the run began with; returns what else differs."""
    data = run.manifest
    if data.get("dataset", {}).get("digest") != digest_of(questions):
        raise RunError(
            f"The questions of {data.get('dataset', {}).get('source')} are not those this run began with: "
            "begin anew with kgqa eval run."
        )
    before, now = (data.get("graph") or {}).get("fingerprint", ""), graph_id(resources.graph).fingerprint
    if before != now:
        raise RunError(
            f"The graph is not what it was when this run began (fingerprint {before or 'unknown'}, now "
            f"{now or 'unknown'}): begin anew with kgqa eval run."
        )
    notes = []
    prompts = {name: _digest(resources.prompts.get(name).source) for name in resources.prompts.names()}
    if changed := sorted(name for name in prompts if data.get("prompts", {}).get(name) not in (None, prompts[name])):
        notes.append(f"Prompts have changed since this run began: {', '.join(changed[:5])}.")
    if data.get("versions", {}).get("kgqa") != __version__:
        notes.append(f"This run was begun by kgqa {data.get('versions', {}).get('kgqa')}.")
    return notes


def gone_on_with(run: Run, resources: Resources, given: Mapping[str, Any], *, spent: float = 0.0) -> dict[str, Any]:
    """The object of run.json for a run that goes on: as it is, but what `given` settings change is noted, and what
    predictions cost (USD) that are taken out.
    """
    found = dict(run.manifest)
    if spent:
        found["forgotten_cost"] = found.get("forgotten_cost", 0.0) + spent
    old = found.get("settings") or {}
    changed = {key: resources.settings[key] for key, value in given.items() if value is not None}
    changed = {key: value for key, value in changed.items() if key not in OF_THE_MACHINE and value != old.get(key)}
    if changed:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        before = {key: old.get(key) for key in changed}
        found["changed"] = [*found.get("changed", []), {"at": now, "before": before, "now": changed}]
        found["settings"] = old | changed
        found["given"] = sorted({*found.get("given", ()), *changed})
        found["models"] = resources.models.stage_settings() if resources.models else None
    return found


def remember_own(manifest: Mapping[str, Any], settings: Settings) -> bool:
    """Note in the user's cache that this user began this run, so that its settings may be used again. False where the
    cache cannot be written.
    """
    cache = cache_of(settings)
    path = _own(cache, manifest)
    if not cache.write_text(path, ""):
        return False
    with suppress(OSError):  # on the disk before run.json is: nobody could tell whose that is
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return True


def is_own(manifest: Mapping[str, Any], settings: Settings) -> bool:
    """Whether this user began this run, with these settings: a run.json of somebody else could name a server that
    would be sent this user's key.
    """
    return _own(cache_of(settings), manifest).is_file()


def _own(cache: Cache, manifest: Mapping[str, Any]) -> Path:
    told = {key: manifest.get(key) for key in ("id", "settings", "given", "secret")}
    if "working_folder" in manifest:
        told["working_folder"] = manifest["working_folder"]
    return cache.entry("runs", _digest(told))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:32]


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
