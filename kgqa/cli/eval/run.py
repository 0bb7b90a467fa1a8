"""`kgqa eval run`: ask the questions in a data set with one or several methods."""

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
    help="topic entities: given by the data set (gold), or found in the text of the question (linked)",
)
@click.option("--sample", type=click.IntRange(1), metavar="N", help="number of questions to draw at random; see --seed")
@click.option(
    "--shard", metavar="I/N", help="ask only the I-th of N parts, such as 1/4; `kgqa eval merge` merges the parts"
)
@click.option("--losses", is_flag=True, help="also find out at which step right answers were lost; takes longer")
@click.option(
    "--resume", "resume_existing", is_flag=True, help="if FOLDER has a run with the same options, resume the run"
)
@click.option("--estimate", is_flag=True, help="ask only a few questions, and estimate time and cost of the others")
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
