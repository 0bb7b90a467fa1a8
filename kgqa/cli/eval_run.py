"""Runs of `kgqa eval`: begins them or goes on, shows how far they are, and what came out."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgqa.cli.options import say, verbosity


if TYPE_CHECKING:
    from kgqa.evaluation.manifest import Plan
    from kgqa.evaluation.questions import GoldQuestion
    from kgqa.evaluation.run_folder import RunFolder
    from kgqa.evaluation.runner import Progress, Stop
    from kgqa.evaluation.runs import Run
    from kgqa.methods.resources import Resources
    from kgqa.settings import Settings

EXIT_STOPPED = 3
DEFAULT_CONCURRENCY = 8
TRIED_FIRST = 5
"""Questions after which it is said what all of them will cost."""
SHOWN = ("hit@1", "f1", "em")


def begin(dataset: str, runs: Sequence[tuple[Settings, Path]], options: dict[str, Any], as_json: bool) -> int:
    """Begin one run after the other."""
    from kgqa.evaluation.manifest import Plan
    from kgqa.evaluation.run_questions import chosen_questions

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
    questions = chosen_questions(plan)
    only_tried = options["estimate"]
    if len(runs) == 1:
        ((settings, out),) = runs
        return _in_turn([partial(new_run, plan, settings, out, questions, only_tried=only_tried)], as_json)
    # all are begun before the first asks, so that one `resume` goes on with all of them
    for settings, out in runs:
        with _begun(plan, settings, out, questions):
            pass
    going = {"concurrency": None, "budget": None, "keep_going": plan.keep_going}
    starts = [partial(old_run, out, (), True, going, only_tried=only_tried) for _, out in runs]
    return _in_turn(starts, as_json, only_tried=only_tried)


def _in_turn(starts: Sequence[Callable[[], tuple[int, Run]]], as_json: bool, *, only_tried: bool = False) -> int:
    """One run after the other until one is stopped; then shows those there are. The exit code of the last."""
    code, shown = 0, []
    for start in starts:
        code, run = start()
        shown.append(run)
        if code and not (only_tried and code == EXIT_STOPPED):
            break
    for run in shown:
        show(run, as_json)
    return code


@contextmanager
def _begun(
    plan: Plan, settings: Settings, out: Path, questions: Sequence[GoldQuestion]
) -> Iterator[tuple[Resources, RunFolder]]:
    from kgqa.evaluation.manifest import manifest_of, remember_own
    from kgqa.evaluation.run_folder import begun
    from kgqa.methods.ask import open_resources

    with open_resources(settings=_enough_for(settings, plan.concurrency), say=say) as resources:
        manifest = manifest_of(plan, questions, resources)
        with begun(out, manifest) as folder:
            remember_own(manifest, resources.settings)
            yield resources, folder


def new_run(
    plan: Plan, settings: Settings, out: Path, questions: Sequence[GoldQuestion], *, only_tried: bool = False
) -> tuple[int, Run]:
    """Begin a run; its exit code, and the run as it is then."""
    with _begun(plan, settings, out, questions) as (resources, folder):
        return _run(plan, questions, resources, folder, only_tried=only_tried)


def go_on(path: Path, retry: Sequence[str], trust: bool, options: dict[str, Any], as_json: bool) -> int:
    """Go on with every run of a folder that is not done."""
    from kgqa.evaluation.runs import open_runs

    return _in_turn([partial(old_run, found.folder, retry, trust, options) for found in open_runs(path)], as_json)


def old_run(
    path: Path, retry: Sequence[str], trust: bool, options: dict[str, Any], *, only_tried: bool = False
) -> tuple[int, Run]:
    """Go on with a run; its exit code, and the run as it is then."""
    from dataclasses import replace

    from kgqa.evaluation.manifest import check_same, is_own, plan_of, settings_of
    from kgqa.evaluation.run_folder import gone_on
    from kgqa.evaluation.run_questions import chosen_questions
    from kgqa.evaluation.runs import RunError
    from kgqa.methods.ask import open_resources
    from kgqa.settings import resolve

    with gone_on(path) as (folder, run):
        if not trust and not is_own(run.manifest, resolve()):
            raise RunError(
                "You have not begun this run here, and its settings say which servers and models are asked. Look at "
                f"{path}/run.json, and if you trust it: kgqa eval resume --trust {path}"
            )
        plan = plan_of(run)
        plan = replace(plan, concurrency=options["concurrency"] or plan.concurrency, keep_going=options["keep_going"])
        if options["budget"] is not None:
            plan = replace(plan, most_cost=options["budget"])
        given = {name.replace("__", "."): value for name, value in options.items() if "__" in name}
        settings = _enough_for(settings_of(run, given), plan.concurrency)
        questions = chosen_questions(plan)
        again = {record.id for record in run.records() if _is_among(record, retry)}
        if not again and all(question.id in folder.done for question in questions):
            _write_metrics(folder, run)
            return 0, run
        with open_resources(settings=settings, say=say) as resources:
            for note in check_same(run, questions, resources):
                say(f"kgqa: {note}")
            # not before the graph is there and the one it was
            if again:
                folder.forget(lambda record: record.id in again)
                say(f"kgqa: {len(again):,} questions that failed are asked again.")
            return _run(plan, questions, resources, folder, only_tried=only_tried)


def _is_among(record: Any, classes: Sequence[str]) -> bool:
    return record.status == "failed" and ("failed" in classes or record.failure in classes) or record.status in classes


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
) -> tuple[int, Run]:
    """Ask what is left; the exit code, and the run as it is now."""
    from kgqa.evaluation.runner import Progress, Stop, run_questions
    from kgqa.evaluation.runs import Run, open_run

    progress = Progress(total=len(questions))
    for record in Run(folder.path, {}).records():
        progress.add(record, asked=False)
    stop = Stop()
    with _stopping(stop, folder.path) as stopped_at_once, _Bar(progress) as bar:

        def told(now: Progress) -> None:
            bar.show(now)
            if now.asked >= TRIED_FIRST and not bar.estimated and now.total - now.done > 0:
                bar.estimated = True
                if only_tried or now.cost is not None:
                    bar.say(f"kgqa: {_estimate(now)}")

        run_questions(
            _tried(questions, folder) if only_tried else questions,
            resources,
            folder,
            progress=progress,
            concurrency=plan.concurrency,
            topics=plan.topics,
            losses=plan.losses,
            most_cost=plan.most_cost,
            keep_going=plan.keep_going,
            stop=stop,
            told=told,
        )
    if only_tried:
        stop.why = stop.why or "only an estimate was asked for"
    run = open_run(folder.path)
    _write_metrics(folder, run)
    left = len(questions) - progress.done
    if stop.now.is_set():
        say(f"kgqa: Stopped at once; {progress.done:,} of {len(questions):,} are kept. Go on: {_way(folder.path)}")
        stopped_at_once()
    if left:
        why = f", because {stop.why}" if stop.why else ""
        say(f"kgqa: {progress.done:,} of {len(questions):,} questions are done{why}. Go on: {_way(folder.path)}")
        return (EXIT_STOPPED if stop.why else 130), run
    return 0, run


def _tried(questions: Sequence[GoldQuestion], folder: RunFolder) -> Sequence[GoldQuestion]:
    """A few questions, evenly over the whole of them."""
    from kgqa.evaluation.questions import spread

    return spread([question for question in questions if question.id not in folder.done], TRIED_FIRST)


def _write_metrics(folder: RunFolder, run: Run) -> None:
    from kgqa.evaluation.aggregate import summary_of
    from kgqa.evaluation.runs import METRICS

    folder.write(METRICS, summary_of(run.records()))


def _way(path: Path) -> str:
    return f"kgqa eval resume {path}"


def _estimate(progress: Progress) -> str:
    """What the rest will take, from what was asked so far."""
    left = progress.total - progress.done
    seconds = progress.seconds / max(1, progress.asked) * left
    cost = "" if progress.cost is None else f" and {progress.cost / max(1, progress.done) * left:.2f} USD"
    return f"Judged by the first {progress.asked} questions, the other {left:,} take about {_duration(seconds)}{cost}."


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


@contextmanager
def _stopping(stop: Stop, path: Path) -> Iterator[Callable[[], None]]:
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


class _Bar:
    """Progress: done, rate, time left, running scores, cost, failures by class. On a terminal only; elsewhere a line for
    every tenth."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bar: Any = None
        self._said = 0
        self.estimated = False

    def __enter__(self) -> _Bar:
        from tqdm import tqdm

        if verbosity() >= 0:
            total, done = self._progress.total, self._progress.done
            self._bar = tqdm(total=total, initial=done, unit="q", disable=None, file=sys.stderr, smoothing=0.05)
            self._said = 10 * done // max(1, total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, progress: Progress) -> None:
        if self._bar is None:
            return
        text = _running(progress)
        if self._bar.disable:
            tenth = 10 * progress.done // max(1, progress.total)
            if tenth > self._said:
                self._said = tenth
                say(f"kgqa: {progress.done:,} of {progress.total:,}: {text}")
            return
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(progress.done - self._bar.n)

    def say(self, text: str) -> None:
        if self._bar is not None and not self._bar.disable:
            self._bar.write(text, file=sys.stderr)
        else:
            say(text)


