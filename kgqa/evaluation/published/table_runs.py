"""Runs that measure a table of the thesis: every language model and method on every data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa.errors import KgqaError, SettingsError
from kgqa.evaluation.published.thesis_tables import ModelPlace, TableCell, ThesisTable, cell_of
from kgqa.evaluation.runs.plan import RunPlan, Selection, select_questions
from kgqa.evaluation.runs.progress import RunObserver
from kgqa.evaluation.runs.resume import Changes, resume_run_in
from kgqa.evaluation.runs.start import has_run, start_run
from kgqa.settings import resolve


@dataclass(frozen=True)
class FilledTable:
    """The cells of a table, by row and column.

    `interrupted`: Ctrl-C stopped the runs; `failed`: a run whose model and data set are available did not finish.
    """

    cells: list[list[TableCell]]
    interrupted: bool = False
    failed: bool = False


@dataclass(frozen=True)
class TableOptions:
    """Options of the runs that fill a table.

    `datasets`: source of questions by column; for the remaining columns, questions are found in the folder
    KGQA_DATASETS; `settings`: settings of all runs, by key; `sample`: questions per data set, None for the number in
    the thesis.
    """

    datasets: Mapping[str, str]
    settings: Mapping[str, Any]
    sample: int | None = None
    seed: int = 0
    concurrency: int | None = None


def fill_table(
    table: ThesisTable, models: Mapping[str, ModelPlace], out: Path, options: TableOptions, observer: RunObserver
) -> FilledTable:
    """Run every row of a table on every column, and resume existing runs.

    Cells whose model or data set is not available are left empty, and the observer gets a note.

    Raises:
        QuestionFileError: a data set given in `options` cannot be read.
        SettingsError: a setting is wrong.
        RunError: a folder in `out` contains a run with different settings.
    """
    questions = _selections(table, options, observer)
    cells: list[list[TableCell]] = []
    interrupted = failed = False
    for row in table.rows:
        line: list[TableCell] = []
        place = models.get(row.model)
        for column, printed in zip(table.columns, row.printed, strict=True):
            line.append(TableCell(printed, None))
            if interrupted or column not in questions or place is None or not place.llm:
                continue
            plan, selection = questions[column]
            folder = out / table.name / row.folder / column
            given = {**options.settings, **row.settings, "ask.method": row.method, "llm.model": place.llm}
            settings = resolve(given)
            exists = has_run(folder, plan, settings)
            try:
                if exists:
                    changes = Changes({"llm.model": place.llm}, concurrency=options.concurrency)
                    result = resume_run_in(folder, changes, observer)
                else:
                    result = start_run(plan, settings, folder, selection, observer)
            except SettingsError:
                raise
            except KgqaError as error:
                observer.note(f"{row.label} with {place.title} on {column} is not run: {error}")
                failed = True
                continue
            if result.interrupted or result.complete:
                line[-1] = cell_of(printed, result.run.metrics())
            else:  # the model or the graph does not reply; the remaining rows may use a different model
                failed = True
            interrupted = result.interrupted
        cells.append(line)
    for model in dict.fromkeys(row.model for row in table.rows):
        if model not in models or not models[model].llm:
            title = models[model].title if model in models else model
            observer.note(
                f"{title} is not run: the file given with --models has no address (llm) for this language model."
            )
    return FilledTable(cells, interrupted, failed)


def _selections(
    table: ThesisTable, options: TableOptions, observer: RunObserver
) -> dict[str, tuple[RunPlan, Selection]]:
    found = {}
    for column in table.columns:
        source = options.datasets.get(column, column)
        sample = options.sample or table.sample
        plan = RunPlan(source, sample=sample, seed=options.seed, concurrency=options.concurrency)
        try:
            found[column] = plan, select_questions(plan)
        except KgqaError as error:
            if column in options.datasets:
                raise
            observer.note(f"{column} is not run: {error}")
    return found
