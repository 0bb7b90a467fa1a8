"""`kgqa eval`: ask the questions of a data set, keep every answer, and say how right they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kgqa.cli.eval.table import command as table
from kgqa.cli.options import JSON, asking_options, graph_options, say, setting_option, settings_from, verbosity_options

_COMMON = (
    click.option("--concurrency", type=click.IntRange(1, 512), default=None, help="Questions asked at once. [8]"),
    setting_option("llm.concurrency", "--model-concurrency"),
    click.option(
        "--budget",
        type=click.FloatRange(0),
        metavar="USD",
        help="What the whole run may cost, all its methods together.",
    ),
    click.option("--keep-going", is_flag=True, help="Go on even if graph or model do not answer any more."),
    JSON,
    verbosity_options,
)


def _common(function: Any) -> Any:
    for option in reversed(_COMMON):
        function = option(function)
    return function


@click.group("eval")
def command() -> None:
    """Ask the questions of a data set, and say how right the answers are.

    \b
    Every answer is on the disk as soon as it is there. Ctrl-C finishes what is in flight; whatever
    ends a run, `kgqa eval resume` goes on with it.

    \b
    Examples:
      kgqa eval run --dataset webqsp:WebQSP.test.json --graph http://127.0.0.1:8890/sparql --out runs/a
      kgqa eval run --dataset questions.jsonl.gz --graph mygraph/ --sample 200 --out runs/b
      kgqa eval run --method top-1,top-2,tog --llm openai:gpt-4.1-mini --dataset cwq:test.json --out runs/c
      kgqa eval resume runs/a
      kgqa report runs/a runs/b
    """


@command.command("run")
@click.option("--dataset", required=True, metavar="[NAME:]FILE", help="Questions: see docs/datasets.md.")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="Folder for the run.")
@click.option("--topics", type=click.Choice(["gold", "linked"]), default="gold", show_default=True,
              help="Topic entities: those of the data set, or found in the question.")  # fmt: skip
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N questions, drawn by --seed.")
@click.option("--shard", metavar="I/N", help="Only the I-th of N parts; `kgqa eval merge` puts them together.")
@click.option("--losses", is_flag=True, help="Also say where right answers were lost; takes longer.")
@click.option("--resume", "or_go_on", is_flag=True, help="Go on with the run if it is there already, and the same.")
@click.option("--estimate", is_flag=True, help="Ask only a few questions, and say what all would cost.")
@graph_options
@asking_options
@_common
def run(dataset: str, out: Path, graph_path: str | None, or_go_on: bool, as_json: bool, **options: Any) -> int:
    """Ask the questions of a data set with one method or several.

    \b
    --method takes a list: top-1,top-2,tog. Each has a folder of its own in FOLDER then.
    Exit codes: 0 done (whatever the scores), 1 an error, 3 stopped before the end or cut short by an outage, 130 Ctrl-C.
    """
    from kgqa.cli.eval.run import begin

    methods = [name.strip() for name in (options.pop("ask__method", None) or "").split(",") if name.strip()]
    if len(set(methods)) != len(methods):
        raise click.UsageError("--method names one method twice.")
    plans = [({**options, "ask__method": name}, out / name) for name in methods] if len(methods) > 1 else None
    plans = plans or [({**options, "ask__method": methods[0] if methods else None}, out)]
    runs = [(settings_from(each, graph_path), folder) for each, folder in plans]
    return begin(dataset, runs, options, as_json, or_go_on=or_go_on)


@command.command("resume")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--retry", multiple=True, metavar="CLASS",
              help="Ask again what failed: `failed` for all of it, or a class such as StoreTimeout; repeat for several.")  # fmt: skip
@click.option("--trust", is_flag=True, help="Use the settings of a run.json that you did not make here.")
@setting_option("llm.model", "--llm", metavar="MODEL")
@_common
def resume(folder: Path, retry: tuple[str, ...], trust: bool, as_json: bool, **options: Any) -> int:
    """Go on with a run: questions without an answer are asked, those that a server's outage took, and with --retry those
    that failed.

    Everything else is as it was when the run began, whatever is set today. A model given with --llm is noted in run.json.
    """
    from kgqa.cli.eval.run import go_on

    return go_on(folder, retry, trust, options, as_json)


@command.command("status")
@click.argument("folder", type=click.Path(path_type=Path))
@JSON
@verbosity_options
def status(folder: Path, as_json: bool) -> int:
    """How far a run is, what failed, and how right it is so far."""
    from kgqa.cli.eval.show import show_status

    return show_status(folder, as_json)


@command.command("merge")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="Folder for the whole.")
@JSON
@verbosity_options
def merge(folders: tuple[Path, ...], out: Path, as_json: bool) -> int:
    """Put the shards of a run together."""
    from kgqa.cli.eval.show import show
    from kgqa.evaluation.runs.merging import merged

    run = merged(folders, out)
    say(f"kgqa: {len(folders)} runs put together in {out}. Show it: kgqa report {out}")
    show([run], as_json)
    return 0


command.add_command(table, "table")
