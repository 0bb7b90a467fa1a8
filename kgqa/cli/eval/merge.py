"""`kgqa eval merge`: merge the shards of a run."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.eval.results import print_results
from kgqa.cli.options import JSON, say, verbosity_options
from kgqa.evaluation.runs.merging import merge_runs


@click.command("merge")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="folder for the merged run"
)
@JSON
@verbosity_options
def command(folders: tuple[Path, ...], out: Path, as_json: bool) -> int:
    """Merge the shards of a run."""
    run = merge_runs(folders, out)
    say(f"kgqa: Merged {len(folders)} shards into {out}. Show the scores with: kgqa report {out}")
    print_results([run], as_json)
    return 0
