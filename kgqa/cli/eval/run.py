"""Runs of `kgqa eval`: begins them or goes on, shows how far they are, and what came out."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgqa.cli.eval.names_first import index_names
from kgqa.cli.eval.show import Bar, estimate, show, way
from kgqa.cli.options import say
from kgqa.lock_files import held, only_one

if TYPE_CHECKING:
    from kgqa.evaluation.datasets.questions import GoldQuestion
    from kgqa.evaluation.runs.manifest import Plan
    from kgqa.evaluation.runs.run_folder import RunFolder
    from kgqa.evaluation.runs.runner import Progress, Stop
    from kgqa.evaluation.runs.runs import Run
    from kgqa.methods.resources import Resources
    from kgqa.settings import Settings

    Chosen = tuple[list[GoldQuestion], list[GoldQuestion]]
    """The questions of a run, and those of all parts."""

EXIT_STOPPED = 3
DEFAULT_CONCURRENCY = 8
TRIED_FIRST = 5
"""Questions after which it is said what all of them will cost."""


def begin(
    dataset: str,
    runs: Sequence[tuple[Settings, Path]],
    options: dict[str, Any],
    as_json: bool,
    *,
    or_go_on: bool = False,
) -> int:
    """Begin one run after the other; with `or_go_on` a run that is there already, and the same, is gone on with."""
    from kgqa.evaluation.runs.manifest import Plan
    from kgqa.evaluation.runs.run_questions import chosen_questions

    plan = Plan(
        dataset=dataset,
        topics=options["topics"],
        sample=options["sample"],
        seed=options["rank__seed"] or 0,
        shard=options["shard"] or "",
        concurrency=options["concurrency"] or DEFAULT_CONCURRENCY,
        losses=options["losses"],
        most_cost=options["budget"],
        keep_going=options["keep_going"],
    )
    chosen = chosen_questions(plan)
    only_tried = options["estimate"]
    every = [out for _, out in runs]
    whole = every[0].parent if len(every) > 1 else None
    if whole and or_go_on:
        _finish_begin(whole)
    there = [out for settings, out in runs if or_go_on and is_there(out, plan, settings)]
    new = [(settings, out) for settings, out in runs if out not in there]
    if len(runs) == len(new) == 1:
        ((settings, out),) = runs
        return _in_turn([partial(new_run, plan, settings, out, chosen, only_tried=only_tried)], as_json)
    going = {"budget": options["budget"], "keep_going": plan.keep_going, "llm__model": options["llm__model"]}
    going["concurrency"] = options["concurrency"]
    begun = {out for _, out in new}
    with _alone(whole) if whole else nullcontext():
        if new:
            _begin_all(plan, new, chosen)
        return _in_turn(
            [
                partial(old_run, out, (), out in begun, going, only_tried=only_tried, others=[*{*every} - {out}])
                for out in every
            ],
            as_json,
            only_tried=only_tried,
            whole=whole,
        )


@contextmanager
def _alone(whole: Path) -> Iterator[None]:
    """Hold a folder of several runs.

    Raises:
        RunError: another process does, or it cannot be made.
    """
    from kgqa.evaluation.runs.runs import LOCK, RunError

    with ExitStack() as holding:
        try:
            whole.mkdir(parents=True, exist_ok=True)
            only = holding.enter_context(only_one(whole / LOCK))
        except OSError as error:
            raise RunError(f"{whole} cannot be written: {error.strerror}. Choose another folder: --out") from error
        if not only:
            raise RunError(f"Another kgqa is running in {whole}. Wait until it is done: kgqa eval status {whole}")
        yield


def is_there(out: Path, plan: Plan, settings: Settings) -> bool:
    """Whether a folder has a run already.

    Raises:
        RunError: it has one that was begun with something else.
    """
    from kgqa.evaluation.runs.manifest import differences
    from kgqa.evaluation.runs.runs import MANIFEST, RunError, open_run

    if not (out / MANIFEST).exists():
        return False
    if differs := differences(open_run(out), plan, settings):
        raise RunError(f"{out} has a run with another {', '.join(differs)}. Choose another folder for this one: --out")
    return True


def _begin_all(plan: Plan, runs: Sequence[tuple[Settings, Path]], chosen: Chosen) -> None:
    """Begin all runs before the first asks, so that one `resume` goes on with all of them; or none."""
    from kgqa.evaluation.runs.run_folder import begin_all

    made = []
    for settings, out in runs:
        with _planned(plan, settings, chosen) as (resources, manifest):
            made.append((out, manifest, resources.settings))
    manifests = {out.name: manifest for out, manifest, _ in made}
    begin_all(
        runs[0][1].parent,
        manifests,
        before=lambda: [_remember(manifest, settings, out) for out, manifest, settings in made],
    )


def _finish_begin(whole: Path, *, trust: bool = False) -> None:
    """Begin those of several runs that a process was killed before it had begun them.

    Raises:
        RunError: they are not this user's, or cannot be begun.
    """
    from kgqa.evaluation.runs.run_folder import finish_begin
    from kgqa.evaluation.runs.runs import BATCH, pending_runs

    if (whole / BATCH).exists():
        with _alone(whole):
            for run in pending_runs(whole):
                _check_own(run, trust, whole, BATCH)
            finish_begin(whole)


def _check_own(run: Run, trust: bool, path: Path, file: str) -> None:
    """Raises RunError where nobody knows that this user began a run, and nobody says that it can be trusted."""
    from kgqa.evaluation.runs.manifest import is_own
    from kgqa.evaluation.runs.runs import RunError
    from kgqa.settings import resolve

    if not trust and not is_own(run.manifest, resolve()):
        raise RunError(
            "You have not begun this run here, or that could not be noted then, and its settings say which servers and "
            f"models are asked. Look at {path}/{file}, and if you trust it: kgqa eval resume --trust {path}"
        )


def _remember(manifest: dict[str, Any], settings: Settings, out: Path) -> None:
    from kgqa.evaluation.runs.manifest import remember_own
    from kgqa.methods.ask import cache_of

    if not remember_own(manifest, settings):
        say(
            f"kgqa: {cache_of(settings).folder} cannot be written, so it is not noted that this run is yours. Resume it "
            f"with: kgqa eval resume --trust {out}. Or set KGQA_CACHE_FOLDER to a folder that can be written."
        )


def _in_turn(
    starts: Sequence[Callable[[], tuple[int, Run]]],
    as_json: bool,
    *,
    only_tried: bool = False,
    whole: Path | None = None,
) -> int:
    """One run after the other until one is stopped; then shows those there are. The exit code of the last.

    Args:
        whole: the folder of all, where there are several.
    """
    code, shown = 0, []
    for start in starts:
        code, run = start()
        shown.append(run)
        if code and not (only_tried and code == EXIT_STOPPED):
            break
    if whole and (left := len(starts) - len(shown)):
        say(f"kgqa: {left} more of {whole} {'waits' if left == 1 else 'wait'}. Go on with all of them: {way(whole)}")
    show(shown, as_json)
    return code


@contextmanager
def _planned(plan: Plan, settings: Settings, chosen: Chosen) -> Iterator[tuple[Resources, dict[str, Any]]]:
    """What a run needs, and what its run.json will say."""
    from kgqa.evaluation.runs.manifest import manifest_of
    from kgqa.methods.ask import open_resources

    with open_resources(settings=_enough_for(settings, plan.concurrency), say=say) as resources:
        if plan.most_cost is not None and resources.models is not None:
            resources.models.require_prices("--budget")
        questions, whole = chosen
        yield resources, manifest_of(plan, questions, resources, whole=whole)


def new_run(plan: Plan, settings: Settings, out: Path, chosen: Chosen, *, only_tried: bool = False) -> tuple[int, Run]:
    """Begin a run; its exit code, and the run as it is then."""
    from kgqa.evaluation.runs.run_folder import begun

    with _planned(plan, settings, chosen) as (resources, manifest):
        with begun(out, manifest, before=partial(_remember, manifest, resources.settings, out)) as folder:
            return _run(plan, chosen[0], resources, folder, only_tried=only_tried)


def go_on(path: Path, retry: Sequence[str], trust: bool, options: dict[str, Any], as_json: bool) -> int:
    """Go on with every run of a folder that is not done."""
    from kgqa.evaluation.runs.runs import LOCK, RunError, open_runs

    path = Path(path)
    _finish_begin(path, trust=trust)
    runs = open_runs(path)
    if retry:
        there = Counter(name for run in runs for record in run.records() for name in _classes(record))
        for name in retry:
            if name not in there:
                known = ", ".join(f"{each} {count:,}" for each, count in sorted(there.items())) or "none"
                raise RunError(f"Nothing of {path} is {name!r}, so nothing is asked again; there are: {known}.")
    folders = [run.folder for run in runs]
    starts = [
        partial(old_run, each, retry, trust, options, others=[other for other in folders if other != each])
        for each in folders
    ]
    if folders == [path]:
        if held(path.parent / LOCK):
            raise RunError(f"Another kgqa is running in {path.parent}, and will come to {path.name}. Wait until then.")
        return _in_turn(starts, as_json)
    with _alone(path):
        return _in_turn(starts, as_json, whole=path)


def old_run(
    path: Path,
    retry: Sequence[str],
    trust: bool,
    options: dict[str, Any],
    *,
    only_tried: bool = False,
    others: Sequence[Path] = (),
) -> tuple[int, Run]:
    """Go on with a run; its exit code, and the run as it is then. `others`: runs that share its budget."""
    from dataclasses import replace

    from kgqa.evaluation.runs.manifest import check_same, gone_on_with, plan_of, remember_own, settings_of
    from kgqa.evaluation.runs.outages import outage_class
    from kgqa.evaluation.runs.run_folder import gone_on
    from kgqa.evaluation.runs.run_questions import chosen_questions
    from kgqa.evaluation.runs.runs import MANIFEST
    from kgqa.methods.ask import open_resources

    with gone_on(path) as (folder, run):
        again = {record.id for record in run.records() if outage_class(record) or _classes(record) & set(retry)}
        if not again and 0 < run.questions <= len(folder.done):
            _write_metrics(folder, run)
            return 0, run
        _check_own(run, trust, path, MANIFEST)
        plan = plan_of(run)
        plan = replace(plan, concurrency=options["concurrency"] or plan.concurrency, keep_going=options["keep_going"])
        if options["budget"] is not None:
            plan = replace(plan, most_cost=options["budget"])
        given = {name.replace("__", "."): value for name, value in options.items() if "__" in name}
        settings = _enough_for(settings_of(run, given), plan.concurrency)
        questions, _ = chosen_questions(plan)
        with open_resources(settings=settings, say=say) as resources:
            if plan.most_cost is not None and resources.models is not None:
                resources.models.require_prices("--budget")
            for note in check_same(run, questions, resources):
                say(f"kgqa: {note}")
            # not before the graph is there and the one it was
            spent = sum(_cost(record) for record in run.records() if record.id in again)
            manifest = gone_on_with(run, resources, given, spent=spent)
            if manifest != run.manifest:
                remember_own(manifest, resources.settings)
                folder.write(MANIFEST, manifest)
            if again:
                folder.forget(lambda record: record.id in again)
                say(f"kgqa: {len(again):,} questions that failed are asked again.")
            spent = manifest.get("forgotten_cost", 0.0) + sum(map(_spent, others))
            label = f"{run.name}: " if others else ""
            return _run(plan, questions, resources, folder, only_tried=only_tried, spent=spent, label=label)


def _spent(path: Path) -> float:
    """USD that a run has cost so far."""
    from kgqa.evaluation.runs.runs import open_run

    run = open_run(path)
    return run.manifest.get("forgotten_cost", 0.0) + sum(map(_cost, run.records()))


def _cost(record: Any) -> float:
    return (record.answer.get("usage") or {}).get("cost") or 0.0


def _classes(record: Any) -> set[str]:
    """What `--retry` may call a record."""
    failed = {"failed", record.failure} - {""} if record.status == "failed" else set()
    return failed | ({record.status} - {"answered"})


def _enough_for(settings: Settings, concurrency: int) -> Settings:
    """As many requests of a model at once as there are questions, where nobody said how many."""
    from kgqa.settings import Settings

    if settings.origins["llm.concurrency"] != "default" or settings["llm.concurrency"] >= concurrency:
        return settings
    return Settings({**settings.values, "llm.concurrency": concurrency}, settings.origins, settings.local)


def _run(
    plan: Plan,
    questions: Sequence[GoldQuestion],
    resources: Resources,
    folder: RunFolder,
    *,
    only_tried: bool = False,
    spent: float = 0.0,
    label: str = "",
) -> tuple[int, Run]:
    """Ask what is left; the exit code, and the run as it is now."""
    from kgqa.errors import StoreError
    from kgqa.evaluation.datasets.gold_names import with_names
    from kgqa.evaluation.datasets.questions import spread
    from kgqa.evaluation.runs.runner import Progress, Stop, run_questions
    from kgqa.evaluation.runs.runs import MANIFEST, Run, open_run

    progress = Progress(total=len(questions))
    for record in Run(folder.path, {}).records():
        progress.add(record, asked=False)
    left = [question for question in questions if question.id not in folder.done]
    if left:
        index_names(resources, needed=plan.topics == "linked")
    try:
        left = with_names(left, resources.graph)
    except StoreError as error:
        say(f"kgqa: Gold answers of which only ids are known stay without names: {error}")
    stop = Stop()
    with _stopping(stop) as stopped_at_once, Bar(progress, label) as bar:

        def told(now: Progress) -> None:
            bar.show(now)
            if now.asked >= TRIED_FIRST and not bar.estimated and now.total - now.done > 0:
                bar.estimated = True
                if only_tried or now.cost is not None:
                    bar.say(f"kgqa: {estimate(now, plan.concurrency)}")

        run_questions(
            spread(left, TRIED_FIRST) if only_tried else left,
            resources,
            folder,
            progress=progress,
            concurrency=plan.concurrency,
            topics=plan.topics,
            losses=plan.losses,
            most_cost=plan.most_cost,
            spent=spent,
            keep_going=plan.keep_going,
            stop=stop,
            told=told,
        )
    if stop.lost_cost:
        manifest = open_run(folder.path).manifest
        folder.write(MANIFEST, manifest | {"forgotten_cost": manifest.get("forgotten_cost", 0.0) + stop.lost_cost})
    if only_tried and not stop.asked:
        stop.why = stop.why or "only an estimate was asked for"
    run = open_run(folder.path)
    _write_metrics(folder, run)
    missing = len(questions) - progress.done
    again = way(folder.path.parent if label else folder.path)
    if stop.now.is_set():
        say(f"kgqa: Stopped at once; {progress.done:,} of {len(questions):,} are kept. Go on: {again}")
        stopped_at_once()
    if missing:
        why = f", because {stop.why.rstrip('.')}" if stop.why else ""
        # an exit code alone does not tell why
        text = f"kgqa: {label}{progress.done:,} of {len(questions):,} questions are done{why}. Go on: {again}"
        say(text, also_quiet=not stop.asked)
    elif progress.lost.total():
        named = ", ".join(f"{name} {count:,}" for name, count in progress.lost.most_common())
        text = (
            f"kgqa: {label}{progress.lost.total():,} questions were lost to servers ({named}). Ask them again: {again}"
        )
        say(text, also_quiet=True)
    # whoever asked for the end does not want the next run begun either
    return (130 if stop.asked else 0 if progress.whole else EXIT_STOPPED), run


def _write_metrics(folder: RunFolder, run: Run) -> None:
    from kgqa.evaluation.analysis.aggregate import summary_of
    from kgqa.evaluation.runs.runs import METRICS

    folder.write(METRICS, summary_of(run.records()))


@contextmanager
def _stopping(stop: Stop) -> Iterator[Callable[[], None]]:
    """Ctrl-C once: the questions in flight are finished. Twice: now. Gives what ends the process at once."""

    def asked(*_: object) -> None:
        if stop.ask():
            sys.stderr.write("\nkgqa: Finishing the questions in flight. Ctrl-C again stops at once.\n")

    def at_once() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)  # threads wait for servers; what they would bring is asked again

    try:
        before = signal.signal(signal.SIGINT, asked)
    except ValueError:  # not the main thread: whoever started it looks after signals
        yield at_once
        return
    try:
        yield at_once
    finally:
        signal.signal(signal.SIGINT, before)
