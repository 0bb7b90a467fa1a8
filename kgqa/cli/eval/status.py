"""`kgqa eval status`: show the progress of a run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from kgqa.cli.eval.console import SHOWN_METRICS, progress_text
from kgqa.cli.options import JSON, print_result, verbosity_options
from kgqa.evaluation.runs.progress import RunProgress
from kgqa.evaluation.runs.remaining import resume_command
from kgqa.evaluation.runs.run_files import LOCK, open_runs
from kgqa.lock_files import held
from kgqa.words import clean_line


@click.command("status")
@click.argument("folder", type=click.Path(path_type=Path))
@JSON
@verbosity_options
def command(folder: Path, as_json: bool) -> None:
    """Show the progress of a run, the failed questions, and the scores so far."""
    found, texts = [], []
    runs = open_runs(folder)
    several = runs[0].folder != folder
    for run in runs:
        progress = RunProgress(total=run.questions)
        for record in run.records():
            progress.add(record, asked=False)
        found.append(
            {
                "run": str(run.folder),
                "method": run.name,
                "questions": progress.total,
                "done": progress.done,
                "running": held(run.folder / LOCK),
                "waiting": several and held(folder / LOCK),
                "statuses": dict(progress.statuses),
                "failures": dict(progress.failures),
                "lost": dict(progress.lost),
                "scores": {name: progress.mean(name) for name in SHOWN_METRICS},
                "cost": progress.cost,
            }
        )
        texts.append(_status_text(found[-1], progress))
    print_result(as_json, found, texts)


def _status_text(status: dict[str, Any], progress: RunProgress) -> str:
    states = {"running": status["running"], "done": progress.complete, "waiting": status["waiting"], "stopped": True}
    state = next(name for name, applies in states.items() if applies)
    resume = resume_command(Path(status["run"]))
    lines = [f"{status['run']}  {status['method']}: {status['done']:,} of {status['questions']:,} questions, {state}"]
    if progress.done:
        lines += [f"  so far  {progress_text(progress)}", f"  status  {_counts(progress.statuses)}"]
    if progress.failures:
        lines += [f"  failed  {_counts(progress.failures)}", f"  retry   {resume} --retry failed"]
    if state == "stopped":
        lines.append(f"  resume  {resume}")
    return "\n".join(map(clean_line, lines))  # the folder may come from an untrusted source


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
