"""`kgqa eval run | resume | merge`: ask the questions in a data set with one or several methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kgqa.cli.eval.console import ConsoleObserver, exit_code, print_results, say_next_steps
from kgqa.cli.options import (
    JSON,
    GroupedCommand,
    Number,
    asking_options,
    combined,
    graph_options,
    say,
    setting_option,
    settings_from,
    verbosity_options,
    whole,
)
from kgqa.evaluation.runs.merging import merge_runs
from kgqa.evaluation.runs.plan import DEFAULT_CONCURRENCY, RunPlan
from kgqa.evaluation.runs.resume import Changes, resume
from kgqa.evaluation.runs.start import run, run_several

run_options = combined(
    click.option(
        "--concurrency",
        type=whole(1, 512),
        help=f"number of questions answered at the same time [{DEFAULT_CONCURRENCY}]",
    ),
    setting_option("llm.concurrency", "--model-concurrency"),
    click.option("--budget", type=Number(0), metavar="USD", help="maximum cost of all runs of this command together"),
    click.option(
        "--ray",
        metavar="ADDRESS",
        help="ask on a Ray cluster: HOST:PORT, auto, or local for the processors of this machine; see docs/scale.md",
    ),
    click.option("--keep-going", is_flag=True, help="continue if the graph or the language model stops replying"),
    JSON,
    verbosity_options,
)


@click.command("run", cls=GroupedCommand, heading="Run")
@click.option("--dataset", required=True, metavar="[NAME:]FILE", help="questions; see docs/datasets.md")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="folder for the run")
@click.option(
    "--topics",
    type=click.Choice(["gold", "linked"]),
    default="gold",
    show_default=True,
    help="topic entities: given by the data set (gold), or found in the text of the question (linked)",
)
@click.option("--sample", type=whole(1), metavar="N", help="number of questions to draw at random; see --seed")
@click.option(
    "--shard", metavar="I/N", help="ask only the I-th of N parts, such as 1/4; `kgqa eval merge` merges the parts"
)
@click.option(
    "--rollouts",
    type=whole(1, 256),
    default=1,
    show_default=True,
    metavar="N",
    help="ask every question N times, with other seeds of the language model; scores are means over the rollouts",
)
@click.option("--losses", is_flag=True, help="also find out at which step right answers were lost; takes longer")
@click.option(
    "--resume", "resume_existing", is_flag=True, help="if FOLDER has a run with the same options, resume the run"
)
@click.option("--estimate", is_flag=True, help="ask only a few questions, and estimate time and cost of the others")
@graph_options
@asking_options
@run_options
def run_command(
    dataset: str,
    out: Path,
    graph_path: str | None,
    resume_existing: bool,
    estimate: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Ask the questions of a data set with one or several methods.

    \b
    --method accepts a list such as top-1,top-2,tog; each method gets a subfolder of FOLDER.
    Exit codes: 0 all questions asked, 1 error, or every question failed, 3 stopped early (budget, outage), 130 Ctrl-C.
    """
    methods = [name.strip() for name in (options.pop("ask__method", None) or "").split(",") if name.strip()]
    if len(set(methods)) != len(methods):
        raise click.UsageError("--method contains a method twice. Give each method once.")
    plan = RunPlan(
        dataset=dataset,
        topics=options["topics"],
        sample=options["sample"],
        seed=options["rank__seed"] or 0,
        shard=options["shard"] or "",
        concurrency=options["concurrency"],
        losses=options["losses"],
        budget=options["budget"],
        keep_going=options["keep_going"],
        rollouts=options["rollouts"],
        ray=options["ray"],
    )
    settings = [settings_from({**options, "ask__method": method}, graph_path) for method in methods or [None]]
    how: dict[str, Any] = {"resume_existing": resume_existing, "estimate": estimate}
    observer = ConsoleObserver(estimate=estimate)
    if len(methods) > 1:
        results = run_several(plan, out, dict(zip(methods, settings, strict=True)), observer=observer, **how)
    else:
        results = [run(plan, out, settings[0], observer=observer, **how)]
    print_results([result.run for result in results], as_json)
    say_next_steps(out)
    return exit_code(results)


@click.command("resume")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--retry",
    multiple=True,
    metavar="CLASS",
    help="also ask failed questions: `failed` for all, or a class of failure such as StoreTimeout; may be repeated",
)
@click.option("--trust", is_flag=True, help="use the settings in run.json although another user created the run")
@setting_option("llm.model")
@run_options
def resume_command(
    folder: Path,
    retry: tuple[str, ...],
    trust: bool,
    concurrency: int | None,
    budget: float | None,
    keep_going: bool,
    ray: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Resume a run: ask the remaining questions with the original settings.

    Questions that failed because of an outage are asked too; other failed questions only with --retry. A language
    model given with --llm is recorded in run.json.
    """
    settings = {name.replace("__", "."): value for name, value in options.items()}
    changes = Changes(settings, concurrency=concurrency, budget=budget, keep_going=keep_going, ray=ray)
    results = resume(folder, changes, retry=retry, trust=trust, observer=ConsoleObserver())
    print_results([result.run for result in results], as_json)
    say_next_steps(folder)
    return exit_code(results)


@click.command("merge")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="folder for the merged run"
)
@JSON
@verbosity_options
def merge_command(folders: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Merge the shards of a run."""
    run = merge_runs(folders, out)
    say(f"kgqa: Merged {len(folders)} shards into {out}.")
    print_results([run], as_json)
    say_next_steps(out)
