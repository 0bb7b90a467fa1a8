"""Asking many questions at once, with every answer on the disk as soon as it is there.

Questions run in threads; only the caller's thread writes. Stopping a run loses the questions in flight at most.
"""

from __future__ import annotations

import gc
import json
import math
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

from kgqa.answer_json import answer_object
from kgqa.errors import KgqaError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.metrics.scores import score_record
from kgqa.evaluation.runs.asking import hops_of, loss_of
from kgqa.evaluation.runs.outages import OutageWatch, outage_class, tolerable
from kgqa.evaluation.runs.plan import DEFAULT_CONCURRENCY, Topics
from kgqa.evaluation.runs.progress import RunProgress, StopSignal
from kgqa.evaluation.runs.records import Record, record_of
from kgqa.evaluation.runs.run_folder import RunFolder
from kgqa.methods.ask import ask, budget_of
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Question
from kgqa.trace import Trace

POLL_SECONDS = 0.2
LAST_SECONDS = 10.0
"""Seconds that questions in flight may still take during an outage."""
GC_THRESHOLD = 20_000
"""New objects, net of those freed, before the garbage collector looks for cycles."""


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Keep the garbage collector away from older objects: the tables of a graph are millions of them.

    Saves about a twentieth of the processor time of a batch.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *before[1:])
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
    progress: RunProgress,
    concurrency: int = DEFAULT_CONCURRENCY,
    topics: Topics = "gold",
    losses: bool = False,
    budget: float | None = None,
    spent: float = 0.0,
    keep_going: bool = False,
    stop: StopSignal | None = None,
    on_progress: Callable[[RunProgress], None] = lambda progress: None,
) -> StopSignal:
    """Ask the questions that have no prediction yet.

    Args:
        progress: counts what is done already, and each question asked here.
        concurrency: questions in flight.
        topics: `gold` gives the topics of the data set, `linked` finds them in the text.
        losses: also find out where a right answer was lost.
        budget: USD that all predictions together may cost; no question is started beyond.
        spent: USD spent by other runs of the same budget.
        keep_going: continue during outages.
        on_progress: called in this thread after predictions were written.

    Returns:
        The StopSignal; `soon` is set where questions are left, and `reason` says why. If an outage ended the run, or
        took more than a few questions, predictions lost to it are removed, and `resume` asks their questions again.

    Raises:
        RunError: a prediction cannot be written.
    """
    stop = stop or StopSignal()
    left = (question for question in questions if question.id not in folder.done)
    # bounded, because what is not on the disk could be lost and is not counted as spent
    found: queue.Queue[Record | None] = queue.Queue(maxsize=concurrency)
    lock = threading.Lock()
    started = time.monotonic()

    def check_budget() -> None:
        paid = spent + (progress.cost or 0.0)
        if budget is not None and paid and paid >= budget:
            stop.end(f"the budget of {budget:g} USD is spent")

    check_budget()

    def work() -> None:
        try:
            while not stop.soon.is_set():
                with lock:
                    question = next(left, None)
                if question is None:
                    return
                found.put(ask_question(question, resources, topics=topics, losses=losses))
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
            if records:  # first: a prediction counts once it is on the disk
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
            progress.seconds = time.monotonic() - started
            on_progress(progress)
            check_budget()
        outage = leave_at < math.inf
        if not outage and not keep_going and not stop.requested and (reason := watch.final_reason(progress.asked)):
            outage = True
            stop.end(reason)
        if outage:
            lost += watch.cut_short()
        if lost and (outage or not tolerable(progress.lost.total(), progress.total)):
            _remove_lost(lost, folder, progress, stop)
    finally:
        if running:
            stop.soon.set()
            with found.not_full:  # nothing reads the queue any more; threads that wait for it can end
                found.maxsize = sys.maxsize
                found.not_full.notify_all()
    return stop


def ask_question(question: GoldQuestion, resources: Resources, *, topics: Topics, losses: bool = False) -> Record:
    """Ask one question and return its record, whatever happens."""
    started = time.perf_counter()
    asked = Question(question.text, id=question.id)
    given = question.topics if topics == "gold" else ()
    trace = Trace(budget_of(resources.settings))
    try:
        answer = ask(asked, topics=given, resources=resources, trace=trace)
        failure = next((str(e.detail.get("error", "")) for e in answer.trace if e.kind == "failed"), "")
        seconds = time.perf_counter() - started
        shown = answer_object(answer, trace=True)
        json.dumps(shown)  # a plugin's trace may not be serialisable
    except Exception as error:  # noqa: BLE001 - a defect must cost one question, not the run
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
        except Exception:  # noqa: BLE001 - the answer is valid nevertheless
            loss = "unknown"
    if answer.status == "failed" and not failure:
        failure = "failed"
    hops = question.hops
    if hops is None:
        with suppress(Exception):  # a gold query may be unreadable
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


def _remove_lost(lost: Sequence[Record], folder: RunFolder, progress: RunProgress, stop: StopSignal) -> None:
    """Remove predictions lost to an outage, and add that to the reason of the stop."""
    classes = Counter(outage_class(record) or "cut short" for record in lost)
    named = ", ".join(f"{name} {count:,}" for name, count in classes.most_common())
    text = f"{len(lost):,} {'question' if len(lost) == 1 else 'questions'} lost to servers ({named})"
    example = next((record.answer.get("reason") for record in lost if record.answer.get("reason")), "")
    stop.reason = f"{stop.reason.rstrip('.')}; {text}" if stop.reason else f"{text}: {example}"
    again = {record.id for record in lost}
    folder.remove(lambda record: record.id in again)
    for record in lost:
        progress.remove(record)
        stop.lost_cost += record.cost or 0.0


def _waiting(found: queue.Queue[Record | None]) -> Iterator[Record | None]:
    """Yield what has arrived: at least one item, or nothing after a moment."""
    try:
        yield found.get(timeout=POLL_SECONDS)
    except queue.Empty:
        return
    yield from islice(_now(found), found.maxsize)


def _now(found: queue.Queue[Record | None]) -> Iterator[Record | None]:
    while True:
        try:
            yield found.get_nowait()
        except queue.Empty:
            return
