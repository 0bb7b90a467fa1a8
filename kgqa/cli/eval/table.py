"""`kgqa eval table`: the tables of the thesis, measured here, beside the printed figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kgqa.answer_json import json_text
from kgqa.cli.eval.console import EXIT_INTERRUPTED, ConsoleObserver
from kgqa.cli.options import JSON, graph_options, setting_option, verbosity_options
from kgqa.evaluation.published.table_runs import FilledTable, TableOptions, fill_table
from kgqa.evaluation.published.thesis_tables import ThesisTable, as_text, read_models, tables
from kgqa.evaluation.runs.plan import DEFAULT_CONCURRENCY


@click.command("table")
@click.argument("number", type=click.Choice(["5.2", "5.3", "5.4", "5.5"]))
@click.option(
    "--models",
    "models_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="where the language models are; a file like models.toml of the project",
)
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    metavar="NAME=SOURCE",
    help="questions of a column, such as cwq=cwq:test.json; may be repeated [found by name: docs/datasets.md]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs/tables"),
    show_default=True,
    metavar="FOLDER",
    help="folder for the runs",
)
@click.option("--sample", type=click.IntRange(1), help="questions per data set [as in the table]")
@click.option("--seed", type=int, default=0, show_default=True, help="seed of the sample")
@click.option("--ours", is_flag=True, help="with our changes to the published methods, instead of --as-published")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 512),
    default=DEFAULT_CONCURRENCY,
    show_default=True,
    help="questions asked at once",
)
@graph_options
@setting_option("rank.embeddings", "--embeddings")
@JSON
@verbosity_options
def command(
    number: str,
    models_file: Path | None,
    datasets: tuple[str, ...],
    out: Path,
    sample: int | None,
    seed: int,
    ours: bool,
    concurrency: int,
    graph_path: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Fill a table of the thesis: every model and method on every data set, as published.

    A model or data set that is not available is printed as "not run". Existing runs are resumed, so a table may be
    stopped and filled later.

    \b
    Exit codes: 0 done, 1 a run with model and data set did not finish, 130 Ctrl-C.
    """
    table = tables()[number]
    models = read_models(models_file) if models_file else {}
    named = dict(each.split("=", 1) for each in datasets if "=" in each)
    if wrong := [each for each in datasets if "=" not in each] or sorted(set(named) - set(table.columns)):
        raise click.UsageError(
            f"--dataset takes NAME=SOURCE with NAME one of {', '.join(table.columns)}, not {wrong[0]}"
        )
    settings = {name.replace("__", "."): value for name, value in options.items()}
    settings |= {"graph.path": graph_path} | ({} if ours else {"ask.preset": "as-published"})
    how = TableOptions(named, settings, sample=sample, seed=seed, concurrency=concurrency)
    filled = fill_table(table, models, out, how, ConsoleObserver())
    titles = {name: place.title for name, place in models.items()}
    if as_json:
        print(json_text(_object(table, titles, filled), indent=2))
    else:
        print(as_text(table, titles, filled.cells))
    if filled.interrupted:
        return EXIT_INTERRUPTED
    return 1 if filled.failed else 0


def _object(table: ThesisTable, titles: dict[str, str], filled: FilledTable) -> dict[str, Any]:
    rows = [
        {
            "model": titles.get(row.model, row.model),
            "label": row.label,
            "method": row.method,
            "settings": dict(row.settings),
            "cells": {
                column: {"printed": cell.printed, "measured": cell.measured, "n": cell.n}
                for column, cell in zip(table.columns, line, strict=True)
            },
        }
        for row, line in zip(table.rows, filled.cells, strict=True)
    ]
    return {"table": table.name, "title": table.title, "sample": table.sample, "rows": rows}
