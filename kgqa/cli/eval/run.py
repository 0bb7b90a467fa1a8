"""`kgqa eval run`: ask the questions of a data set with one method or several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kgqa.cli.eval.console import ConsoleObserver, exit_code
from kgqa.cli.eval.options import run_options
from kgqa.cli.eval.results import print_results
from kgqa.cli.options import asking_options, graph_options, settings_from
from kgqa.evaluation.runs.plan import RunPlan
from kgqa.evaluation.runs.start import run, run_several


@click.command("run")
@click.option("--dataset", required=True, metavar="[NAME:]FILE", help="questions; see docs/datasets.md")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="folder for the run")
@click.option(
    "--topics",
    type=click.Choice(["gold", "linked"]),
    default="gold",
    show_default=True,
    help="topic entities: those of the data set (gold), or found in the question (linked)",
)
@click.option("--sample", type=click.IntRange(1), metavar="N", help="number of questions to draw, with --seed")
@click.option("--shard", metavar="I/N", help="ask only part I of N; `kgqa eval merge` merges the parts")
@click.option("--losses", is_flag=True, help="also find out where right answers were lost; takes longer")
@click.option("--resume", "resume_existing", is_flag=True, help="resume the run if it exists with the same options")
@click.option("--estimate", is_flag=True, help="ask a few questions only, and estimate time and cost of the others")
@graph_options
@asking_options
@run_options
def command(
    dataset: str,
    out: Path,
    graph_path: str | None,
    resume_existing: bool,
    estimate: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Ask the questions of a data set with one method or several.

    \b
    --method takes a list: top-1,top-2,tog. Each method then has a folder of its own in FOLDER.
    Exit codes: 0 done (whatever the scores), 1 an error, 3 stopped early or cut short by an outage, 130 Ctrl-C.
    """
    methods = [name.strip() for name in (options.pop("ask__method", None) or "").split(",") if name.strip()]
    if len(set(methods)) != len(methods):
        raise click.UsageError("--method names a method twice.")
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
    )
    settings = [settings_from({**options, "ask__method": method}, graph_path) for method in methods or [None]]
    how: dict[str, Any] = {"resume_existing": resume_existing, "estimate": estimate}
    observer = ConsoleObserver(estimate=estimate)
    if len(methods) > 1:
        results = run_several(plan, out, dict(zip(methods, settings, strict=True)), observer=observer, **how)
    else:
        results = [run(plan, out, settings[0], observer=observer, **how)]
    print_results([result.run for result in results], as_json)
    return exit_code(results)
