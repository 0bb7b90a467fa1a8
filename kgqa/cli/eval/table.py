"""`kgqa eval table`: measures a table of the thesis and prints it beside the published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kgqa.cli.eval.console import EXIT_INTERRUPTED, ConsoleObserver
from kgqa.cli.options import JSON, check_usage, graph_options, print_result, setting_option, verbosity_options
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
    help="TOML file with the address of each language model; for an example see models.toml in the repository",
)
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    metavar="NAME=SOURCE",
    help="questions for one column, such as cwq=cwq:test.json; may be repeated [file in the folder KGQA_DATASETS]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs/tables"),
    show_default=True,
    metavar="FOLDER",
    help="folder for the runs",
)
@click.option("--sample", type=click.IntRange(1), help="number of questions per data set [number in the thesis]")
@click.option("--seed", type=int, default=0, show_default=True, help="seed for drawing the sample")
@click.option("--ours", is_flag=True, help="run the methods with kgqa's improvements [exactly as published]")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 512),
    default=DEFAULT_CONCURRENCY,
    show_default=True,
    help="number of questions answered at the same time",
)
@graph_options
@setting_option("rank.embeddings")
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
    """Measure a table of the thesis: every language model and method on every data set.

    Cells without an available language model or data set are printed as "not run". A stopped table can be continued
    later, because existing runs are resumed.

    \b
    Exit codes: 0 all available cells are measured, 1 a run did not finish, 130 Ctrl-C.
    """
    table = tables()[number]
    models = read_models(models_file) if models_file else {}
    named = dict(each.split("=", 1) for each in datasets if "=" in each)
    wrong = [*(each for each in datasets if "=" not in each), *sorted(set(named) - set(table.columns)), ""][0]
    choices = ", ".join(table.columns)
    check_usage((wrong, f"{wrong!r} is not NAME=SOURCE with a NAME of this table. Choose from: {choices}"))
    settings = {name.replace("__", "."): value for name, value in options.items()}
    settings |= {"graph.path": graph_path} | ({} if ours else {"ask.preset": "as-published"})
    how = TableOptions(named, settings, sample=sample, seed=seed, concurrency=concurrency)
    filled = fill_table(table, models, out, how, ConsoleObserver())
    titles = {name: place.title for name, place in models.items()}
    print_result(as_json, _object(table, titles, filled), [as_text(table, titles, filled.cells)])
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
