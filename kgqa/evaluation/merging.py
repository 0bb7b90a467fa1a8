"""Puts the shards of a run together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from kgqa.evaluation.aggregate import summary_of
from kgqa.evaluation.run_folder import begun
from kgqa.evaluation.runs import METRICS, Run, RunError, open_run

OWN = ("id", "begun", "shard", "concurrency", "most_cost", "dataset", "versions")
"""What may differ between the parts of one run."""
AT_ONCE = 500


def merged(folders: Sequence[Path], out: Path) -> Run:
    """Write one run with the predictions of all, one a question.

    Raises:
        RunError: they are not parts of one run, or a question stands in two of them.
    """
    runs = [open_run(folder) for folder in folders]
    first = runs[0]
    for run in runs[1:]:
        if differs := _difference(first.manifest, run.manifest):
            raise RunError(f"{first.folder} and {run.folder} are no parts of one run: {', '.join(differs)} differ.")
    seen: dict[str, Path] = {}
    for run in runs:
        for record in run.records():
            if record.id in seen:
                raise RunError(f"{record.id} stands in {seen[record.id]} and in {run.folder}: leave one of them out.")
            seen[record.id] = run.folder
    sources = {str((run.manifest.get("dataset") or {}).get("source")) for run in runs}
    if len(sources) > 1:
        raise RunError(f"These are runs of several data sets: {', '.join(sorted(sources))}.")
    total = sum(int((run.manifest.get("dataset") or {}).get("questions", 0)) for run in runs)
    manifest: dict[str, Any] = {
        **first.manifest,
        "shard": "",
        "merged": [run.manifest.get("id") for run in runs],
        "dataset": {**first.manifest["dataset"], "questions": total, "digest": ""},
    }
    with begun(out, manifest) as folder:
        for run in runs:
            records = run.records()
            while some := list(islice(records, AT_ONCE)):
                folder.append(some)
        whole = open_run(out)
        folder.write(METRICS, summary_of(whole.records()))
    return whole


def _difference(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return sorted(key for key in {*one, *other} - {*OWN} if one.get(key) != other.get(key))
