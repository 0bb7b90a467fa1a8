"""Asks many questions at once and keeps every answer as soon as it is there.

Questions run in threads; one thread, the caller's, writes. Whoever stops a run loses the questions in flight at most.
"""

from __future__ import annotations

import gc
import json
import math
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice

from kgqa.answer_json import answer_object
from kgqa.errors import KgqaError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.metrics.scores import score_record
from kgqa.evaluation.runs.asking import Topics, hops_of, loss_of
from kgqa.evaluation.runs.outages import OutageWatch, outage_class, tolerable
from kgqa.evaluation.runs.records import Record, record_of
from kgqa.evaluation.runs.run_folder import RunFolder
from kgqa.methods.ask import ask, budget_of
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Question
from kgqa.trace import Trace

LOOK_SECONDS = 0.2
LAST_SECONDS = 10.0
"""What questions in flight are given when the servers are gone; then they are left behind."""
COLLECTED_AFTER = 20_000
"""Objects that are made, net of those that went, before young ones are looked through for cycles."""


@dataclass
class Stop:
    """How a run is asked to end: `soon` lets the questions in flight finish, `now` does not. `asked`: somebody did, and
    it is not for another reason, `why`.
    """

    soon: threading.Event = field(default_factory=threading.Event)
    now: threading.Event = field(default_factory=threading.Event)
    asked: bool = False
    why: str = ""
    lost_cost: float = 0.0
    """USD that predictions cost which were taken out again."""

    def ask(self) -> bool:
        """Ask once more; whether that was for the first time."""
        first, self.asked = not self.asked, True
        (self.soon if first else self.now).set()
        return first

    def end(self, why: str) -> None:
        """Begin no question any more, for a reason of its own."""
        if not self.soon.is_set():
            self.why = why
            self.soon.set()


