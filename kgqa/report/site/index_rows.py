"""Reads the rows of the index page, one per question, from a run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from kgqa.evaluation.runs.records import Record
from kgqa.evaluation.runs.run_files import Run
from kgqa.report.lenient_json import number_of
from kgqa.report.site.outcomes import hit_of, stage_of, usage_of
from kgqa.words import clean

_TEXT = 300
"""Maximum characters of a question's text on the index page."""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One question of one run, as shown on the index page.

    `key`: identifies the question; it is the same in all runs. `file`: path of the question's page, relative to
    index.html.
    """

    key: tuple[str, str, int]
    id: str
    text: str
    dataset: str
    kind: str
    hops: int | None
    stage: str
    hit: float | None
    file: str
    usd: float | None
    tokens: float
    queries: float
    calls: float


def index_rows(run: Run, number: int) -> Iterator[IndexRow]:
    """Read the rows of a run. `number`: position of the run in the report, from 1."""
    seen: dict[tuple[str, str], int] = {}
    for place, record in enumerate(run.records(), 1):
        key = (record.dataset, record.id)
        seen[key] = seen.get(key, 0) + 1
        usage = usage_of(record)
        counts = {name: number_of(usage.get(name)) or 0.0 for name in ("calls", "queries")}
        tokens = sum(number_of(usage.get(f"{part}_tokens")) or 0.0 for part in ("prompt", "completion"))
        yield IndexRow(
            key=(*key, seen[key]),
            id=record.id,
            text=clean(record.text[: 2 * _TEXT])[:_TEXT],
            dataset=record.dataset,
            kind=record.kind,
            hops=record.hops,
            stage=stage_of(record),
            hit=hit_of(record),
            file=f"run-{number}/{page_name(place, record)}",
            usd=number_of(usage.get("cost")),
            tokens=tokens,
            **counts,
        )


def page_name(number: int, record: Record) -> str:
    """Return the name of a question's file: its number in the run and a hash of its id (ids may be unsafe)."""
    key = f"{record.dataset}\0{record.id}".encode("utf-8", "surrogatepass")
    return f"{number:05d}-{hashlib.blake2b(key, digest_size=6).hexdigest()}.html"