def _running(progress: Progress) -> str:
    parts = [f"{name} {100 * progress.mean(name):.1f}" for name in SHOWN]
    if progress.cost is not None:
        parts.append(f"{progress.cost:.3f} USD")
    parts += [f"{name} {count}" for name, count in progress.failures.most_common(3)]
    return ", ".join(parts)


def show(run: Run, as_json: bool) -> None:
    """Print how right a run is."""
    from kgqa.answer_json import json_text
    from kgqa.report.comparison import compare
    from kgqa.report.tables import as_text

    if as_json:
        print(json_text({"run": str(run.folder), "method": run.name, **run.metrics()}))
    else:
        print(as_text(compare([run])))


def show_status(path: Path, as_json: bool) -> int:
    from kgqa.answer_json import json_text
    from kgqa.evaluation.runner import Progress
    from kgqa.evaluation.runs import LOCK, open_runs
    from kgqa.lock_files import held

    found = []
    for run in open_runs(path):
        progress = Progress(total=int((run.manifest.get("dataset") or {}).get("questions", 0)))
        for record in run.records():
            progress.add(record, asked=False)
        found.append(
            {
                "run": str(run.folder),
                "method": run.name,
                "questions": progress.total,
                "done": progress.done,
                "running": held(run.folder / LOCK),
                "statuses": dict(progress.statuses),
                "failures": dict(progress.failures),
                "scores": {name: progress.mean(name) for name in SHOWN},
                "cost": progress.cost,
            }
        )
        if not as_json:
            _print_status(found[-1], progress)
    if as_json:
        print(json_text(found, indent=2))
    return 0


def _print_status(line: dict[str, Any], progress: Progress) -> None:
    state = "running" if line["running"] else "done" if line["done"] >= line["questions"] else "stopped"
    print(f"{line['run']}  {line['method']}: {line['done']:,} of {line['questions']:,} questions, {state}")
    if progress.done:
        print(f"  so far  {_running(progress)}")
        print("  status  " + ", ".join(f"{name} {count:,}" for name, count in progress.statuses.most_common()))
    if progress.failures:
        print("  failed  " + ", ".join(f"{name} {count:,}" for name, count in progress.failures.most_common()))
    if state == "stopped":
        print(f"  go on   {_way(Path(line['run']))}")
