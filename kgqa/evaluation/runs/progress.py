"""Progress of a run, how to stop it, and what a caller may observe of it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from kgqa.evaluation.runs.outages import outage_class, tolerable
from kgqa.evaluation.runs.plan import DEFAULT_CONCURRENCY
from kgqa.evaluation.runs.records import Record
from kgqa.evaluation.runs.run_files import Run


@dataclass
class StopSignal:
    """Asks a running batch of questions to stop.

    `soon` lets the questions in flight finish, `now` does not. `requested`: a caller asked for it, unlike a stop for
    `reason` (budget spent, outage). `lost_cost`: USD spent on predictions that were removed again.
    """

    soon: threading.Event = field(default_factory=threading.Event)
    now: threading.Event = field(default_factory=threading.Event)
    requested: bool = False
    reason: str = ""
    lost_cost: float = 0.0

    def request(self) -> bool:
        """Request a stop: soon at the first call, now at the second. Returns whether this was the first."""
        first, self.requested = not self.requested, True
        (self.soon if first else self.now).set()
        return first

    def end(self, reason: str) -> None:
        """Start no further question, for a reason other than a request."""
        if not self.soon.is_set():
            self.reason = reason
            self.soon.set()


@dataclass(frozen=True)
class Estimate:
    """What the remaining questions will take, judged by the `asked` first ones. `cost` in USD, None without prices."""

    asked: int
    remaining: int
    seconds: float
    cost: float | None


@dataclass
class RunProgress:
    """Sums over the questions of a run; memory does not grow with their number.

    `done`: questions with a prediction; `scored`: those with gold answers; `scores`: sum of each metric over them;
    `asked`: questions asked by this process in `seconds`; `lost`: questions lost to a server, by class of failure.
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

    def add(self, record: Record, *, asked: bool = True) -> None:
        """Count a record; `asked`: this process asked the question."""
        self.done += 1
        self.asked += asked
        self.statuses[record.status] += 1
        if record.failure:
            self.failures[record.failure] += 1
        if lost := outage_class(record):
            self.lost[lost] += 1
        self.scored += bool(record.scores)
        self.scores.update(record.scores)
        if record.cost is not None:
            self.cost = (self.cost or 0.0) + record.cost

    def remove(self, record: Record) -> None:
        """Uncount a record that is not kept; its cost stays."""
        self.done -= 1
        self.statuses[record.status] -= 1
        if record.failure:
            self.failures[record.failure] -= 1
        if lost := outage_class(record):
            self.lost[lost] -= 1
        self.scored -= bool(record.scores)
        self.scores.subtract(record.scores)

    @property
    def complete(self) -> bool:
        """Whether every question is done, apart from the few that may be lost to servers."""
        return self.done >= self.total and tolerable(self.lost.total(), self.total)

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over all scored questions, failed ones included."""
        return self.scores[metric] / self.scored if self.scored else 0.0

    def estimate(self) -> Estimate:
        """Estimate time and cost of the remaining questions."""
        remaining = self.total - self.done
        # a few questions keep only a few of the threads busy
        lanes = min(self.asked, self.concurrency) / self.concurrency
        seconds = self.seconds / max(1, self.asked) * remaining * lanes
        cost = None if self.cost is None else self.cost / max(1, self.done) * remaining
        return Estimate(self.asked, remaining, seconds, cost)


@dataclass(frozen=True)
class RunResult:
    """A run as one call of `run` or `resume` left it.

    `complete`: all questions are done, apart from the few that may be lost to servers (`lost`, by class of failure);
    `reason`: why it ended early; `interrupted`: a caller requested the stop, `at_once` without waiting for questions in
    flight; `label`: prefix of messages where several runs belong together; `resume_folder`: what to resume.
    """

    run: Run
    total: int
    done: int
    complete: bool
    resume_folder: Path
    lost: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    interrupted: bool = False
    at_once: bool = False
    label: str = ""


class RunObserver:
    """Receives events of a run. All methods do nothing; override those of interest."""

    def note(self, message: str) -> None:
        """Receive a message for people. May be called from any thread."""

    def asking(self, progress: RunProgress, stop: StopSignal, label: str) -> AbstractContextManager[object]:
        """Return a context that surrounds the asking of questions."""
        return nullcontext()

    def progressed(self, progress: RunProgress) -> None:
        """Receive the progress after predictions were written."""

    def finished(self, result: RunResult) -> None:
        """Receive the result while graph and folder are still open."""
