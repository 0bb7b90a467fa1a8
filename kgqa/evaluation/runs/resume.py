"""Resumes runs: asks the remaining questions with the original settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from kgqa.evaluation.runs.manifest import (
    notes_on_changes,
    plan_of,
    record_ownership,
    resumed_manifest,
    settings_of,
)
from kgqa.evaluation.runs.outages import OLD_CLASSES, outage_class
from kgqa.evaluation.runs.plan import select_questions
from kgqa.evaluation.runs.progress import RunObserver, RunResult, default_observer
from kgqa.evaluation.runs.records import Record
from kgqa.evaluation.runs.remaining import (
    ask_remaining,
    check_own_run,
    in_turn,
    locked_group,
    with_model_concurrency,
    write_metrics,
)
from kgqa.evaluation.runs.run_files import BATCH, LOCK, MANIFEST, RunError, open_run, open_runs, pending_runs
from kgqa.evaluation.runs.run_folder import create_pending_runs, resume_run
from kgqa.evaluation.runs.workers import opened_cluster
from kgqa.methods.ask import open_resources
from kgqa.storage.lock_files import held
from kgqa.text.hints import Option


@dataclass(frozen=True)
class Changes:
    """Changes to a resumed run: settings by key, and options of the plan; None keeps the original value."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    concurrency: int | None = None
    budget: float | None = None
    keep_going: bool = False
    ray: str | None = None


def resume(
    folder: str | Path,
    changes: Changes | None = None,
    *,
    retry: Sequence[str] = (),
    trust: bool = False,
    observer: RunObserver | None = None,
) -> list[RunResult]:
    """Resume every unfinished run of a folder.

    Asks the questions without a prediction, and the questions that were lost to an outage.

    Args:
        retry: also ask failed questions: `failed` for all, or failure classes such as `StoreTimeout`.
        trust: use the settings of a run that another user created.

    Raises:
        RunError: there is no run; the questions or the graph have changed; another process is asking the questions;
            another user may have created the run; no question has a failure class in `retry`.
        SettingsError, StoreError, ModelUnavailable: see `open_resources`.
        ClusterError: the Ray cluster cannot be used.
    """
    folder, changes, observer = Path(folder), changes or Changes(), observer or default_observer()
    create_pending(folder, trust=trust)
    runs = open_runs(folder)
    for name in set(retry) & set(OLD_CLASSES):
        observer.note(f"The class {name} is now called {OLD_CLASSES[name]}.")
    retry = [OLD_CLASSES.get(name, name) for name in retry]
    if retry:
        there = Counter(name for run in runs for record in run.records() for name in failure_classes(record))
        for name in retry:
            if name not in there:
                known = ", ".join(f"{each} {count:,}" for each, count in sorted(there.items())) or "none"
                raise RunError(
                    f"No question of {folder} failed with {name!r}.", "For ", Option("retry"), f" choose from: {known}"
                )
    folders = [run.folder for run in runs]
    starts = [
        partial(
            resume_run_in,
            each,
            changes,
            observer,
            retry=retry,
            trust=trust,
            others=[other for other in folders if other != each],
        )
        for each in folders
    ]
    if folders == [folder]:
        if held(folder.parent / LOCK):
            raise RunError(
                f"Another kgqa is running in {folder.parent} and will resume {folder.name}.",
                f"Wait until all runs are done; see kgqa eval status {folder.parent}",
            )
        return in_turn(starts, observer)
    with locked_group(folder):
        return in_turn(starts, observer, group=folder)


def resume_run_in(
    path: Path,
    changes: Changes,
    observer: RunObserver,
    *,
    retry: Sequence[str] = (),
    trust: bool = False,
    estimate: bool = False,
    others: Sequence[Path] = (),
) -> RunResult:
    """Resume one run; see `resume`.

    Args:
        estimate: ask a few questions only.
        others: folders of the runs that share the budget.
    """
    with resume_run(path) as (folder, run):
        again = {record.id for record in run.records() if outage_class(record) or failure_classes(record) & set(retry)}
        if not again and 0 < run.questions <= len(folder.done):
            write_metrics(folder, run)
            return RunResult(run, run.questions, len(folder.done), True, path)
        check_own_run(run, trust, path, MANIFEST)
        plan = plan_of(run)
        # the workers of a cluster may ask more questions at a time than this machine did
        concurrency = changes.concurrency or (None if changes.ray else plan.concurrency)
        plan = replace(plan, concurrency=concurrency, keep_going=changes.keep_going, ray=changes.ray)
        if changes.budget is not None:
            plan = replace(plan, budget=changes.budget)
        settings = with_model_concurrency(settings_of(run, changes.settings), plan.in_flight)
        questions = select_questions(plan).questions
        with (
            open_resources(settings=settings, say=observer.note) as resources,
            opened_cluster(plan, resources) as cluster,
        ):
            if plan.budget is not None and resources.models is not None:
                resources.models.require_prices(Option("budget"))
            for note in notes_on_changes(run, questions, resources):
                observer.note(note)
            # run.json is changed only after the graph was checked
            spent = sum(record.cost or 0.0 for record in run.records() if record.id in again)
            manifest = resumed_manifest(run, resources, changes.settings, spent=spent)
            if manifest != run.manifest:
                record_ownership(manifest, resources.settings)
                folder.write(MANIFEST, manifest)
            if again:
                folder.remove(lambda record: record.id in again)
                failed = "1 failed question" if len(again) == 1 else f"{len(again):,} failed questions"
                observer.note(f"Asking {failed} again.")
            spent = manifest.get("forgotten_cost", 0.0) + sum(map(_spent, others))
            label = f"{run.name}: " if others else ""
            return ask_remaining(
                plan,
                questions,
                resources,
                folder,
                observer,
                estimate=estimate,
                spent=spent,
                label=label,
                cluster=cluster,
            )


def create_pending(group: Path, *, trust: bool = False) -> None:
    """Create the runs of a group that a killed process had not yet created.

    Raises:
        RunError: another user may have planned the runs, or a folder cannot be written.
    """
    if (group / BATCH).exists():
        with locked_group(group):
            for run in pending_runs(group):
                check_own_run(run, trust, group, BATCH)
            create_pending_runs(group)


def failure_classes(record: Record) -> set[str]:
    """Return the values of `retry` that select a record; failure classes of kgqa 0.1 get their current names."""
    failed: set[str] = set()
    if record.status == "failed":
        failed = {"failed", OLD_CLASSES.get(record.failure, record.failure)} - {""}
    return failed | ({record.status} - {"answered"})


def _spent(path: Path) -> float:
    """Compute the cost of a run so far, in USD."""
    run = open_run(path)
    return float(run.manifest.get("forgotten_cost", 0.0)) + sum(record.cost or 0.0 for record in run.records())
