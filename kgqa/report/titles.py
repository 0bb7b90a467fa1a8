"""Titles of runs: the method of each run, and all in which the runs of a report differ.

For example `top-2, Qwen3-32B, seed 1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kgqa.evaluation.runs.manifest import MACHINE_SETTINGS
from kgqa.evaluation.runs.run_files import Run
from kgqa.plugins import method_extension
from kgqa.report.lenient_json import object_of, text_of
from kgqa.settings.table import own_settings
from kgqa.settings.values import preset_names
from kgqa.text.words import clean

MAX_SETTINGS = 4
"""Maximum number of settings in a title; further ones are counted."""
_ELSEWHERE = {"ask.method", "ask.preset", "llm.model", "rank.seed", "graph.path", "graph.schema", *MACHINE_SETTINGS}
"""Settings that a title names in another way, or that do not change the answers."""
_DEFAULTS = {key: setting.default for key, setting in own_settings().items()}
_ENDING = re.compile(r"\.(jsonl?|toml|csv|tsv|txt|parquet)(\.gz)?\Z", re.IGNORECASE)


def run_titles(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return a distinct title for each run: its method, and each property in which the runs differ."""
    parts = [[clean(run.name) or "run"] for run in runs]
    for short, whole in _PROPERTIES:
        values = [short(run.manifest) for run in runs]
        if len(set(values)) == 1:
            values = [whole(run.manifest) for run in runs]
        if len(set(values)) > 1:
            for each, value in zip(parts, values):
                each.append(value)
    for each, words in zip(parts, _differing_settings(runs)):
        each.extend(words)
    titles = [", ".join(filter(None, map(clean, each))) for each in parts]
    named = [
        f"{title} ({clean(_folder_name(run))})" if titles.count(title) > 1 else title
        for title, run in zip(titles, runs)
    ]
    return tuple(
        f"{title} #{named[: place + 1].count(title)}" if title in named[:place] else title
        for place, title in enumerate(named)
    )


def model_names(described: Any) -> str:
    """Collect the names of language models from the output of `Models.described`: a string, or an object per stage."""
    if isinstance(described, Mapping):
        found = [
            model_names(each)
            for key, each in described.items()
            if isinstance(each, Mapping) or key in ("name", "model")
        ]
        return ", ".join(dict.fromkeys(each for each in found if each))
    if isinstance(described, list):
        return ", ".join(dict.fromkeys(filter(None, map(model_names, described))))
    return text_of(described)


def _folder_name(run: Run) -> str:
    return run.folder.parent.name if run.folder.name == run.name else run.folder.name


Words = Callable[[Mapping[str, Any]], str]


def _models(manifest: Mapping[str, Any]) -> str:
    names = filter(None, model_names(manifest.get("models")).split(", "))
    return "+".join(dict.fromkeys(name.rstrip("/").rpartition("/")[2] for name in names)) or "no model"


def _models_whole(manifest: Mapping[str, Any]) -> str:
    return model_names(manifest.get("models"))


def _dataset(manifest: Mapping[str, Any]) -> str:
    source = text_of(object_of(manifest.get("dataset")).get("source"))
    return _ENDING.sub("", source.rstrip("/").rpartition("/")[2])


def _dataset_whole(manifest: Mapping[str, Any]) -> str:
    return text_of(object_of(manifest.get("dataset")).get("source"))


def _graph(manifest: Mapping[str, Any]) -> str:
    graph = object_of(manifest.get("graph"))
    place = text_of(graph.get("place")).rstrip("/").rpartition("/")[2]
    return f"graph {place}" if place else ""


def _graph_whole(manifest: Mapping[str, Any]) -> str:
    fingerprint = text_of(object_of(manifest.get("graph")).get("fingerprint"))
    return f"graph {fingerprint[:12]}" if fingerprint else ""


def _topics(manifest: Mapping[str, Any]) -> str:
    """Name the choice of topics; `gold` takes those of the data set, which need not have any."""
    return {"gold": "topics as given", "linked": "topics linked"}.get(text_of(manifest.get("topics")), "")


def _worded(key: str, prefix: str, without: str = "") -> Words:
    def words(manifest: Mapping[str, Any]) -> str:
        value = text_of(manifest.get(key))
        return f"{prefix} {value}" if value else without

    return words


_PROPERTIES: tuple[tuple[Words, Words], ...] = (
    (_models, _models_whole),
    (_dataset, _dataset_whole),
    (_graph, _graph_whole),
    (_topics, _topics),
    *(
        (_worded(key, words, without),) * 2
        for key, words, without in (
            ("seed", "seed", ""),
            ("sample", "sample", "whole data set"),
            ("shard", "shard", ""),
            ("rollouts", "rollouts", ""),
        )
    ),
)  # fmt: skip
"""What a title may name of run.json: the short words, and the words that are used if the short ones are equal."""


def _differing_settings(runs: Sequence[Run]) -> list[list[str]]:
    """Return for each run the settings in which the runs differ, except what follows from their methods."""
    settings = [object_of(run.manifest.get("settings")) for run in runs]
    if not all(settings):
        return [[] for _ in runs]
    usual = [_usual(each) for each in settings]
    chosen = {
        key
        for each, default in zip(settings, usual)
        for key, value in each.items()
        if key not in _ELSEWHERE and value != default.get(key)
    }
    keys = sorted(key for key in chosen if len({_worded_value(each.get(key)) for each in settings}) > 1)
    last = [key.rpartition(".")[2].replace("_", " ") for key in keys]
    names = [name if last.count(name) == 1 else key for name, key in zip(last, keys)]
    more = len(keys) - MAX_SETTINGS
    rest = [f"{more} more {'setting' if more == 1 else 'settings'}"] if more > 0 else []
    return [
        [f"{name} {_worded_value(each.get(key))}" for name, key in list(zip(names, keys))[:MAX_SETTINGS]] + rest
        for each in settings
    ]


def _usual(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that settings have if nobody sets them: the defaults, changed by the method and its preset."""
    presets = method_extension(text_of(settings.get("ask.method"))).presets
    usual = {**_DEFAULTS, **presets.get("ours", {})}
    for name in preset_names(text_of(settings.get("ask.preset"))):
        usual |= presets.get(name, {})
    return usual


def _worded_value(value: Any) -> str:
    if value is None:
        return "not set"
    return str(value).lower() if isinstance(value, bool) else clean(str(value))[:60]
