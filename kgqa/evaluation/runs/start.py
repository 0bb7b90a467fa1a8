"""Starts runs: creates the folders of runs and asks the questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from kgqa.errors import ClusterError
from kgqa.evaluation.runs.manifest import differences, new_manifest
from kgqa.evaluation.runs.plan import RunPlan, Selection, select_questions
from kgqa.evaluation.runs.progress import RunObserver, RunResult, default_observer
from kgqa.evaluation.runs.remaining import ask_remaining, in_turn, locked_group, record_own_run, with_model_concurrency
from kgqa.evaluation.runs.resume import Changes, create_pending, resume_run_in
from kgqa.evaluation.runs.run_files import MANIFEST, RunError, is_name, open_run
from kgqa.evaluation.runs.run_folder import create_run, create_runs
from kgqa.evaluation.runs.workers import opened_cluster
from kgqa.methods.ask import open_resources
from kgqa.methods.resources import Resources
from kgqa.settings.values import GIVEN, Settings, resolve
from kgqa.text.hints import Option

SettingsLike = Settings | Mapping[str, Any] | None
"""Settings; or values by key, with all other values from the user's settings files and environment variables."""


def run(
    plan: RunPlan,
    out: str | Path,
    settings: SettingsLike = None,
    *,
    resume_existing: bool = False,
    estimate: bool = False,
    observer: RunObserver | None = None,
) -> RunResult:
    """Ask the questions of a plan and save every answer in the folder `out`.

    Args:
        settings: for example `{"ask.method": "top-1", "llm.model": "openai:gpt-4.1-mini"}`.
        resume_existing: if `out` contains a run with the same plan and settings, resume that run.
        estimate: ask only a few questions; `resume` asks the remaining questions.

    Raises:
        RunError: `out` already contains a run, or cannot be written.
        QuestionFileError, SettingsError, StoreError, ModelUnavailable: see `select_questions` and `open_resources`.
        ClusterError: the Ray cluster of the plan cannot be used.
    """
    return _start(plan, [(_resolved(settings), Path(out))], resume_existing, estimate, observer)[0]


def run_several(
    plan: RunPlan,
    out: str | Path,
    settings: Mapping[str, SettingsLike],
    *,
    resume_existing: bool = False,
    estimate: bool = False,
    observer: RunObserver | None = None,
) -> list[RunResult]:
    """Ask the same questions with several settings, one run after the other, each in a subfolder of `out`.

    All subfolders are created before the first question is asked. If a run stops early, the next runs are not started.

    Args:
        settings: the settings of each run, by name of the subfolder. Other arguments and errors are as for `run`.
    """
    for name in settings:
        if not is_name(name):
            raise RunError(f"{name!r} is not the name of a folder.", "Choose another name for this run")
    runs = [(_resolved(each), Path(out) / name) for name, each in settings.items()]
    return _start(plan, runs, resume_existing, estimate, observer)


def start_run(
    plan: RunPlan,
    settings: Settings,
    out: Path,
    selection: Selection,
    observer: RunObserver,
    *,
    estimate: bool = False,
) -> RunResult:
    """Create one run and ask its questions; see `run`."""
    with (
        _planned(plan, settings, selection, observer) as (resources, manifest),
        opened_cluster(plan, resources) as cluster,
    ):
        before = partial(record_own_run, manifest, resources.settings, out, observer)
        with create_run(out, manifest, before=before) as folder:
            try:
                return ask_remaining(
                    plan, selection.questions, resources, folder, observer, estimate=estimate, cluster=cluster
                )
            except ClusterError:  # nothing was asked
                (out / MANIFEST).unlink()
                raise


def has_run(out: Path, plan: RunPlan, settings: Settings) -> bool:
    """Whether a folder contains a run with this plan and these settings.

    Raises:
        RunError: the run in the folder has a different plan or different settings.
    """
    if not (out / MANIFEST).exists():
        return False
    if differs := differences(open_run(out), plan, settings):
        raise RunError(
            f"{out} already contains a run with another {', '.join(differs)}.", "Choose another folder: ", Option("out")
        )
    return True


def _resolved(settings: SettingsLike) -> Settings:
    return settings if isinstance(settings, Settings) else resolve(settings)


def _start(
    plan: RunPlan,
    runs: Sequence[tuple[Settings, Path]],
    resume_existing: bool,
    estimate: bool,
    observer: RunObserver | None,
) -> list[RunResult]:
    observer = observer or default_observer()
    selection = select_questions(plan)
    folders = [out for _, out in runs]
    group = folders[0].parent if len(folders) > 1 else None
    if group and resume_existing:
        create_pending(group)
    existing = [out for settings, out in runs if resume_existing and has_run(out, plan, settings)]
    new = [(settings, out) for settings, out in runs if out not in existing]
    if len(runs) == len(new) == 1:
        ((settings, out),) = runs
        return in_turn([partial(start_run, plan, settings, out, selection, observer, estimate=estimate)], observer)
    with locked_group(group) if group else nullcontext():
        if new:
            _create_all(plan, new, selection, observer)
        created = {out for _, out in new}
        starts = [
            partial(
                resume_run_in,
                out,
                _changes(plan, settings),
                observer,
                trust=out in created,
                estimate=estimate,
                others=[other for other in folders if other != out],
            )
            for settings, out in runs
        ]
        return in_turn(starts, observer, estimate=estimate, group=group)


def _changes(plan: RunPlan, settings: Settings) -> Changes:
    """Collect the changes to an existing run that this call makes."""
    given = settings.origins.get("llm.model") in GIVEN
    model = {"llm.model": settings.llm.model} if given else {}
    return Changes(model, concurrency=plan.concurrency, budget=plan.budget, keep_going=plan.keep_going, ray=plan.ray)


def _create_all(
    plan: RunPlan, runs: Sequence[tuple[Settings, Path]], selection: Selection, observer: RunObserver
) -> None:
    """Create all runs before the first question; `resume` then finds all of them."""
    made = []
    for settings, out in runs:
        with _planned(plan, settings, selection, observer) as (resources, manifest):
            made.append((out, manifest, resources.settings))

    def record_all() -> None:
        for out, manifest, settings in made:
            record_own_run(manifest, settings, out, observer)

    create_runs(
        runs[0][1].parent,
        {out.name: manifest for out, manifest, _ in made},
        before=record_all,
    )


def _check_rollouts(resources: Resources, observer: RunObserver) -> None:
    """Check that asking a question again can change its answer; note it if that is unlikely.

    Raises:
        RunError: there is no language model.
    """
    if resources.models is None:
        raise RunError(
            "Without a language model, all rollouts of a question are equal.", "Leave out ", Option("rollouts")
        )
    if not any(sampling.temperature for sampling in resources.models.sampling.values()):
        setting = Option("temperature", 1)
        observer.note(f"The temperature is 0, so the rollouts of a question may be equal. To vary them: {setting}")


@contextmanager
def _planned(
    plan: RunPlan, settings: Settings, selection: Selection, observer: RunObserver
) -> Iterator[tuple[Resources, dict[str, Any]]]:
    """Open the resources of a run, and build the object of its run.json."""
    with open_resources(settings=with_model_concurrency(settings, plan.in_flight), say=observer.note) as resources:
        if plan.budget is not None and resources.models is not None:
            resources.models.require_prices(Option("budget"))
        if plan.rollouts > 1:
            _check_rollouts(resources, observer)
        yield resources, new_manifest(plan, selection, resources)
