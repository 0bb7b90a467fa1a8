"""A static site of runs: index.html and a page a question, readable from a disk with no network.

Records are read twice, one at a time: first for the lines of the index, then for the pages. Only the lines are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kgqa.report.comparison import Comparison, ReportedRun, compare
from kgqa.report.files import ReportError
from kgqa.report.index_page import index_page
from kgqa.report.index_rows import index_rows
from kgqa.report.question_page import PageContext, question_page

MARK = ".kgqa-report"
"""A file that says that a folder is a report of ours, which may be written over."""
MAX_RUNS = 24
_PAGE = re.compile(r"\d{5,}-[0-9a-f]{12}\.html\Z")
_FOLDER = re.compile(r"run-\d+\Z")


def write_site(
    runs: Sequence[ReportedRun],
    folder: str | Path,
    *,
    comparison: Comparison | None = None,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Write the site of some runs into a folder and give the path of its index.html, which is written last.

    Args:
        folder: is made; one that is there must be empty or hold an older report.
        comparison: what `compare` said of these runs, where that is known already.
        told: called after each page with how many are done, and of how many.

    Raises:
        ReportError: there is something else in the folder, or it cannot be written.
        RunError: a run cannot be read.
    """
    if not runs or len(runs) > MAX_RUNS:
        raise ReportError(f"A report is of 1 to {MAX_RUNS} runs, not of {len(runs)}.")
    comparison = comparison or compare(runs)
    labels = comparison.columns
    lines = [list(index_rows(run, number)) for number, run in enumerate(runs, 1)]
    folder = Path(folder)
    try:
        old = _prepared(folder)
        pages: dict[tuple[str, str, int], list[tuple[str, str]]] = {line.key: [] for each in lines for line in each}
        for label, each in zip(labels, lines):
            for line in each:
                pages[line.key].append((label, f"../{line.file}"))
        done, total = 0, sum(map(len, lines))
        for run, label, each in zip(runs, labels, lines):
            for number, (line, record) in enumerate(zip(each, run.records())):
                if record.id != line.id:
                    raise ReportError(f"{run.folder} changed while its report was written. Try again when it is done.")
                place = PageContext(
                    run=label,
                    number=number + 1,
                    total=len(each),
                    index="../index.html",
                    before=f"../{each[number - 1].file}" if number else "",
                    after=f"../{each[number + 1].file}" if number + 1 < len(each) else "",
                    others=tuple(page for page in pages[line.key] if page[1] != f"../{line.file}"),
                )
                _write(folder / line.file, question_page(record, place))
                old.discard(folder / line.file)
                done += 1
                told(done, total)
        _write(folder / "index.html", index_page(comparison, lines))
        for path in old:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise ReportError(f"{folder} cannot be written: {error.strerror}. Choose another folder.") from error
    return folder / "index.html"


def _prepared(folder: Path) -> set[Path]:
    """Make the folder ready, and give the pages of an older report in it."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise ReportError(f"{folder} has other files in it. Choose a folder that is empty or not there yet.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("A report of kgqa; a new one may be written over it.\n", encoding="utf-8")
    (folder / "index.html").unlink(missing_ok=True)
    inner = [each for each in folder.iterdir() if _FOLDER.match(each.name) and not each.is_symlink()]
    return {page for each in inner for page in each.iterdir() if _PAGE.match(page.name)}


def _write(path: Path, parts: Iterable[str]) -> None:
    if not path.parent.is_dir():
        path.parent.mkdir()
    if path.is_symlink():
        path.unlink()
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.writelines(parts)
