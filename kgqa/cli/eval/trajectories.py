"""`kgqa trajectories export | show`: what a language model did, as files for training or as text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgqa.cli.options import JSON, Number, combined, print_result, say, verbosity_options

if TYPE_CHECKING:
    from kgqa.evaluation.metrics.rewards import RewardForm
    from kgqa.report.trajectories.export import ExportFormat

RUN = click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
REWARD_OPTIONS = combined(
    click.option(
        "--reward-form",
        "form",
        type=click.Choice(["published", "strict"]),
        default="published",
        show_default=True,
        help="published: two good calls excuse a bad end; strict: every turn must be well formed",
    ),
    click.option(
        "--weight",
        "weights",
        multiple=True,
        metavar="TERM=NUMBER",
        help="weight of a term of the reward: format, answer, retrieval, edits or cost; may be repeated",
    ),
)


@click.command("export")
@RUN
@click.option(
    "--format",
    "format_",
    type=click.Choice(["verl", "trl", "sft", "jsonl"]),
    required=True,
    help="verl: parquet and a reward function; trl: prompts, reward function and environment for GRPOTrainer; sft: "
    "chats with a high reward; jsonl: everything that is known",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FOLDER", help="folder to write")
@click.option(
    "--min-reward", type=Number(), metavar="X", help="only trajectories with at least this reward (sft, jsonl)"
)
@REWARD_OPTIONS
@JSON
@verbosity_options
def export(
    folder: Path,
    format_: ExportFormat,
    out: Path,
    min_reward: float | None,
    form: RewardForm,
    weights: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write the trajectories of RUN as files for training.

    \b
    Examples:
      kgqa trajectories export runs/x --format sft --min-reward 0.8 --out sft/
      kgqa trajectories export runs/x --format verl --out verl/
      kgqa trajectories export runs/x --format trl --reward-form strict --out trl/
    """
    from kgqa.cli.bars import StageBar
    from kgqa.evaluation.runs.run_files import open_runs
    from kgqa.report.trajectories.export import ExportPlan, export_trajectories

    if min_reward is not None and format_ in ("verl", "trl"):
        raise click.UsageError("--min-reward is only for --format sft and jsonl.")
    plan = ExportPlan(format_, min_reward, form, _weights(weights))
    runs = open_runs(folder)
    total = sum(run.questions for run in runs)
    with StageBar(leave=False) as bar:
        done = export_trajectories(runs, out, plan, on_progress=lambda count: bar("trajectories", count, total))
    rows = "1 row" if done.rows == 1 else f"{done.rows:,} rows"
    trajectories = "1 trajectory" if done.trajectories == 1 else f"{done.trajectories:,} trajectories"
    line = f"{rows} of {trajectories}, mean reward {done.mean_reward:.2f}: {out}"
    print_result(as_json, done.as_json(), [line])
    if format_ in ("verl", "trl"):
        say("kgqa: The Python file in the folder needs kgqa where the model is trained.")


@click.command("show")
@RUN
@REWARD_OPTIONS
@JSON
@verbosity_options
def show(folder: Path, form: RewardForm, weights: tuple[str, ...], as_json: bool) -> None:
    """Show the reward of every trajectory of RUN, with its terms.

    \b
    Examples:
      kgqa trajectories show runs/x
      kgqa trajectories show runs/x --reward-form strict --weight cost=0.1
    """
    from kgqa.evaluation.runs.run_files import open_runs
    from kgqa.report.trajectories.export import rewarded
    from kgqa.text.words import clean

    found = list(rewarded(open_runs(folder), form, _weights(weights)))
    data = [{"id": each.id, "group": each.group, "rollout": each.rollout, **terms.as_json()} for each, terms in found]
    lines = [
        f"{terms.total:6.2f}  format {terms.format:.1f}  answer {terms.answer:.2f}  turns {len(each.last_trial):2d}  "
        f"{clean(each.id)}  {clean(each.question)[:80]}"
        for each, terms in found
    ]
    print_result(as_json, data, lines or ["No question of the run has a trajectory."])


def _weights(given: tuple[str, ...]) -> dict[str, float]:
    found = {}
    for text in given:
        name, _, number = text.partition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            raise click.UsageError(f"--weight {text}: write TERM=NUMBER, such as cost=0.1.") from None
    return found
