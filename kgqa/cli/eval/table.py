"""`kgqa eval table`: the tables of the thesis, measured here, beside what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kgqa.cli.eval.run import DEFAULT_CONCURRENCY, EXIT_STOPPED, is_there, new_run, old_run
from kgqa.cli.options import JSON, graph_options, say, setting_option, settings_from, verbosity_options


@click.command("table")
@click.argument("number", type=click.Choice(["5.2", "5.3", "5.4", "5.5"]))
@click.option("--models", "models_file", type=click.Path(path_type=Path), metavar="FILE",
              help="Where the language models are: a file like models.toml of the project.")  # fmt: skip
@click.option("--dataset", "datasets", multiple=True, metavar="NAME=SOURCE",
              help="Where a column's questions are, such as cwq=cwq:test.json; repeat. [found by name: docs/datasets.md]")  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("runs/tables"), show_default=True, metavar="FOLDER"
)
@click.option("--sample", type=click.IntRange(1), help="Questions of each data set. [what the table says]")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sample.")
@click.option("--ours", is_flag=True, help="With our departures from what was published; else --as-published.")
@click.option("--concurrency", type=click.IntRange(1, 512), default=DEFAULT_CONCURRENCY, show_default=True)
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

    What is not to be had, a model or a data set, is printed as "not run". Runs that are there are gone on with,
    so a table may be stopped and made again.

    \b
    Exit codes: 0 done, 1 what was to be had could not be run, 130 Ctrl-C.
    """
    from kgqa.answer_json import json_text
    from kgqa.errors import KgqaError, SettingsError
    from kgqa.evaluation.published.thesis_tables import Cell, as_text, cell_of, read_models, tables
    from kgqa.evaluation.runs.manifest import Plan
    from kgqa.evaluation.runs.plan import chosen_questions

    table = tables()[number]
    places = read_models(models_file) if models_file else {}
    named = dict(each.split("=", 1) for each in datasets if "=" in each)
    if wrong := [each for each in datasets if "=" not in each] or sorted(set(named) - set(table.columns)):
        raise click.UsageError(f"--dataset NAME=SOURCE, NAME one of {', '.join(table.columns)}; wrong: {wrong[0]}")
    questions = {}
    for column in table.columns:
        plan = Plan(named.get(column, column), sample=sample or table.sample, seed=seed, concurrency=concurrency)
        try:
            questions[column] = plan, chosen_questions(plan)
        except KgqaError as error:
            if column in named:
                raise
            say(f"kgqa: {column} is not run: {error}")
    cells = []
    stopped = failed = 0
    for row in table.rows:
        line = []
        place = places.get(row.model)
        for column, printed in zip(table.columns, row.printed, strict=True):
            if stopped or column not in questions or place is None or not place.llm:
                line.append(Cell(printed, None))
                continue
            plan, chosen = questions[column]
            folder = out / number / row.folder / column
            given = {key.replace(".", "__"): value for key, value in row.settings.items()}
            preset = {} if ours else {"ask__preset": "as-published"}
            asked = {**options, **preset, **given, "ask__method": row.method, "llm__model": place.llm}
            settings = settings_from(asked, graph_path)
            there = is_there(folder, plan, settings)
            try:
                if there:
                    going = {"concurrency": concurrency, "keep_going": False, "budget": None, "llm__model": place.llm}
                    code, run = old_run(folder, (), False, going)
                else:
                    code, run = new_run(plan, settings, folder, chosen)
            except SettingsError:
                raise
            except KgqaError as error:
                say(f"kgqa: {row.label} with {place.title} on {column} is not run: {error}")
                line.append(Cell(printed, None))
                failed = 1
                continue
            if code == EXIT_STOPPED:  # the model or the graph is gone; another row may have another
                line.append(Cell(printed, None))
                failed = 1
                continue
            stopped = code
            line.append(cell_of(printed, run.metrics()))
        cells.append(line)
    titles = {name: place.title for name, place in places.items()}
    for model in dict.fromkeys(row.model for row in table.rows):
        if model not in places or not places[model].llm:
            say(f"kgqa: {titles.get(model, model)} is not run: --models FILE says nowhere where it is.")
    if as_json:
        print(json_text(_object(table, titles, cells), indent=2))
    else:
        print(as_text(table, titles, cells))
    return stopped or failed


def _object(table: Any, titles: dict[str, str], cells: Any) -> dict[str, Any]:
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
        for row, line in zip(table.rows, cells, strict=True)
    ]
    return {"table": table.name, "title": table.title, "sample": table.sample, "rows": rows}