@dataclass
class Progress:
    """Where a run is. Sums only, however many questions there are. `scored`: questions that have gold answers, `scores`:
    sums of each metric over them; `asked`: questions of this process, `seconds` since it began; `lost`: those that a
    server is to blame for, by class.
    """

    total: int
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
        self.done += 1
        self.asked += asked
        self.statuses[record.status] += 1
        if record.failure:
            self.failures[record.failure] += 1
        if lost := outage_class(record):
            self.lost[lost] += 1
        self.scored += bool(record.scores)
        self.scores.update(record.scores)
        cost = (record.answer.get("usage") or {}).get("cost")
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost

    def take_back(self, record: Record) -> None:
        """A record that is not kept. What it cost stays spent."""
        self.done -= 1
        self.statuses[record.status] -= 1
        if record.failure:
            self.failures[record.failure] -= 1
        if lost := outage_class(record):
            self.lost[lost] -= 1
        self.scored -= bool(record.scores)
        self.scores.subtract(record.scores)

    @property
    def whole(self) -> bool:
        """Whether every question is done, but for the few that may be lost to servers."""
        return self.done >= self.total and tolerable(self.lost.total(), self.total)

    def mean(self, metric: str) -> float:
        """Over all that is done and has gold answers, failed questions too."""
        return self.scores[metric] / self.scored if self.scored else 0.0


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """What was there before a batch is not looked through for garbage again and again: the tables of a graph are
    millions of objects. About a twentieth of a batch's processor time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@_fewer_collections()
def run_questions(
    questions: Sequence[GoldQuestion],
    resources: Resources,
    folder: RunFolder,
    *,
    progress: Progress,
    concurrency: int = 8,
    topics: Topics = "gold",
    losses: bool = False,
    most_cost: float | None = None,
    spent: float = 0.0,
    keep_going: bool = False,
    stop: Stop | None = None,
    told: Callable[[Progress], None] = lambda progress: None,
) -> Stop:
    """Ask the questions that have no prediction yet.

    Args:
        progress: counts what is done before, and what becomes of each question here.
        concurrency: questions in flight.
        topics: `gold`: topics of the data set are given; `linked`: found in the text.
        losses: also say where a right answer was lost.
        most_cost: USD all predictions together may cost; no question is begun beyond.
        spent: USD that went elsewhere on the same account.
        keep_going: even if nothing answers.
        told: called in this thread after predictions have been written.

    Returns:
        The Stop; `soon` is set where questions are left, and `why` says for what reason. Where an outage ended the run,
        or took more than a few questions, its predictions are not kept: those questions are asked again.

    Raises:
        RunError: a prediction cannot be written.
    """
    stop = stop or Stop()
    left = (question for question in questions if question.id not in folder.done)
    # no larger: what is not on the disk yet could be lost, and is not counted into what has been spent
    found: queue.Queue[Record | None] = queue.Queue(maxsize=concurrency)
    lock = threading.Lock()
    begun = time.monotonic()

    def look_at_cost() -> None:
        paid = spent + (progress.cost or 0.0)
        if most_cost is not None and paid and paid >= most_cost:
            stop.end(f"the budget of {most_cost:g} USD is spent")

    look_at_cost()

    def work() -> None:
        try:
            while not stop.soon.is_set():
                with lock:
                    question = next(left, None)
                if question is None:
                    return
                found.put(answered(question, resources, topics=topics, losses=losses))
        finally:
            found.put(None)

    threads = [threading.Thread(target=work, name=f"kgqa-question-{n}", daemon=True) for n in range(concurrency)]
    for thread in threads:
        thread.start()
    running = len(threads)
    watch = OutageWatch(resources.silent)
    lost: list[Record] = []
    leave_at = math.inf
    try:
        while running and not stop.now.is_set() and time.monotonic() < leave_at:
            records: list[Record] = []
            for item in _waiting(found):
                running -= item is None
                if item is not None:
                    records.append(item)
            if records:  # before anything else: it is on the disk before it counts
                folder.append(records)
            for record in records:
                watch.add(record)
            if not keep_going and leave_at == math.inf and (reason := watch.reason()):
                stop.end(reason)
                leave_at = time.monotonic() + LAST_SECONDS
            if not records:
                continue
            for record in records:
                progress.add(record)
                if not keep_going and outage_class(record):
                    lost.append(record)
            progress.seconds = time.monotonic() - begun
            told(progress)
            look_at_cost()
        outage = leave_at < math.inf
        if not outage and not keep_going and not stop.asked and (reason := watch.last_word(progress.asked)):
            outage = True
            stop.end(reason)
        if outage:
            lost += watch.cut_short()
        if lost and (outage or not tolerable(progress.lost.total(), progress.total)):
            _take_back(lost, folder, progress, stop)
    finally:
        stop.soon.set() if running else None
    return stop


def answered(question: GoldQuestion, resources: Resources, *, topics: Topics, losses: bool = False) -> Record:
    """The record of one question; whatever happens, there is one."""
    started = time.perf_counter()
    asked = Question(question.text, id=question.id)
    given = question.topics if topics == "gold" else ()
    trace = Trace(budget_of(resources.settings))
    try:
        answer = ask(asked, topics=given, resources=resources, trace=trace)
        failure = next((str(e.detail.get("error", "")) for e in answer.trace if e.kind == "failed"), "")
        seconds = time.perf_counter() - started
        shown = answer_object(answer, trace=True)
        json.dumps(shown)  # a method of somebody else's may trace what cannot be written
    except Exception as error:  # a mistake of ours, or of a method of somebody else's: one question, not the run
        failure = type(error).__name__
        reason = str(error) if isinstance(error, KgqaError) else f"{failure}: {error}"
        method = resources.settings["ask.method"]
        answer = Answer(asked, "failed", reason=reason, method=method, usage=trace.usage())
        seconds = time.perf_counter() - started
        shown = answer_object(answer, trace=True)
    scores = score_record(shown, question.parses or (question.answers,))
    loss = ""
    if losses and question.answers:
        try:
            loss = loss_of(answer, question, resources, right=scores.get("em") == 1.0)
        except Exception:  # the answer stands all the same
            loss = "unknown"
    if answer.status == "failed" and not failure:
        failure = "failed"
    hops = question.hops
    if hops is None:
        with suppress(Exception):  # a gold query that cannot be read tells nothing
            hops = hops_of(question, resources.graph)
    return record_of(
        replace(question, hops=hops),
        shown,
        scores=scores,
        loss=loss,
        failure=failure,
        leaks=sum(int(event.detail.get("leaks", 0)) for event in answer.trace if event.kind == "leaks"),
        seconds=round(seconds, 4),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _take_back(lost: Sequence[Record], folder: RunFolder, progress: Progress, stop: Stop) -> None:
    """Forget predictions that an outage is to blame for, and say so."""
    classes = Counter(outage_class(record) or "cut short" for record in lost)
    named = ", ".join(f"{name} {count:,}" for name, count in classes.most_common())
    said = f"{len(lost):,} {'question' if len(lost) == 1 else 'questions'} lost to servers ({named})"
    example = next((record.answer.get("reason") for record in lost if record.answer.get("reason")), "")
    stop.why = f"{stop.why.rstrip('.')}; {said}" if stop.why else f"{said}: {example}"
    again = {record.id for record in lost}
    folder.forget(lambda record: record.id in again)
    for record in lost:
        progress.take_back(record)
        stop.lost_cost += (record.answer.get("usage") or {}).get("cost") or 0.0


def _waiting(found: queue.Queue[Record | None]) -> Iterator[Record | None]:
    """What has come: at least one, or nothing after a moment."""
    try:
        yield found.get(timeout=LOOK_SECONDS)
    except queue.Empty:
        return
    yield from islice(_now(found), found.maxsize)


def _now(found: queue.Queue[Record | None]) -> Iterator[Record | None]:
    while True:
        try:
            yield found.get_nowait()
        except queue.Empty:
            return
