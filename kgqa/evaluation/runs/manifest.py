"""The manifest of a run (run.json): everything that determines the answers, without secrets."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.datasets.registry import dataset_names
from kgqa.evaluation.runs.plan import RunPlan, Selection
from kgqa.evaluation.runs.run_files import FORMAT, Run, RunError
from kgqa.llm.prompts import Prompts
from kgqa.methods.ask import cache_of, graph_id
from kgqa.methods.registry import asked_in_order
from kgqa.methods.resources import Resources
from kgqa.plugins import known_settings, plugin_names
from kgqa.settings.setting import check
from kgqa.settings.setting import settings_of as settings_in
from kgqa.settings.table import ServeSettings
from kgqa.settings.values import Settings, resolve
from kgqa.storage.cache import Cache
from kgqa.text.hints import Command
from kgqa.version import __version__

PACKAGES = ("pyoxigraph", "openai", "vllm", "sentence-transformers", "onnxruntime", "numpy", "jinja2", "urllib3")
SECRET_SETTINGS = ("llm.extra_body", "llm.stages")
"""Settings that may contain API keys; run.json contains only digests of their values."""
SERVICE_SETTINGS = tuple(settings_in(ServeSettings))
"""Settings of `kgqa serve`, among them its tokens; run.json does not contain them."""
MACHINE_SETTINGS = (
    *("cache.folder", "llm.concurrency", "llm.timeout", "llm.retries", "endpoint.user"),
    *("endpoint.concurrency", "endpoint.rate", "endpoint.contact", "endpoint.cache"),
    *SERVICE_SETTINGS,
)
"""Settings that depend on the machine and do not change the answers."""
PATH_SETTINGS = (
    *("graph.path", "graph.schema", "rank.ranker", "rank.model", "llm.model", "llm.replay", "llm.prompts"),
    *("llm.prices", "evograph.images"),
)
"""Settings whose values may be paths."""


def new_manifest(plan: RunPlan, selection: Selection, resources: Resources) -> dict[str, Any]:
    """Build the object of run.json for a new run; for a graph on a server, the triples are counted."""
    settings = resources.settings
    graph = graph_id(resources.graph)
    return {
        "format": FORMAT,
        "id": secrets.token_hex(8),
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
        "working_folder": os.getcwd(),
        "method": settings.ask.method,
        "dataset": {
            "source": plan.dataset,
            "questions": len(selection.questions),
            "digest": questions_digest(selection.questions),
            "whole": questions_digest(selection.all_shards),
        },
        "topics": plan.topics,
        "sample": plan.sample,
        "seed": plan.seed,
        "shard": plan.shard,
        "concurrency": 1 if asked_in_order(settings) else plan.in_flight,
        "in_order": asked_in_order(settings),
        "losses": plan.losses,
        "rollouts": plan.rollouts,
        "most_cost": plan.budget,
        "graph": to_builtins(graph),
        "models": resources.models.stage_settings() if resources.models else None,
        "embeddings": resources.encoder.name if resources.encoder else None,
        "settings": {
            key: value
            for key, value in settings.values.items()
            if key not in SECRET_SETTINGS and key not in SERVICE_SETTINGS
        },
        "given": sorted(key for key, origin in settings.origins.items() if origin not in ("default", "graph")),
        "secret": _secret_digests(settings),
        "prompts": prompt_digests(resources.prompts),
        "versions": {"kgqa": __version__, "python": platform.python_version(), **_versions()},
    }


def questions_digest(questions: Sequence[GoldQuestion]) -> str:
    """Compute a digest of the ids, texts, topics and gold answers of questions."""
    whole = hashlib.sha256()
    for question in questions:
        gold = [[[a.id, a.name, a.datatype] for a in reading] for reading in question.readings]
        whole.update(json.dumps([question.id, question.text, question.topics, gold]).encode())
    return whole.hexdigest()[:32]


def plan_of(run: Run) -> RunPlan:
    """Read the plan of a run from its run.json.

    Raises:
        RunError: a key of the plan is missing.
    """
    data = run.manifest
    try:
        return RunPlan(
            dataset=_located(run, str(data["dataset"]["source"]), kinds=dataset_names()),
            topics=data["topics"],
            sample=data["sample"],
            seed=data["seed"],
            shard=data["shard"],
            concurrency=data["concurrency"],
            losses=data["losses"],
            budget=data["most_cost"],
            rollouts=data.get("rollouts", 1),
        )
    except (KeyError, TypeError) as error:
        raise RunError(f"{run.folder}/run.json has no key {error}.", "Start a new run: ", Command("eval run")) from None


def settings_of(run: Run, given: Mapping[str, Any]) -> Settings:
    """Restore the settings with which a run was created.

    Only `SECRET_SETTINGS` and `MACHINE_SETTINGS` are taken from the user's current settings.

    Args:
        given: settings by key; they take precedence over all others.

    Raises:
        RunError: a setting of `SECRET_SETTINGS` has changed.
        SettingsError: see `resolve`.
    """
    data = run.manifest
    named = data.get("settings")
    if not isinstance(named, dict):
        raise RunError(f"{run.folder}/run.json has no settings.", "Start a new run: ", Command("eval run"))
    kinds = path_kinds()
    named = {key: _located(run, value, kinds=kinds) if key in PATH_SETTINGS else value for key, value in named.items()}
    table, _ = known_settings(named)
    old = {key: named[key] for key in data.get("given", ()) if key in table and key in named and not table[key].variant}
    old = {key: value for key, value in old.items() if key not in SECRET_SETTINGS and value is not None}
    settings = resolve({**old, **{key: value for key, value in given.items() if value is not None}})
    values, origins = dict(settings.values), dict(settings.origins)
    for key in settings.table.keys() & named.keys() - {*SECRET_SETTINGS, *MACHINE_SETTINGS}:
        if given.get(key) is None and not _alike(values[key], named[key]):
            values[key], origins[key] = check(table[key], named[key], "run.json"), "run.json"
    settings = replace(settings, values=values, origins=origins)
    before, now = data.get("secret") or {}, _secret_digests(settings)
    for key in SECRET_SETTINGS:
        if now.get(key) != before.get(key):
            raise RunError(
                f"{key} has changed since the run was created.", f"Set {table[key].variable} to the old value"
            )
    return settings


def path_kinds() -> tuple[str, ...]:
    """Return the kinds that are followed by a path, in values of settings of the form KIND:PATH."""
    return ("replay", "vllm", *plugin_names("store"))


def _located(run: Run, value: Any, *, kinds: Sequence[str] = ()) -> Any:
    """Resolve relative paths in a setting against the working folder in which the run was created.

    Args:
        value: the value of the setting.
        kinds: see `path_kinds`.
    """
    base = run.manifest.get("working_folder")
    return located(value, base, kinds=kinds) if isinstance(base, str) and base != os.getcwd() else value


def located(value: Any, base: str, *, kinds: Sequence[str] = ()) -> Any:
    """Resolve a relative path in a setting against the folder `base`, if it exists there; `kinds`: see `path_kinds`."""
    if not isinstance(value, str) or "://" in value:
        return value
    kind, colon, rest = value.partition(":")
    prefix, path = (kind + colon, rest.strip()) if colon and kind.strip() in kinds else ("", value.strip())
    try:
        there = Path(base, path)
        return f"{prefix}{there}" if path and not Path(path).is_absolute() and there.exists() else value
    except (OSError, ValueError):
        return value


def differences(run: Run, plan: RunPlan, settings: Settings) -> list[str]:
    """List the settings and parts of the plan in which an existing run differs from a run that is to be started.

    Settings that have their default value in both runs are ignored. `notes_on_changes` compares questions and graph.
    """
    data = run.manifest
    found = [] if (data.get("dataset") or {}).get("source") == plan.dataset else ["dataset"]
    found += [name for name in ("topics", "sample", "seed", "shard", "losses") if data.get(name) != getattr(plan, name)]
    found += ["rollouts"] if data.get("rollouts", 1) != plan.rollouts else []
    # the settings of a graph take precedence over those of a method or a preset
    unasked = ("default", "graph", settings.ask.method, settings.ask.preset)
    now = {key for key, origin in settings.origins.items() if origin not in unasked}
    named = data.get("settings") or {}
    for key in sorted({*now, *data.get("given", ())} & settings.table.keys() - {*SECRET_SETTINGS, *MACHINE_SETTINGS}):
        if not _alike(without_address(key, settings.values[key]), without_address(key, named.get(key))):
            found.append(key)
    before, after = data.get("secret") or {}, _secret_digests(settings)
    return found + [key for key in SECRET_SETTINGS if after.get(key) != before.get(key)]


def without_address(key: str, value: Any) -> Any:
    """Return the value of a setting; for `llm.model` without the address, because it may change."""
    return str(value).rpartition("#")[2] if key == "llm.model" and value and "#" in str(value) else value


def _alike(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(other, sort_keys=True, default=str)


def notes_on_changes(run: Run, questions: Sequence[GoldQuestion], resources: Resources) -> list[str]:
    """Check that questions and graph have not changed since the run was created; return notes about other changes.

    Raises:
        RunError: the questions or the graph have changed.
    """
    data = run.manifest
    if data.get("dataset", {}).get("digest") != questions_digest(questions):
        raise RunError(
            f"The questions of {data.get('dataset', {}).get('source')} have changed since the run was created.",
            "Start a new run: ",
            Command("eval run"),
        )
    before, now = (data.get("graph") or {}).get("fingerprint", ""), graph_id(resources.graph).fingerprint
    if before != now and not data.get("in_order"):  # questions asked in order may change the graph
        raise RunError(
            f"The graph has changed since the run was created (fingerprint {before or 'unknown'}, now "
            f"{now or 'unknown'}).",
            "Start a new run: ",
            Command("eval run"),
        )
    notes = []
    prompts = prompt_digests(resources.prompts)
    if changed := sorted(name for name in prompts if data.get("prompts", {}).get(name) not in (None, prompts[name])):
        notes.append(f"These prompts have changed since the run was created: {', '.join(changed[:5])}.")
    if data.get("versions", {}).get("kgqa") != __version__:
        notes.append(
            f"The run was created by kgqa {data.get('versions', {}).get('kgqa')} and is resumed by {__version__}."
        )
    return notes


def resumed_manifest(run: Run, resources: Resources, given: Mapping[str, Any], *, spent: float = 0.0) -> dict[str, Any]:
    """Build the object of run.json for a resumed run.

    Args:
        given: new settings by key; they are recorded under the key `changed`.
        spent: cost in USD of predictions that were removed.
    """
    found = dict(run.manifest)
    if spent:
        found["forgotten_cost"] = found.get("forgotten_cost", 0.0) + spent
    old = found.get("settings") or {}
    changed = {key: resources.settings.values[key] for key, value in given.items() if value is not None}
    changed = {key: value for key, value in changed.items() if key not in MACHINE_SETTINGS and value != old.get(key)}
    if changed:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        before = {key: old.get(key) for key in changed}
        found["changed"] = [*found.get("changed", []), {"at": now, "before": before, "now": changed}]
        found["settings"] = old | changed
        found["given"] = sorted({*found.get("given", ()), *changed})
        found["models"] = resources.models.stage_settings() if resources.models else None
    return found


def record_ownership(manifest: Mapping[str, Any], settings: Settings) -> bool:
    """Record in the user's cache that this user created the run; later, `resume` trusts the settings of the run.

    Returns:
        False if the cache cannot be written.
    """
    cache = cache_of(settings)
    path = _ownership_file(cache, manifest)
    if not cache.write_text(path, ""):
        return False
    with suppress(
        OSError
    ):  # synced before run.json is written, because resuming a run without this record requires --trust
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return True


def is_own_run(manifest: Mapping[str, Any], settings: Settings) -> bool:
    """Whether this user created the run.

    Resuming another user's run could send this user's API key to a server given in its run.json.
    """
    return _ownership_file(cache_of(settings), manifest).is_file()


def _ownership_file(cache: Cache, manifest: Mapping[str, Any]) -> Path:
    identity = {key: manifest.get(key) for key in ("id", "settings", "given", "secret")}
    if "working_folder" in manifest:
        identity["working_folder"] = manifest["working_folder"]
    return cache.entry("runs", digest(identity))


def prompt_digests(prompts: Prompts) -> dict[str, str]:
    """Compute a digest of each prompt, by name."""
    return {name: digest(prompts.get(name).source) for name in prompts.names()}


def _secret_digests(settings: Settings) -> dict[str, str]:
    return {key: digest(settings.values[key]) for key in SECRET_SETTINGS if settings.values[key] is not None}


def digest(value: Any) -> str:
    """Compute a digest of a value that can be written as JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:32]


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
