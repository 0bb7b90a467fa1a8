"""Prints the scores of runs."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.answer_json import json_text
from kgqa.evaluation.runs.progress import RunProgress
from kgqa.evaluation.runs.run_files import Run
from kgqa.report.comparison import compare
from kgqa.report.tables import as_text

SHOWN_METRICS = ("hit@1", "f1", "em")


def print_results(runs: Sequence[Run], as_json: bool) -> None:
    """Print the scores of all runs as one table; with `as_json`, print one JSON object per line."""
    if as_json:
        for run in runs:
            print(json_text({"run": str(run.folder), "method": run.name, **run.metrics()}))
    else:
        print(as_text(compare(runs)))


def progress_text(progress: RunProgress) -> str:
    """Format the scores so far, the cost, and the most frequent failures."""
    parts = [f"{name} {100 * progress.mean(name):.1f}" for name in SHOWN_METRICS]
    if progress.cost is not None:
        parts.append(f"{progress.cost:.3f} USD")
    parts += [f"{name} {count}" for name, count in progress.failures.most_common(3)]
    return ", ".join(parts)
