"""Exports the final query of every question of a run, as files for any SPARQL engine."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa.evaluation.runs.records import Record
from kgqa.evaluation.runs.run_files import Run
from kgqa.graph.query.text import Comment, render_term
from kgqa.report.files import ReportError
from kgqa.report.lenient_json import objects_of, text_of
from kgqa.report.pages import exact
from kgqa.report.site.index_rows import numbers_in_file, page_name
from kgqa.report.tables import csv_cell
from kgqa.report.titles import run_titles
from kgqa.storage.foreign import refuse_links

INDEX = "index.csv"
COLUMNS = ("number", "id", "dataset", "question", "status", "query_class", "answers", "gold", "em", "file")
_FILE = re.compile(r"\d{5,}-[0-9a-f]{12}\.rq\Z")
_SAFE = re.compile(r"[^A-Za-z0-9_-]+")
MOST_NAMES = 20


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export: the folder, the number of questions, and the number of exported queries."""

    folder: Path
    questions: int
    queries: int


def write_queries(runs: Sequence[Run], folder: str | Path) -> list[Exported]:
    """Write a .rq file for every question with a query, and index.csv with a line for every question.

    Args:
        folder: folder for the files; if there are several runs, each run gets a subfolder. The folder is created if it
            does not exist; otherwise it must be empty or contain an older export.

    Raises:
        ReportError: the folder contains other files, or cannot be written.
        RunError: a run cannot be read.
    """
    folder = Path(folder)
    try:
        if len(runs) == 1:
            return [_write(runs[0], folder)]
        places = _subfolders(run_titles(runs))
        if folder.is_dir() and any(each.name not in places for each in folder.iterdir()):
            raise _other_files(folder)
        return [_write(run, folder / place) for run, place in zip(runs, places)]
    except OSError as error:
        raise ReportError(f"{folder} cannot be written: {error.strerror}.", "Choose another folder.") from error


def query_file(record: Record) -> str:
    r"""Return the text of a .rq file: question and answers as comments, then the query; empty if there is no query.

    For an answer that rests on texts only, the query is the query of the evidence. Comments contain no line break and
    no `\u` escape, because an engine could treat such an escape as a line break.
    """
    query, label, class_ = text_of(record.answer.get("sparql")), "query class", "query_class"
    if not query.strip():
        query = text_of(record.answer.get("evidence_sparql"))
        label, class_ = "class of the query of the evidence", "evidence_class"
    if not query.strip():
        return ""
    names = [text_of(each.get("name")) for each in objects_of(record.answer.get("answers"))]
    head = [
        f"id: {record.id}",
        f"question: {record.text}",
        f"answers ({len(names)}): {', '.join(names[:MOST_NAMES])}",
        f"{label}: {text_of(record.answer.get(class_))}",
    ]
    lines = [render_term(Comment(line.replace("\\", "/"))) for line in head]
    return "\n".join([*lines, exact(query, None).rstrip("\n"), ""])


def _write(run: Run, folder: Path) -> Exported:
    old = _prepared(folder)
    numbers = numbers_in_file(run)
    lines: dict[int, tuple[object, ...]] = {}
    for number, record in zip(numbers, run.records()):
        text, name = query_file(record), ""
        if text:
            name = page_name(number, record).removesuffix(".html") + ".rq"
            (folder / name).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
            old.discard(folder / name)
        lines[number] = _index_line(number, record, name)
    with open(folder / INDEX, "w", encoding="utf-8", errors="backslashreplace", newline="") as index:
        writer = csv.writer(index)
        writer.writerow(COLUMNS)
        writer.writerows(map(csv_cell, lines[number]) for number in sorted(lines))
    for path in old:
        path.unlink(missing_ok=True)
    return Exported(folder, len(lines), sum(bool(line[-1]) for line in lines.values()))


def _index_line(number: int, record: Record, name: str) -> tuple[object, ...]:
    answers = [text_of(each.get("name")) for each in objects_of(record.answer.get("answers"))]
    gold = [each.name or each.id for each in record.answers]
    shown = [" | ".join(names[:MOST_NAMES]) for names in (answers, gold)]
    about = (number, record.id, record.dataset, record.text, record.status, text_of(record.answer.get("query_class")))
    return (*about, *shown, record.scores.get("em"), name)


def _prepared(folder: Path) -> set[Path]:
    """Create the folder, and return the files of an older export in it."""
    old = set(folder.iterdir()) if folder.is_dir() else set()
    if any(each.name != INDEX and not _FILE.match(each.name) for each in old):
        raise _other_files(folder)
    refuse_links(folder, ReportError)
    folder.mkdir(parents=True, exist_ok=True)
    return {each for each in old if each.name != INDEX}


def _other_files(folder: Path) -> ReportError:
    return ReportError(f"{folder} contains other files.", "Choose an empty or new folder.")


def _subfolders(labels: Sequence[str]) -> list[str]:
    """Return the name of a subfolder for each run: the run's label without characters that are unsafe in file names."""
    found: list[str] = []
    for number, label in enumerate(labels, 1):
        name = _SAFE.sub("-", label).strip("-")[:60] or f"run-{number}"
        found.append(name if name.casefold() not in map(str.casefold, found) else f"{name}-{number}")
    return found
