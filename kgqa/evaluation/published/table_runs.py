"""Runs that measure a printed table: every language model and method on every data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.counts import COUNTS, counts_of
from kgqa.errors import KgqaError, SettingsError
from kgqa.evaluation.published.printed_tables import ModelPlace, PrintedTable, TableRow
from kgqa.evaluation.published.table_cells import CORPUS, JUDGED, TableCell, measured_values
from kgqa.evaluation.published.table_judges import CORRECT, RATED, compared, rated
from kgqa.evaluation.runs.plan import RunPlan, Selection, select_questions
from kgqa.evaluation.runs.progress import RunObserver, RunResult
from kgqa.evaluation.runs.resume import Changes, resume_run_in
from kgqa.evaluation.runs.start import has_run, start_run
from kgqa.methods.registry import method
from kgqa.settings.values import resolve
from kgqa.text.hints import Option


@dataclass(frozen=True)
class FilledTable:
    """The cells of a table, by row and column.

    `interrupted`: Ctrl-C stopped the runs; `failed`: a run whose model and data set are available did not finish;
    `notes`: whether topics were given or linked, and the embedding model.
    """

    cells: list[list[TableCell]]
    interrupted: bool = False
    failed: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableOptions:
    """Options of the runs that fill a table.

    `datasets`: source of questions by column; for the remaining columns, questions are found in the folder
    KGQA_DATASETS; `corpora`: corpus or graph by column; for the remaining columns, the setting `graph.path`;
    `settings`: settings of all runs, by key; `sample`: questions per data set, None for the number in the publication.
    """

    datasets: Mapping[str, str]
    settings: Mapping[str, Any]
    sample: int | None = None
    seed: int = 0
    concurrency: int | None = None
    corpora: Mapping[str, str] = field(default_factory=dict)


def fill_table(
    table: PrintedTable, models: Mapping[str, ModelPlace], out: Path, options: TableOptions, observer: RunObserver
) -> FilledTable:
    """Run every row of a table on every column, and resume existing runs.

    Cells whose model, data set or corpus is not available are left empty, and the observer gets a note.

    Raises:
        QuestionFileError: a data set given in `options` cannot be read.
        SettingsError: a setting is wrong.
        RunError: a folder in `out` contains a run with different settings.
        CorpusError: a corpus given in `options` cannot be read.
    """
    filler = _Filler(table, models, out, options, observer)
    cells = [[filler.cell(row, column) for column in table.columns] for row in table.rows]
    for model in table.models:
        if model not in models or not models[model].llm:
            title = models[model].title if model in models else model
            what = f"The judge {title}" if model == table.judge else title
            serve = f" Serve it: {models[model].serve}" if model in models and models[model].serve else ""
            observer.note(
                f"{what} is not run: give the address (llm) of this language model in a file, with "
                f"{Option('models', 'FILE')}.{serve}"
            )
    return FilledTable(cells, filler.interrupted, filler.failed, tuple(filler.notes()))


class _Filler:
    """Fills the cells of a table one after the other.

    `interrupted`, `failed`: as in `FilledTable`.
    """

    def __init__(
        self,
        table: PrintedTable,
        models: Mapping[str, ModelPlace],
        out: Path,
        options: TableOptions,
        observer: RunObserver,
    ) -> None:
        self.interrupted = self.failed = False
        self._table, self._models, self._options, self._observer = table, models, options, observer
        self._out = out / (table.runs or table.name)
        self._embeddings: dict[str, None] = {}
        self._questions = dict(self._selections())
        self._counts = dict(self._corpus_counts())
        self._judge = models[table.judge].llm if table.judge in models else ""

    def cell(self, row: TableRow, column: str) -> TableCell:
        """Return the cell of a row and a column; the runs that it needs are started or resumed."""
        counts = self._counts.get(column, {}) if row.method or not row.model else {}
        place = self._models.get(row.model)
        runs = [f"{row.folder}/{column}", *([f"{row.folder}/{column}-{row.against}"] if row.against else [])]
        if self.interrupted or not row.method or column not in self._questions or place is None or not place.llm:
            return TableCell(counts)
        if self._table.corpora and not self._corpus(row.corpus, column):
            return TableCell(counts)
        results = []
        for folder, name in zip(runs, (row.method, row.against)):
            variants = {**self._table.settings, **(row.settings if name == row.method else {})}
            result = self._run(row, column, place, self._out / folder, {**variants, "ask.method": name})
            if result is None:
                return TableCell(counts)
            results.append(result)
        metrics = results[0].run.metrics()
        values = counts | measured_values(metrics)
        judged = None
        if all(result.complete for result in results):
            judged = self._judged(row, column, [result.run.folder for result in results])
        return TableCell(values | (judged or {}), int(metrics.get("n", 0) or 0), judged is not None)

    def _run(
        self, row: TableRow, column: str, place: ModelPlace, folder: Path, variants: Mapping[str, Any]
    ) -> RunResult | None:
        """Start or resume one run; None if it did not come to an end, except by Ctrl-C."""
        plan, selection = self._questions[column]
        options = self._options
        given = {**options.settings, "llm.model": place.llm}
        if place.extra_body:
            given.setdefault("llm.extra_body", place.extra_body)
        if corpus := self._corpus(row.corpus, column):
            given["graph.path"] = corpus
        if stages := self._stages(variants["ask.method"]):
            given["llm.stages"] = {**stages, **(options.settings.get("llm.stages") or {})}
        settings = resolve(given, variants=variants)
        exists = has_run(folder, plan, settings)
        try:
            if exists:
                changes = Changes({"llm.model": place.llm}, concurrency=options.concurrency)
                result = resume_run_in(folder, changes, self._observer)
            else:
                result = start_run(plan, settings, folder, selection, self._observer)
        except SettingsError:
            raise
        except KgqaError as error:
            self._observer.note(f"{row.label} with {place.title} on {column} is not run: {error}")
            self.failed = True
            return None
        self.interrupted = result.interrupted
        self._embeddings[str(result.run.manifest.get("embeddings") or "none")] = None
        if result.interrupted or result.complete:
            return result
        self.failed = True  # the model or the graph does not reply; the remaining rows may use a different model
        return None

    def _stages(self, name: str) -> dict[str, dict[str, str]]:
        """Return the language models of single stages that a method has, as the setting `llm.stages`."""
        known, models = method(name).stages, self._models
        wanted = {stage: models[model].llm for stage, model in self._table.stages.items() if model in models}
        return {stage: {"model": llm} for stage, llm in wanted.items() if llm and stage in known}

    def _corpus(self, kind: str, column: str) -> str | None:
        """Return the corpus or graph of a column, of a kind if the row needs one."""
        options = self._options
        return options.corpora.get(f"{column}.{kind}" if kind else column) or (
            None if kind else options.settings.get("graph.path")
        )

    def _judged(self, row: TableRow, column: str, folders: list[Path]) -> dict[str, float] | None:
        """Return what the judge says about finished runs; None if it is not asked, or does not reply."""
        wanted = {name for metric in self._table.metrics for name in metric.measured if name.startswith(JUDGED)}
        if not wanted or not self._judge:
            return None
        questions = self._questions[column][1].questions
        settings = {name: value for name, value in self._options.settings.items() if name.startswith("llm.")}
        try:
            if len(folders) > 1:
                found = compared(folders[0], folders[1], questions, self._judge, settings)
            else:
                judges = [
                    name for name in (*RATED, CORRECT) if any(f"{w}.".startswith(f"judge.{name}.") for w in wanted)
                ]
                found = rated(folders[0], questions, self._judge, settings, judges)
        except KgqaError as error:
            self._observer.note(f"{row.label} on {column} is not judged: {error}")
            self.failed = True
            return None
        if not found:
            self._observer.note(f"{row.label} on {column}: no verdict of the judge could be read; run again to ask it")
            self.failed = True
        return found

    def notes(self) -> Iterator[str]:
        """Yield whether the topics of each column were given or linked, and the embedding model that was used."""
        if any(method(row.method).topics for row in self._table.rows if row.method) and self._questions:
            asked = {column: selection.questions for column, (_, selection) in self._questions.items()}
            texts = (f"{column}: {'gold' if all(q.topics for q in asked[column]) else 'linked'}" for column in asked)
            yield f"Topics: {', '.join(texts)}"
        published = f"; published: {self._table.embeddings}" if self._table.embeddings else ""
        if self._embeddings or published:
            yield f"Embedding model: {', '.join(self._embeddings) or 'not run'}{published}"

    def _selections(self) -> Iterator[tuple[str, tuple[RunPlan, Selection]]]:
        """Yield the questions of each column that has questions and, if it needs one, a corpus."""
        table, options = self._table, self._options
        for column in table.columns:
            kinds = dict.fromkeys(row.corpus for row in table.rows if row.method) if table.corpora else {}
            missing = [kind for kind in kinds if not self._corpus(kind, column)]
            for kind in missing:
                place, what = (f"{column}.{kind}", "corpus of hyperedges") if kind else (column, "corpus or graph")
                rows = f"The rows that need a {what} on {column} are" if kind else f"{column} is"
                self._observer.note(f"{rows} not run: give a {what} with {Option('corpus', f'{place}=FOLDER')}")
            if kinds and len(missing) == len(kinds):
                continue
            if not any(row.method for row in table.rows):
                continue
            source = options.datasets.get(column) or table.sources.get(column, column)
            sample = options.sample or table.samples.get(column, table.sample)
            plan = RunPlan(source, sample=sample, seed=options.seed, concurrency=options.concurrency)
            try:
                yield column, (plan, select_questions(plan))
            except KgqaError as error:
                if column in options.datasets:
                    raise
                self._observer.note(f"{column} is not run: {error}")

    def _corpus_counts(self) -> Iterator[tuple[str, dict[str, float]]]:
        """Yield the sizes of the corpora that are given, if a metric of the table asks for them."""
        names = [name for metric in self._table.metrics for name in metric.measured if name.startswith(CORPUS)]
        for column in self._table.columns if names else ():
            folder = self._options.corpora.get(column) or self._options.settings.get("graph.path")
            if not folder:
                continue
            with Corpus.open(folder) as corpus:
                counts = counts_of(corpus.reader, corpus.database.build.state(COUNTS))
            yield column, {f"{CORPUS}{name}": float(count) for name, count in counts.items()}
