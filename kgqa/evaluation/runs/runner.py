"""Asks many questions at once, and writes every answer to the disk without delay.

Questions are asked in threads, or by the workers of a cluster; only the caller's thread writes. If the process is
killed, only the questions in flight are lost.
"""

from __future__ import annotations

import gc
import math
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import takewhile

from kgqa.errors import ClusterError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.runs.asking import ask_question
from kgqa.evaluation.runs.outages import OutageWatch, outage_class, tolerable
from kgqa.evaluation.runs.plan import DEFAULT_CONCURRENCY, Topics
from kgqa.evaluation.runs.progress import RunProgress, StopSignal
from kgqa.evaluation.runs.records import Record
from kgqa.evaluation.runs.run_folder import RunFolder
from kgqa.methods.resources import Resources

POLL_SECONDS = 0.2
LAST_SECONDS = 10.0
"""Seconds to wait for the questions in flight when an outage stops the run."""
GC_THRESHOLD = 20_000
"""Number of new objects (minus freed objects) after which the garbage collector looks for cycles."""


Asked = Generator[list[Record], None, None]
"""Yields the records of the questions that have ended since the last time; often an empty list."""


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Keep the garbage collector from scanning older objects, such as the millions of objects in a graph's tables.

    This saves about 5% of the processor time of a run.
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
    ask_all: Callable[[Iterator[GoldQuestion]], Asked] | None = None,
) -> StopSignal:
    """Ask the questions that have no prediction yet.

    Args:
        questions: all questions of the run.
        progress: contains the questions that are done; each question asked here is added.
        concurrency: maximum number of questions answered at the same time.
        topics: `gold` uses the topic entities of the data set, `linked` finds topic entities in the text.
        losses: also find the step at which a right answer was lost.
        budget: maximum cost in USD of all predictions together; afterwards no question is started.
        spent: cost in USD of other runs that share the budget.
        keep_going: continue during outages.
        stop: signal to stop the run; by default a new one.
        on_progress: called in this thread each time predictions have been written.
        ask_all: asks questions, which it takes from an iterator when it can ask them; by default in threads.

    Returns:
        The StopSignal. If questions remain, `soon` is set; if no stop was requested, `reason` gives the cause. If an
        outage ended the run or affected more than a few questions, the predictions lost to the outage are removed, and
        `resume` asks these questions again.

    Raises:
        RunError: a prediction cannot be written.
        ClusterError: no question can be asked on the cluster.
    """
    stop = stop or StopSignal()
    waiting = [question for question in questions if question.id not in folder.done]
    left = takewhile(lambda _: not stop.soon.is_set(), waiting)
    if ask_all is None:
        ask_one = partial(ask_question, resources=resources, topics=topics, losses=losses)
        ask_all = partial(_ask_in_threads, ask_one, concurrency)
    started = time.monotonic()

    def check_budget() -> None:
        paid = spent + (progress.cost or 0.0)
        if budget is not None and paid and paid >= budget:
            stop.end(f"the budget of {budget:g} USD is spent")

    check_budget()
    watch = OutageWatch(resources.silent)
    lost: list[Record] = []
    leave_at = math.inf
    with closing(ask_all(left) if waiting else _nothing()) as batches:
        for records in _until_error(batches, progress, stop):
            if records:  # written first, because a prediction counts only when it is on disk
                folder.append(records)
            for record in records:
                watch.add(record)
            if not keep_going and leave_at == math.inf and (reason := watch.reason()):
                stop.end(reason)
                leave_at = time.monotonic() + LAST_SECONDS
            for record in records:
                progress.add(record)
                if not keep_going and outage_class(record):
                    lost.append(record)
            if records:
                progress.seconds = time.monotonic() - started
                on_progress(progress)
                check_budget()
            if stop.now.is_set() or time.monotonic() >= leave_at:
                break
    outage = leave_at < math.inf
    if not outage and not keep_going and not stop.requested and (reason := watch.final_reason(progress.asked)):
        outage = True
        stop.end(reason)
    if outage:
        lost += watch.cut_short()
    if lost and (outage or not tolerable(progress.lost.total(), progress.total)):
        _remove_lost(lost, folder, progress, stop)
    return stop


def _ask_in_threads(
    ask_one: Callable[[GoldQuestion], Record], concurrency: int, questions: Iterator[GoldQuestion]
) -> Asked:
    """Ask questions in threads of this process; see `Asked`."""
    # bounded, because answers that are not on disk can be lost, and their cost is not yet counted
    found: queue.Queue[Record | None] = queue.Queue(maxsize=concurrency)
    lock, closed = threading.Lock(), threading.Event()

    def work() -> None:
        try:
            while not closed.is_set():
                with lock:
                    question = next(questions, None)
                if question is None:
                    return
                found.put(ask_one(question))
        finally:
            found.put(None)

    threads = [threading.Thread(target=work, name=f"kgqa-question-{n}", daemon=True) for n in range(concurrency)]
    for thread in threads:
        thread.start()
    running = len(threads)
    try:
        while running:
            items = list(_waiting(found))
            records = [item for item in items if item is not None]
            running -= len(items) - len(records)
            yield records
    finally:
        if running:
            closed.set()
            with found.not_full:  # nothing reads the queue any more; this lets threads that wait for space in it end
                found.maxsize = sys.maxsize
                found.not_full.notify_all()


def _nothing() -> Asked:
    yield from ()


def _until_error(batches: Asked, progress: RunProgress, stop: StopSignal) -> Iterator[list[Record]]:
    """Yield what is asked; an error of the cluster stops the run, like an outage, if a question was asked before."""
    try:
        yield from batches
    except ClusterError as error:
        if not progress.asked:
            raise
        stop.end(str(error))


def _remove_lost(lost: Sequence[Record], folder: RunFolder, progress: RunProgress, stop: StopSignal) -> None:
    """Remove the predictions that failed because of an outage, and count them in the reason for the stop."""
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
    """Wait a moment for items, then yield all items that have arrived, if any."""
    with suppress(queue.Empty):
        yield found.get(timeout=POLL_SECONDS)
        for _ in range(found.maxsize):
            yield found.get_nowait()
