"""Writes the static site of a report: index.html, compare.html for several runs, and one page per question.

The records of the runs are read twice, one by one: first for the rows of the index page, then for the pages of the
questions. Only the rows are kept in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kgqa.evaluation.runs.run_files import Run
from kgqa.report.comparison import Comparison, compare
from kgqa.report.files import ReportError
from kgqa.report.site.compare_page import compare_page
from kgqa.report.site.index_page import index_page
from kgqa.report.site.index_rows import index_rows
from kgqa.report.site.question_page import PageContext, question_page
from kgqa.report.text.piece_texts import open_texts
from kgqa.storage.foreign import refuse_links

MARK = ".kgqa-report"
"""The file that marks a folder as a report. A later report may overwrite a folder with this file."""
MAX_RUNS = 24
COMPARE = "compare.html"
_PAGE = re.compile(r"\d{5,}-[0-9a-f]{12}\.html\Z")
_FOLDER = re.compile(r"run-\d+\Z")


def write_site(
    runs: Sequence[Run],
    folder: str | Path,
    *,
    comparison: Comparison | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Write the site of a report, with index.html last, and return the path of index.html.

    Args:
        folder: created if it does not exist; otherwise it must be empty or contain an older report.
        comparison: the result of `compare` for these runs; None to compute the comparison.
        on_progress: called after each page with the number of pages written and the total number of pages.

    Raises:
        ReportError: the folder contains other files, or cannot be written.
        RunError: a run cannot be read.
    """
    if not runs or len(runs) > MAX_RUNS:
        raise ReportError(f"A report covers 1 to {MAX_RUNS} runs, not {len(runs)}.", "Give fewer runs.")
    comparison = comparison or compare(runs)
    labels = comparison.columns
    lines = [index_rows(run, number) for number, run in enumerate(runs, 1)]
    folder = Path(folder)
    try:
        old = _prepared(folder)
        pages: dict[tuple[str, str, int], list[tuple[str, str]]] = {line.key: [] for each in lines for line in each}
        for label, each in zip(labels, lines):
            for line in each:
                pages[line.key].append((label, f"../{line.file}"))
        done, total = 0, sum(map(len, lines))
        for run, label, each in zip(runs, labels, lines):
            with open_texts(run) as texts:
                asked = sorted(enumerate(each), key=lambda pair: pair[1].recorded)
                for (number, line), record in zip(asked, run.records()):
                    if record.id != line.id:
                        raise ReportError(
                            f"{run.folder} changed during the report.",
                            "Write the report again when the run has finished.",
                        )
                    place = PageContext(
                        run=label,
                        number=number + 1,
                        total=len(each),
                        index="../index.html",
                        compare=f"../{COMPARE}" if len(runs) > 1 else "",
                        before=f"../{each[number - 1].file}" if number else "",
                        after=f"../{each[number + 1].file}" if number + 1 < len(each) else "",
                        others=tuple(page for page in pages[line.key] if page[1] != f"../{line.file}"),
                    )
                    _write(folder / line.file, question_page(record, place, texts))
                    old.discard(folder / line.file)
                    done += 1
                    on_progress(done, total)
        if len(runs) > 1:
            _write(folder / COMPARE, compare_page(labels, lines))
        else:
            (folder / COMPARE).unlink(missing_ok=True)
        _write(folder / "index.html", index_page(comparison, lines))
        for path in old:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise ReportError(f"{folder} cannot be written: {error.strerror}.", "Choose another folder.") from error
    return folder / "index.html"


def _prepared(folder: Path) -> set[Path]:
    """Create the folder, and return the pages of an older report in it."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise ReportError(f"{folder} contains other files.", "Choose an empty or new folder.")
    refuse_links(folder, ReportError)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("A report written by kgqa. A new report may overwrite it.\n", encoding="utf-8")
    (folder / "index.html").unlink(missing_ok=True)
    inner = [each for each in folder.iterdir() if _FOLDER.match(each.name)]
    return {page for each in inner for page in each.iterdir() if _PAGE.match(page.name)}


def _write(path: Path, parts: Iterable[str]) -> None:
    if not path.parent.is_dir():
        path.parent.mkdir()
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.writelines(parts)
