"""Reads the questions of runs for the pages that list them: one row per question and run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kgqa.evaluation.runs.records import Record, place_in_file
from kgqa.evaluation.runs.run_files import Run
from kgqa.report.lenient_json import number_of
from kgqa.report.site.outcomes import (
    ListedAnswer,
    answers_and_gold,
    exact_match,
    hit_of,
    outcome_of,
    stage_of,
    usage_of,
)
from kgqa.text.words import clean, normalise

_TEXT = 300
"""Maximum characters of a question's text in a list."""
_ANSWERS, _NAME = 5, 60
"""Maximum number of answers in a list, and maximum characters of each."""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One question of one run, as shown in lists.

    `key`: identifies the question; it is the same in all runs. `file`: path of the question's page, relative to
    index.html. `order`: sorts questions as in the file of the data set. `recorded`: position in the run's predictions.
    """

    key: tuple[str, str, int]
    id: str
    text: str
    dataset: str
    kind: str
    hops: int | None
    outcome: str
    stage: str
    hit: float | None
    exact: float | None
    answers: str
    gold: str
    file: str
    usd: float | None
    tokens: float
    queries: float
    calls: float
    order: tuple[bool, str, int, int]
    recorded: int


def index_rows(run: Run, number: int) -> list[IndexRow]:
    """Read the rows of a run, in the order of the data set's file. `number`: position of the run, from 1."""
    seen: dict[tuple[str, str], int] = {}
    rows = []
    for recorded, record in enumerate(run.records()):
        key = (record.id, normalise(record.text))
        seen[key] = seen.get(key, 0) + 1
        usage = usage_of(record)
        counts = {name: number_of(usage.get(name)) or 0.0 for name in ("calls", "queries")}
        sides = answers_and_gold(record)
        row = IndexRow(
            key=(*key, seen[key]),
            id=record.id,
            text=clean(record.text[: 2 * _TEXT])[:_TEXT],
            dataset=record.dataset,
            kind=record.kind,
            hops=record.hops,
            outcome=outcome_of(record),
            stage=stage_of(record),
            hit=hit_of(record),
            exact=exact_match(record),
            answers=_names(sides.given, sides.given_more),
            gold=_names(sides.gold, sides.gold_more),
            file="",
            usd=number_of(usage.get("cost")),
            tokens=sum(number_of(usage.get(f"{part}_tokens")) or 0.0 for part in ("prompt", "completion")),
            order=place_in_file(record),
            recorded=recorded,
            **counts,
        )
        rows.append(row)
    rows.sort(key=lambda row: row.order)
    return [replace(row, file=f"run-{number}/{page_name(place, row)}") for place, row in enumerate(rows, 1)]


def by_question(lines: Sequence[Sequence[IndexRow]]) -> list[list[IndexRow | None]]:
    """Return for each question its row in each run, None where a run lacks it; in the order of the data set's file."""
    found: dict[tuple[str, str, int], list[IndexRow | None]] = {}
    for run, each in enumerate(lines):
        for line in each:
            found.setdefault(line.key, [None] * len(lines))[run] = line
    return sorted(found.values(), key=lambda rows: next(row.order for row in rows if row))


def _names(answers: Iterable[ListedAnswer], more: int) -> str:
    names = [clean(each.name[: 2 * _NAME])[:_NAME] for each in answers]
    left = len(names) - _ANSWERS + more
    return ", ".join(names[:_ANSWERS]) + (f" and {left:,} more" if left > 0 else "")


def numbers_in_file(run: Run) -> list[int]:
    """Return for each record of a run, in the order of the predictions, its number in the order of the file, from 1."""
    orders = [place_in_file(record) for record in run.records()]
    numbers = [0] * len(orders)
    for number, recorded in enumerate(sorted(range(len(orders)), key=orders.__getitem__), 1):
        numbers[recorded] = number
    return numbers


def page_name(number: int, record: Record | IndexRow) -> str:
    """Return the name of a question's file: its number in the run and a hash of its id (ids may be unsafe)."""
    key = f"{record.dataset}\0{record.id}".encode("utf-8", "surrogatepass")
    return f"{number:05d}-{hashlib.blake2b(key, digest_size=6).hexdigest()}.html"
