"""`kgqa export`: write the final query of every question of a run to files."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.options import JSON, print_result, verbosity_options
from kgqa.words import clean


@click.command("export")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--sparql",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write index.csv and one .rq file per question to this folder.",
)
@JSON
@verbosity_options
def command(folder: Path, sparql: Path, as_json: bool) -> None:
    """Write the final SPARQL query of every question of a run to files, to explain or run these queries.

    Each query file has the question's id and text as comments. Questions without a query are only in index.csv.

    \b
    Examples:
      kgqa export runs/x --sparql queries/
      kgqa explain queries/00001-....rq
    """
    # imported only here, because the module imports numpy and would slow down `kgqa export --help`
    from kgqa.evaluation.runs.run_files import open_runs
    from kgqa.report.export import write_queries

    done = write_queries(open_runs(folder), sparql)
    found = [{"folder": str(d.folder), "questions": d.questions, "queries": d.queries} for d in done]
    lines = (f"{clean(str(d.folder))}: {d.queries:,} queries for {d.questions:,} questions" for d in done)
    print_result(as_json, found, lines)
