"""Console output of `kgqa eval`: scores, progress, estimates, Ctrl-C, and the exit code."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from kgqa.cli.bars import open_bar
from kgqa.cli.options import note_printer, say, verbosity
from kgqa.evaluation.runs.progress import Estimate, RunObserver, RunProgress, RunResult, StopSignal
from kgqa.evaluation.runs.remaining import FIRST_QUESTIONS, resume_command
from kgqa.evaluation.runs.run_files import Run
from kgqa.report.comparison import compare
from kgqa.report.tables import as_text, main_metrics
from kgqa.storage.answer_json import json_text
from kgqa.text.words import clean, counted

SHOWN_METRICS = ("hit@1", "f1", "em")
SHOWN_OF_TEXTS = ("token_em", "token_f1", "substring_em")
"""Metrics shown for methods that write a response; their answers are texts, not nodes."""


def shown_metrics(progress: RunProgress) -> tuple[str, ...]:
    """Return the names of the metrics that are shown while a run goes on."""
    return SHOWN_OF_TEXTS if progress.responses else SHOWN_METRICS


def print_results(runs: Sequence[Run], as_json: bool) -> None:
    """Print the main metrics of all runs as one table; with `as_json`, print one JSON object per line."""
    if as_json:
        for run in runs:
            print(json_text({"run": str(run.folder), "method": run.name, **run.metrics()}))
    else:
        print(as_text(main_metrics(compare(runs), brief=verbosity() < 0)))


def say_next_steps(folder: Path) -> None:
    """Print the commands that show what is in the folder of a run, or of several runs."""
    run = shlex.quote(str(folder))
    report = shlex.quote(str(folder.with_name(f"{folder.name}-report") if folder.name else folder / "report"))
    say(f"kgqa: See every question in a browser: kgqa report {run} --html {report}")
    say(f"kgqa: Every metric: kgqa report {run} --all-metrics")
    say(f"kgqa: Failures, losses and costs: kgqa eval status {run}")


def progress_text(progress: RunProgress) -> str:
    """Format the scores so far, the cost, and the most frequent failures; without gold answers, there are no scores."""
    shown = shown_metrics(progress) if progress.scored else ()
    parts = [f"{name} {100 * progress.mean(name):.1f}" for name in shown] or ["no gold answers"]
    if progress.cost is not None:
        parts.append(f"{progress.cost:.3f} USD")
    parts += [f"{name} {count}" for name, count in progress.failures.most_common(3)]
    return ", ".join(parts)


EXIT_STOPPED = 3
EXIT_INTERRUPTED = 130


def exit_code(results: Sequence[RunResult]) -> int:
    """Return the exit code of the command; it depends only on the last run."""
    last = results[-1]
    if last.interrupted:
        return EXIT_INTERRUPTED
    if not last.complete:
        return EXIT_STOPPED
    return 1 if last.failure else 0


class ConsoleObserver(RunObserver):
    """Prints the messages and the progress of runs to stderr; Ctrl-C stops the runs.

    Args:
        estimate: whether to print an estimate of the time even if the language model's price is unknown.
    """

    _bar: ProgressBar

    def __init__(self, *, estimate: bool = False) -> None:
        self._estimate = estimate
        self._print_note = note_printer()

    def note(self, message: str) -> None:
        self._print_note(message)

    @contextmanager
    def asking(self, progress: RunProgress, stop: StopSignal, label: str) -> Iterator[None]:
        self._estimated = False
        with _interruptible(stop), closing(ProgressBar(progress, label)) as self._bar:
            yield

    def progressed(self, progress: RunProgress) -> None:
        self._bar.show(progress)
        if progress.asked >= FIRST_QUESTIONS and not self._estimated and progress.done < progress.total:
            self._estimated = True
            if self._estimate or progress.cost is not None:
                self._bar.write(f"kgqa: {estimate_text(progress.estimate())}")

    def finished(self, result: RunResult) -> None:
        resume = resume_command(result.resume_folder)
        if result.at_once:
            say(f"kgqa: Stopped at once; {result.done:,} of {result.total:,} answers are kept. Resume: {resume}")
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(EXIT_INTERRUPTED)  # threads still wait for servers; `resume` asks their questions again
        if result.done < result.total:
            why = f" because {result.reason.rstrip('.')}" if result.reason else ""
            text = f"kgqa: {result.label}{result.done:,} of {result.total:,} questions are done{why}. Resume: {resume}"
            say(text, also_quiet=not result.interrupted)  # the exit code alone does not show the reason
        elif count := sum(result.lost.values()):
            classes = ", ".join(f"{name} {number:,}" for name, number in Counter(result.lost).most_common() if number)
            questions = "1 question was" if count == 1 else f"{count:,} questions were"
            text = f"kgqa: {result.label}{questions} lost to servers ({classes}). Ask these questions again: {resume}"
            say(text, also_quiet=True)
        if result.failure and result.done == result.total:
            say(f"kgqa: {result.label}Every question failed. The first one: {result.failure}", also_quiet=True)


class ProgressBar:
    """A progress bar with finished questions, rate, remaining time, scores so far, cost, and failures by class.

    If stderr is not a terminal, a line is printed after each tenth of the questions instead.
    """

    def __init__(self, progress: RunProgress, label: str) -> None:
        self._label = label
        self._tenths = 10 * progress.done // max(1, progress.total)
        self._bar = open_bar(
            total=progress.total,
            initial=progress.done,
            desc=clean(label.removesuffix(": ")) or None,
            unit="q",
            smoothing=0.05,
        )
        self.close = self._bar.close

    def show(self, progress: RunProgress) -> None:
        """Update the bar."""
        text = progress_text(progress)
        tenths = 10 * progress.done // max(1, progress.total)
        if self._bar.disable and tenths > self._tenths:
            self._tenths = tenths
            say(f"kgqa: {self._label}{progress.done:,} of {progress.total:,}: {text}")
        self._bar.set_postfix_str(clean(text), refresh=False)
        self._bar.update(progress.done - self._bar.n)

    def write(self, text: str) -> None:
        """Print a line above the bar."""
        self._bar.clear()
        say(text)


def estimate_text(estimate: Estimate) -> str:
    """Format an estimate for people."""
    cost = "" if estimate.cost is None else f" and {estimate.cost:.2f} USD"
    return (
        f"Estimate from the first {counted(estimate.asked, 'question')}: the other {estimate.remaining:,} will take "
        f"about {_duration(estimate.seconds)}{cost}."
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@contextmanager
def _interruptible(stop: StopSignal) -> Iterator[None]:
    """On Ctrl-C, start no further question; on a second Ctrl-C, stop at once."""

    def interrupt(*_: object) -> None:
        if stop.request():
            sys.stderr.write("\nkgqa: Finishing the questions in flight. Press Ctrl-C again to stop at once.\n")

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
