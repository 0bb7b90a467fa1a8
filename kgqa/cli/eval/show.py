"""How `kgqa eval` shows a run: progress while it lasts, how far it is, and what came out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgqa.cli.options import say, verbosity
from kgqa.words import clean_line

if TYPE_CHECKING:
    from kgqa.evaluation.runs.run_files import Run
    from kgqa.evaluation.runs.runner import Progress

SHOWN = ("hit@1", "f1", "em")


class Bar:
    """Progress: done, rate, time left, running scores, cost, failures by class. On a terminal only; elsewhere a line for
    every tenth.
    """

    def __init__(self, progress: Progress, label: str = "") -> None:
        self._progress = progress
        self._label = label
        self._bar: Any = None
        self._said = 0
        self.estimated = False

    def __enter__(self) -> Bar:
        from tqdm import tqdm

        if verbosity() >= 0:
            total, done = self._progress.total, self._progress.done
            named = clean_line(self._label.removesuffix(": ")) or None
            self._bar = tqdm(
                total=total, initial=done, desc=named, unit="q", disable=None, file=sys.stderr, smoothing=0.05
            )
            self._said = 10 * done // max(1, total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, progress: Progress) -> None:
        if self._bar is None:
            return
        text = _running(progress)
        if self._bar.disable:
            tenth = 10 * progress.done // max(1, progress.total)
            if tenth > self._said:
                self._said = tenth
                say(f"kgqa: {self._label}{progress.done:,} of {progress.total:,}: {text}")
            return
        self._bar.set_postfix_str(clean_line(text), refresh=False)
        self._bar.update(progress.done - self._bar.n)

    def say(self, text: str) -> None:
        if self._bar is not None and not self._bar.disable:
            self._bar.write(clean_line(text), file=sys.stderr)
        else:
            say(text)


def _running(progress: Progress) -> str:
    parts = [f"{name} {100 * progress.mean(name):.1f}" for name in SHOWN]
    if progress.cost is not None:
        parts.append(f"{progress.cost:.3f} USD")
    parts += [f"{name} {count}" for name, count in progress.failures.most_common(3)]
    return ", ".join(parts)


def show(runs: Sequence[Run], as_json: bool) -> None:
    """Print how right runs are: a table of all, or an object a line."""
    from kgqa.answer_json import json_text
    from kgqa.report.comparison import compare
    from kgqa.report.tables import as_text

    if as_json:
        for run in runs:
            print(json_text({"run": str(run.folder), "method": run.name, **run.metrics()}))
    else:
        print(as_text(compare(runs)))


def show_status(path: Path, as_json: bool) -> int:
    from kgqa.answer_json import json_text
    from kgqa.evaluation.runs.run_files import LOCK, open_runs
    from kgqa.evaluation.runs.runner import Progress
    from kgqa.lock_files import held

    found = []
    runs = open_runs(path)
    several = runs[0].folder != path
    for run in runs:
        progress = Progress(total=run.questions)
        for record in run.records():
            progress.add(record, asked=False)
        found.append(
            {
                "run": str(run.folder),
                "method": run.name,
                "questions": progress.total,
                "done": progress.done,
                "running": held(run.folder / LOCK),
                "waiting": several and held(path / LOCK),
                "statuses": dict(progress.statuses),
                "failures": dict(progress.failures),
                "lost": dict(progress.lost),
                "scores": {name: progress.mean(name) for name in SHOWN},
                "cost": progress.cost,
            }
        )
        if not as_json:
            _print_status(found[-1], progress)
    if as_json:
        print(json_text(found, indent=2))
    return 0


def _print_status(line: dict[str, Any], progress: Progress) -> None:
    done = progress.whole
    state = "running" if line["running"] else "done" if done else "waiting" if line["waiting"] else "stopped"
    lines = [f"{line['run']}  {line['method']}: {line['done']:,} of {line['questions']:,} questions, {state}"]
    if progress.done:
        lines.append(f"  so far  {_running(progress)}")
        lines.append("  status  " + ", ".join(f"{name} {count:,}" for name, count in progress.statuses.most_common()))
    if progress.failures:
        lines.append("  failed  " + ", ".join(f"{name} {count:,}" for name, count in progress.failures.most_common()))
        lines.append(f"  again   {way(Path(line['run']))} --retry failed")
    if state == "stopped":
        lines.append(f"  go on   {way(Path(line['run']))}")
    print("\n".join(map(clean_line, lines)))  # names and classes come from a folder that anybody may have written


def estimate(progress: Progress, concurrency: int) -> str:
    """What the rest will take, from what was asked so far."""
    left = progress.total - progress.done
    # a few questions keep only a few of the threads busy
    lanes = min(progress.asked, concurrency) / concurrency
    seconds = progress.seconds / max(1, progress.asked) * left * lanes
    cost = "" if progress.cost is None else f" and {progress.cost / max(1, progress.done) * left:.2f} USD"
    return f"Judged by the first {progress.asked} questions, the other {left:,} take about {_duration(seconds)}{cost}."


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def way(path: Path) -> str:
    """The command that goes on with a run."""
    return f"kgqa eval resume {path}"
