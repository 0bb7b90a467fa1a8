"""Asks the remaining questions of an open run, and writes metrics.json."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kgqa.cluster import RayCluster
from kgqa.errors import StoreError
from kgqa.evaluation.analysis.aggregate import summary_of
from kgqa.evaluation.datasets.gold_names import with_names
from kgqa.evaluation.datasets.questions import GoldQuestion, spread
from kgqa.evaluation.runs.manifest import is_own_run, record_ownership
from kgqa.evaluation.runs.plan import RunPlan
from kgqa.evaluation.runs.progress import RunObserver, RunProgress, RunResult, StopSignal
from kgqa.evaluation.runs.run_files import METRICS, Run, RunError, open_run
from kgqa.evaluation.runs.run_folder import RunFolder, locked
from kgqa.evaluation.runs.runner import run_questions
from kgqa.evaluation.runs.workers import ask_on, divided
from kgqa.methods.ask import cache_of
from kgqa.methods.registry import asked_in_order
from kgqa.methods.resources import Resources
from kgqa.settings.values import Settings, resolve
from kgqa.text.hints import Command, Option

FIRST_QUESTIONS = 5
"""Number of questions asked for an estimate."""


def ask_remaining(
    plan: RunPlan,
    questions: Sequence[GoldQuestion],
    resources: Resources,
    folder: RunFolder,
    observer: RunObserver,
    *,
    estimate: bool = False,
    spent: float = 0.0,
    label: str = "",
    cluster: RayCluster | None = None,
) -> RunResult:
    """Ask every question that has no prediction yet.

    Args:
        estimate: ask only `FIRST_QUESTIONS` questions, evenly spaced among the remaining questions.
        spent: cost in USD of other runs that share the budget.
        label: prefix of messages if several runs belong together.
        cluster: the cluster that asks the questions; None for threads of this process.

    Raises:
        StoreError: topic entities must be found in the questions, and the names of the graph cannot be read.
        RunError: a prediction cannot be written.
        ClusterError: no question can be asked on the cluster.
    """
    in_order = asked_in_order(resources.settings)
    concurrency = 1 if in_order else plan.in_flight
    ask_all = None
    if cluster is not None:
        division = divided(cluster, plan, len(questions) - len(folder.done), resources)
        concurrency = division.in_flight
        observer.note(division.note)
        ask_all = ask_on(cluster, division, resources, topics=plan.topics, losses=plan.losses, say=observer.note)
    progress = RunProgress(total=len(questions), concurrency=concurrency)
    for record in Run(folder.path, {}).records():
        progress.add(record, asked=False)
    left = [question for question in questions if question.id not in folder.done]
    if left:
        resources.open_names(required=plan.topics == "linked", note=observer.note)
    try:
        left = with_names(left, resources.graph)
    except StoreError as error:
        observer.note(
            f"The names of gold answers that have only an id could not be read. Answers without an id cannot match "
            f"these gold answers: {error}"
        )
    stop = StopSignal()
    with observer.asking(progress, stop, label):
        run_questions(
            left if not estimate else left[:FIRST_QUESTIONS] if in_order else spread(left, FIRST_QUESTIONS),
            resources,
            folder,
            progress=progress,
            concurrency=concurrency,
            topics=plan.topics,
            losses=plan.losses,
            budget=plan.budget,
            spent=spent,
            keep_going=plan.keep_going,
            stop=stop,
            on_progress=observer.progressed,
            ask_all=ask_all,
        )
    if stop.lost_cost:
        manifest = open_run(folder.path).manifest
        folder.write("run.json", manifest | {"forgotten_cost": manifest.get("forgotten_cost", 0.0) + stop.lost_cost})
    if estimate and not stop.requested:
        stop.reason = stop.reason or "only an estimate was requested"
    run = open_run(folder.path)
    write_metrics(folder, run)
    first = next(run.records(), None) if progress.done == progress.statuses["failed"] > 0 else None
    result = RunResult(
        run=run,
        total=len(questions),
        done=progress.done,
        complete=progress.complete,
        resume_folder=folder.path.parent if label else folder.path,
        lost=progress.lost,
        failure=str(first.answer.get("reason") or first.failure) if first else "",
        reason=stop.reason,
        interrupted=stop.requested,
        at_once=stop.now.is_set(),
        label=label,
    )
    observer.finished(result)
    return result


def in_turn(
    starts: Sequence[Callable[[], RunResult]],
    observer: RunObserver,
    *,
    estimate: bool = False,
    group: Path | None = None,
) -> list[RunResult]:
    """Start one run after the other until one stops early.

    Args:
        estimate: continue with the next run even if the run before it stopped after its first questions.
        group: the folder that contains all runs, if there are several.
    """
    results: list[RunResult] = []
    for start in starts:
        results.append(start())
        if results[-1].interrupted or not (results[-1].complete or estimate):
            break
    if group and (left := len(starts) - len(results)):
        runs = "run has" if left == 1 else "runs have"
        observer.note(f"{left} more {runs} not started. Resume all of them: {resume_command(group)}")
    return results


def write_metrics(folder: RunFolder, run: Run) -> None:
    """Compute metrics.json from the predictions of a run."""
    folder.write(METRICS, summary_of(run.records()))


def resume_command(path: Path) -> str:
    """Return the command or the Python call that resumes a run."""
    return str(Command("eval resume", path))


def with_model_concurrency(settings: Settings, concurrency: int) -> Settings:
    """Raise `llm.concurrency` to the number of questions answered at the same time, unless the user set it."""
    if settings.origins["llm.concurrency"] != "default" or settings.llm.concurrency >= concurrency:
        return settings
    return replace(settings, values={**settings.values, "llm.concurrency": concurrency})


@contextmanager
def locked_group(folder: Path) -> Iterator[None]:
    """Lock a folder of several runs.

    Raises:
        RunError: another process has locked the folder, or the folder cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(
            f"{folder} cannot be written: {error.strerror}.", "Choose another folder: ", Option("out")
        ) from error
    with locked(folder):
        yield


def check_own_run(run: Run, trust: bool, path: Path, file: str) -> None:
    """Check that this user created the run, or trusts the run.

    Raises:
        RunError: there is no record that this user created the run, and `trust` is False.
    """
    if not trust and not is_own_run(run.manifest, resolve()):
        raise RunError(
            "There is no record that you created this run. Its settings decide which servers receive requests and API "
            "keys.",
            f"Check {path}/{file}; if you trust the settings: ",
            Command("eval resume", Option("trust", True), path),
        )


def record_own_run(manifest: dict[str, object], settings: Settings, out: Path, observer: RunObserver) -> None:
    """Record in the user's cache that this user created the run; if that is impossible, notify the observer."""
    if not record_ownership(manifest, settings):
        resume = Command("eval resume", Option("trust", True), out)
        observer.note(
            f"{cache_of(settings).folder} cannot be written, so kgqa cannot record that you created this run. Set "
            f"KGQA_CACHE_FOLDER to a writable folder, or resume this run with: {resume}"
        )
