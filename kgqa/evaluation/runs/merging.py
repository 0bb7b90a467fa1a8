"""Merging the shards of a run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from kgqa.evaluation.analysis.aggregate import summary_of
from kgqa.evaluation.runs.manifest import MACHINE_SETTINGS, without_address
from kgqa.evaluation.runs.outages import outage_class, tolerable
from kgqa.evaluation.runs.plan import parse_shard
from kgqa.evaluation.runs.run_files import METRICS, Run, RunError, open_run
from kgqa.evaluation.runs.run_folder import create_run
from kgqa.text.hints import Command

SHARD_KEYS = (
    "id", "begun", "shard", "concurrency", "most_cost", "dataset", "versions", "graph", "settings", "given", "models",
    "forgotten_cost", "changed", "working_folder",
)  # fmt: skip
"""Keys of run.json that may differ between shards; parts of `graph` and `settings` are compared separately."""
BATCH_RECORDS = 500


def merge_runs(folders: Sequence[Path], out: Path) -> Run:
    """Merge all shards of a run into one run.

    Raises:
        RunError: a shard is missing, unfinished or from a different run, or two shards contain the same question.
    """
    runs = [open_run(folder) for folder in folders]
    first = runs[0]
    for run in runs[1:]:
        if differs := _difference(first.manifest, run.manifest):
            raise RunError(
                f"{first.folder} and {run.folder} are not shards of one run, because {', '.join(differs)} differ."
            )
    _check_whole(runs)
    seen: dict[str, Path] = {}
    for run in runs:
        for record in run.records():
            if record.id in seen:
                raise RunError(
                    f"{seen[record.id]} and {run.folder} both contain question {record.id}.", "Leave out one folder"
                )
            seen[record.id] = run.folder
    dataset = first.manifest["dataset"]
    manifest: dict[str, Any] = {
        **first.manifest,
        "shard": "",
        "merged": [run.manifest.get("id") for run in runs],
        "dataset": {**dataset, "questions": sum(run.questions for run in runs), "digest": dataset.get("whole", "")},
        "forgotten_cost": sum(run.manifest.get("forgotten_cost", 0.0) for run in runs),
    }
    with create_run(out, manifest) as folder:
        for run in runs:
            records = run.records()
            while some := list(islice(records, BATCH_RECORDS)):
                folder.append(some)
        merged = open_run(out)
        folder.write(METRICS, summary_of(merged.records()))
    return merged


def _check_whole(runs: Sequence[Run]) -> None:
    """Raise RunError if a shard is missing or unfinished."""
    shards = [str(run.manifest.get("shard") or "") for run in runs]
    if len(runs) > 1 and not all(shards):
        alone = runs[shards.index("")].folder
        raise RunError(
            f"{alone} is not a shard and cannot be merged.",
            "Create shards with: ",
            Command("eval run", shard=f"1/{len(runs)}"),
            " ...",
        )
    if all(shards):
        numbers = {parse_shard(shard) for shard in shards}
        counts = {count for _, count in numbers}
        missing = sorted({(place, max(counts)) for place in range(1, max(counts) + 1)} - numbers)
        there = ", ".join(sorted(shards))
        if len(counts) > 1:
            raise RunError(f"The shards belong to several runs: {there}.", "Give only shards of one run")
        if missing:
            lacking = ", ".join(f"{i}/{n}" for i, n in missing[:10])
            raise RunError(f"Shards are missing: {lacking}. Given are {there}; add the folders of the missing shards")
    for run in runs:
        classes = [outage_class(record) for record in run.records()]
        lost = len(list(filter(None, classes)))
        done = len(classes) if tolerable(lost, run.questions) else len(classes) - lost
        if done < run.questions:
            raise RunError(
                f"{run.folder} is not finished: {done:,} of {run.questions:,} questions are done.",
                "Ask the others: ",
                Command("eval resume", run.folder),
            )


def _difference(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    found = {key for key in {*one, *other} - {*SHARD_KEYS} if one.get(key) != other.get(key)}
    for part, key in (("dataset", "whole"), ("graph", "fingerprint"), ("graph", "schema")):
        if (one.get(part) or {}).get(key) != (other.get(part) or {}).get(key):
            found.add(part)
    settings = [each.get("settings") or {} for each in (one, other)]
    for key in {*settings[0], *settings[1]} - {*MACHINE_SETTINGS, "graph.path", "rank.seed"}:
        if without_address(key, settings[0].get(key)) != without_address(key, settings[1].get(key)):
            found.add(key)
    return sorted(found)
