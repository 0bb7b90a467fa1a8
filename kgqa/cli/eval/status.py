"""`kgqa eval status`: show the progress of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from kgqa.cli.eval.console import SHOWN_METRICS, progress_text, shown_metrics
from kgqa.cli.options import JSON, print_result, verbosity_options
from kgqa.evaluation.metrics.retrieval import CUTS, RetrievalTable
from kgqa.evaluation.runs.progress import RunProgress
from kgqa.evaluation.runs.remaining import resume_command
from kgqa.evaluation.runs.run_files import LOCK, open_runs
from kgqa.storage.lock_files import held
from kgqa.text.words import safe_text


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
        retrieval, losses = RetrievalTable(), Counter[str]()
        for record in run.records():
            progress.add(record, asked=False)
            retrieval.add(record.answer.get("trace") or (), record.support)
            losses.update([record.loss] if record.loss else [])
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
                "losses": dict(losses),
                "scores": {
                    name: progress.mean(name) if progress.scored else None
                    for name in dict.fromkeys([*SHOWN_METRICS, *shown_metrics(progress)])
                },
                "cost": progress.cost,
                "retrieval": retrieval.summary("normal"),
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
        lines += [f"  passages  {retrieval_text(found)}"] if (found := status["retrieval"]) else []
        lines += [f"  losses  {_counts(Counter(losses))}"] if (losses := status["losses"]) else []
    if progress.failures:
        lines += [f"  failed  {_counts(progress.failures)}", f"  retry   {resume} --retry failed"]
    if state == "stopped":
        lines.append(f"  resume  {resume}")
    return "\n".join(
        safe_text(" ".join(line.splitlines())) for line in lines
    )  # the folder may come from an untrusted source


def retrieval_text(retrieval: Mapping[str, Any]) -> str:
    """Format the recall of supporting passages: in the first k pieces, and after each step."""
    parts = [
        f"recall{k} {_percent(retrieval[f'recall{k}']['value'])}, full chain{k} "
        f"{_percent(retrieval[f'full_chain{k}']['value'])}"
        for k in (*(f"@{k}" for k in CUTS), "")
    ]
    steps = [_percent(step["recall"]) for step in retrieval["by_step"]]
    return "; ".join([*parts, *([f"recall after each step {', '.join(steps)}"] if len(steps) > 1 else [])])


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
