"""`kgqa eval table`: measures tables of publications and prints them beside the published figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from kgqa.cli.eval.console import EXIT_INTERRUPTED, ConsoleObserver
from kgqa.cli.options import (
    JSON,
    GroupedCommand,
    check_usage,
    graph_options,
    print_result,
    setting_option,
    verbosity_options,
    whole,
)
from kgqa.evaluation.published.printed_tables import read_models, tables
from kgqa.evaluation.published.table_cells import as_object, as_text
from kgqa.evaluation.published.table_runs import TableOptions, fill_table
from kgqa.evaluation.runs.plan import DEFAULT_CONCURRENCY


@click.command("table", cls=GroupedCommand, heading="Table")
@click.argument("numbers", nargs=-1, required=True, type=click.Choice(list(tables())), metavar="NUMBER...")
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
    "--corpus",
    "corpora",
    multiple=True,
    metavar="NAME=FOLDER",
    help="corpus or graph for one column, such as musique=corpora/musique; musique.hyper=FOLDER: a corpus of "
    "hyperedges, for the rows that need one; may be repeated [--graph]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs/tables"),
    show_default=True,
    metavar="FOLDER",
    help="folder for the runs",
)
@click.option("--sample", type=whole(1), help="number of questions per data set [number in the publication]")
@click.option("--seed", type=whole(), default=0, show_default=True, help="seed for drawing the sample")
@click.option("--ours", is_flag=True, help="run the methods with kgqa's improvements [exactly as published]")
@click.option(
    "--concurrency",
    type=whole(1, 512),
    default=DEFAULT_CONCURRENCY,
    show_default=True,
    help="number of questions answered at the same time",
)
@graph_options
@setting_option("rank.embeddings")
@setting_option("rank.model")
@JSON
@verbosity_options
def command(
    numbers: tuple[str, ...],
    models_file: Path | None,
    datasets: tuple[str, ...],
    corpora: tuple[str, ...],
    out: Path,
    sample: int | None,
    seed: int,
    ours: bool,
    concurrency: int,
    graph_path: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Measure tables of publications: every language model and method on every data set.

    Cells without an available language model, data set or corpus are printed as "not run". A stopped table can be
    continued later, because existing runs are resumed.

    \b
    NUMBER is one of:
      5.2 to 5.5                      Tournament on Path
      tog3.1 to tog3.8                Think-on-Graph 3.0
      graphsearch.1 to graphsearch.4  GraphSearch; graphsearch.figure2, graphsearch.figure4 and
                                      graphsearch.5 to graphsearch.8 are its figures
      counselor.1 to counselor.5      Graph Counselor
      evograph.2, evograph.3          EvoGraph-R1
    Exit codes: 0 all available cells are measured, 1 a run did not finish, 130 Ctrl-C.
    """
    chosen = [tables()[number] for number in dict.fromkeys(numbers)]
    models = read_models(models_file) if models_file else {}
    columns = list(dict.fromkeys(column for table in chosen for column in table.columns))
    kinds = list(
        dict.fromkeys(
            f"{column}.{row.corpus}" for table in chosen for row in table.rows for column in table.columns if row.corpus
        )
    )
    settings = {name.replace("__", "."): value for name, value in options.items()}
    settings |= {"graph.path": graph_path} | ({} if ours else {"ask.preset": "as-published"})
    how = TableOptions(
        _named(datasets, "--dataset", "SOURCE", columns),
        settings,
        sample=sample,
        seed=seed,
        concurrency=concurrency,
        corpora=_named(corpora, "--corpus", "FOLDER", [*columns, *kinds]),
    )
    titles = {name: place.title for name, place in models.items()}
    objects: list[dict[str, Any]] = []
    failed = interrupted = False
    for table in chosen:
        filled = fill_table(table, models, out, how, ConsoleObserver())
        objects.append(as_object(table, titles, filled.cells, filled.notes))
        if not as_json:
            text = as_text(table, titles, filled.cells, filled.notes)
            print_result(False, None, [*([""] if len(objects) > 1 else []), text])
        failed, interrupted = failed or filled.failed, filled.interrupted
        if interrupted:
            break
    print_result(as_json, objects[0] if len(chosen) == 1 else objects, [])
    return EXIT_INTERRUPTED if interrupted else int(failed)


def _named(given: Sequence[str], option: str, value: str, columns: Sequence[str]) -> dict[str, str]:
    """Read the values of an option NAME=VALUE, in which NAME is a column."""
    named = dict(each.split("=", 1) for each in given if "=" in each)
    wrong = [*(each for each in given if "=" not in each), *sorted(set(named) - set(columns)), ""][0]
    choices = ", ".join(columns)
    check_usage((wrong, f"{option}: {wrong!r} is not NAME={value} with a NAME of this table. Choose from: {choices}"))
    return named
