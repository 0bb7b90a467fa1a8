"""Progress and result of a run, a signal to stop the run, and an observer of the run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgqa.evaluation.metrics.scores import all_scores
from kgqa.evaluation.runs.outages import outage_class, tolerable
from kgqa.evaluation.runs.plan import DEFAULT_CONCURRENCY
from kgqa.evaluation.runs.records import Record
from kgqa.evaluation.runs.run_files import Run
from kgqa.text.display import html_of, in_notebook, progress_bar


@dataclass
class StopSignal:
    """A signal that stops a run.

    `soon`: stop after the questions in flight; `now`: stop at once; `requested`: True if a caller requested the stop;
    `reason`: why the run stopped by itself (budget spent, outage); `lost_cost`: cost in USD of predictions that were
    removed.
    """

    soon: threading.Event = field(default_factory=threading.Event)
    now: threading.Event = field(default_factory=threading.Event)
    requested: bool = False
    reason: str = ""
    lost_cost: float = 0.0

    def request(self) -> bool:
        """Request a stop: `soon` at the first call, `now` at the second. Return True for the first call."""
        first, self.requested = not self.requested, True
        (self.soon if first else self.now).set()
        return first

    def end(self, reason: str) -> None:
        """Keep the run from starting further questions, and record the reason."""
        if not self.soon.is_set():
            self.reason = reason
            self.soon.set()


@dataclass(frozen=True)
class Estimate:
    """The estimated time and cost of the `remaining` questions, based on the first `asked` questions.

    `seconds`: wall time; `cost`: in USD, None if the price of the language model is unknown.
    """

    asked: int
    remaining: int
    seconds: float
    cost: float | None


@dataclass
class RunProgress:
    """Counts and sums over the questions of a run, in constant memory.

    `done`: number of questions with a prediction; `scored`: number of these with gold answers; `scores`: sum of each
    metric over the scored questions; `asked`, `seconds`: number of questions that this process asked, and time since
    its start; `cost`: in USD; `lost`, `failures`: number of questions lost to servers, and of all failed questions, by
    failure class; `statuses`: number of questions with each status; `responses`: number of answers with a longer text.
    """

    total: int
    concurrency: int = DEFAULT_CONCURRENCY
    done: int = 0
    scored: int = 0
    asked: int = 0
    seconds: float = 0.0
    cost: float | None = None
    lost: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    scores: Counter[str] = field(default_factory=Counter)
    responses: int = 0

    def add(self, record: Record, *, asked: bool = True) -> None:
        """Add a record; `asked`: True if this process asked the question."""
        self._count(record, 1)
        self.asked += asked
        if record.cost is not None:
            self.cost = (self.cost or 0.0) + record.cost

    def remove(self, record: Record) -> None:
        """Subtract a record that was removed; its cost still counts."""
        self._count(record, -1)

    def _count(self, record: Record, times: int) -> None:
        self.done += times
        self.statuses[record.status] += times
        if record.failure:
            self.failures[record.failure] += times
        if lost := outage_class(record):
            self.lost[lost] += times
        scores = all_scores(record.scores, record.answer, record.readings)
        self.scored += times * bool(scores)
        self.responses += times * bool(record.answer.get("response"))
        for name, value in scores.items():
            self.scores[name] += times * value  # type: ignore[assignment]

    @property
    def complete(self) -> bool:
        """Whether every question is done, except for a few that may be lost to servers."""
        return self.done >= self.total and tolerable(self.lost.total(), self.total)

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over all scored questions, including failed questions."""
        return self.scores[metric] / self.scored if self.scored else 0.0

    def estimate(self) -> Estimate:
        """Estimate time and cost of the remaining questions."""
        remaining = self.total - self.done
        # while few questions are in flight, most threads are idle
        lanes = min(self.asked, self.concurrency) / self.concurrency
        seconds = self.seconds / max(1, self.asked) * remaining * lanes
        cost = None if self.cost is None else self.cost / max(1, self.done) * remaining
        return Estimate(self.asked, remaining, seconds, cost)


@dataclass(frozen=True)
class RunResult:
    """The state of a run after a call of `run` or `resume`.

    `total`, `done`: number of all questions, and of questions with a prediction; `complete`: all questions are done,
    except for a few that may be lost to servers; `lost`: number of lost questions by failure class; `failure`: the
    reason of the first failure, if every question failed; `reason`: why the run ended early; `interrupted`: a caller
    requested the stop; `at_once`: the run did not wait for the questions in flight; `label`: prefix of messages if
    several runs belong together; `resume_folder`: argument for `resume`.
    """

    run: Run
    total: int
    done: int
    complete: bool
    resume_folder: Path
    lost: Mapping[str, int] = field(default_factory=dict)
    failure: str = ""
    reason: str = ""
    interrupted: bool = False
    at_once: bool = False
    label: str = ""

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the metrics of the run with their intervals."""
        return html_of(self)


class RunObserver:
    """Base class for observers of a run; override the methods for the events of interest."""

    def note(self, message: str) -> None:
        """Receive a message for people; may be called from any thread."""

    def asking(self, progress: RunProgress, stop: StopSignal, label: str) -> AbstractContextManager[object]:
        """Return a context manager that is active while questions are asked."""
        return nullcontext()

    def progressed(self, progress: RunProgress) -> None:
        """Receive the progress each time predictions have been written."""

    def finished(self, result: RunResult) -> None:
        """Receive the result of the run, while graph and run folder are still open."""


class NotebookObserver(RunObserver):
    """Shows the progress of a run as a bar, and its notes below."""

    def __init__(self) -> None:
        self._bar: Any = None

    def note(self, message: str) -> None:
        """Write a note below the bar."""
        if self._bar is not None:
            self._bar.write(message)

    @contextmanager
    def asking(self, progress: RunProgress, stop: StopSignal, label: str) -> Iterator[None]:
        """Show the bar while questions are asked."""
        with progress_bar(total=progress.total, initial=progress.done, desc=label or None, unit="q") as self._bar:
            yield
        self._bar = None

    def progressed(self, progress: RunProgress) -> None:
        """Move the bar, and show the metric that ranks runs."""
        if self._bar is not None:
            self._bar.update(progress.done - self._bar.n)
            if progress.scored:
                self._bar.set_postfix({"hit@1": f"{progress.mean('hit@1'):.1%}"})


def default_observer() -> RunObserver:
    """Return the observer of a run that is given none: a bar in a notebook, nothing elsewhere."""
    return NotebookObserver() if in_notebook() else RunObserver()
