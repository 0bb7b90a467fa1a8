"""The cells of a printed table: published figures beside ours, as text and as plain JSON data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgqa.evaluation.judges.pairwise import elo_ratings
from kgqa.evaluation.published.printed_tables import PrintedMetric, PrintedTable, TableRow

SOUND = "tog_em_sound"
"""`tog_em` without answers that match only because they are empty or a piece of a word; shown if it is lower."""
CORPUS = "corpus."
"""Prefix of measured values that are counts of a corpus and need no run."""
JUDGED = ("judge.", "win.")
"""Prefixes of measured values that a judge gives."""
MEANINGS = {
    "f1_of_means": "F1 of mean token precision and mean token recall",
    "judge.answer": "mean rating of the judge `answer`",
    "judge.evidence": "mean rating of the judge `evidence`",
    "judge.correct": "share of answers that the judge `correct` calls right",
    "usage.seconds": "mean seconds",
    "usage.calls": "mean calls",
    "usage.tokens": "mean tokens",
    "turns.searches": "mean number of searches",
}
"""What measured values mean that docs/metrics.md does not list."""


@dataclass(frozen=True)
class TableCell:
    """Our values for one row and data set, by name; empty if not run.

    `n`: number of questions asked. `judged`: whether a judge was asked about them.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    n: int = 0
    judged: bool = False

    def measured(self, metric: PrintedMetric) -> dict[str, float] | None:
        """Return our values for a metric; None if there are none."""
        names = [*metric.measured, *([SOUND] if "tog_em" in metric.measured else [])]
        return {name: self.values[name] for name in names if name in self.values} or None


def measured_values(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the values of a run by name, from the content of metrics.json.

    These are its scores, `f1_of_means` (of token precision and recall), `usage.seconds`, `usage.calls` and
    `usage.tokens` per question, `turns.searches` (calls that do not propose an edit, per question that was answered in
    turns), `recall.N` (of supporting passages after step N) and `CHANNEL.N`. Without questions, there are none.
    """
    if not metrics.get("n"):
        return {}
    scores = metrics.get("scores") or {}
    found = {name: each["value"] for name, each in scores.items()}
    precision, recall = found.get("token_precision"), found.get("token_recall")
    if precision is not None and recall is not None:
        found["f1_of_means"] = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    for name in ("seconds", "calls", "tokens"):
        found[f"usage.{name}"] = (metrics.get("usage") or {}).get(name, {}).get("mean")
    if turns := metrics.get("turns"):
        found["turns.searches"] = turns["calls"] - (turns.get("edits") or {}).get("proposed", 0) / turns["n"]
    retrieval = metrics.get("retrieval") or {}
    found |= {f"recall.{each['step']}": each["recall"] for each in retrieval.get("by_step", ())}
    for channel, values in retrieval.get("by_channel", {}).items():
        found |= {f"{channel}.{step}": value for step, value in enumerate(values, 1)}
    return {name: float(value) for name, value in found.items() if value is not None}


Cells = Sequence[Sequence[TableCell]]
"""The cells by row and column."""


def as_text(table: PrintedTable, titles: Mapping[str, str], cells: Cells, notes: Sequence[str] = ()) -> str:
    """Format a table, with the published figures and ours in every cell.

    A table with one metric has a column for each data set; one with several metrics becomes one table for each data
    set, with a column for each metric.
    """
    first, *more = table.metrics
    lines = [f"Table {table.name}: {table.title}. Cells: published | measured"]
    if not more:
        lines[0] += f" {_meaning(first)}"
    if any(" sound)" in _shown(table, *each[:2], first, each[2]) for line in _each(table, cells) for each in line):
        lines.append("sound: tog_em without answers that match only because they are empty or a piece of a word")
    if not more:
        shown = [
            [_shown(table, row, column, first, cell) for row, column, cell in line] for line in _each(table, cells)
        ]
        lines += _aligned(table, titles, table.columns, shown)
    else:
        lines += [f"{metric.name}: {_meaning(metric)}" for metric in table.metrics]
        for place, column in enumerate(table.columns):
            here = [line[place] for line in _each(table, cells)]
            shown = [[_shown(table, row, column, each, cell) for each in table.metrics] for row, _, cell in here]
            lines += ["", column, *_aligned(table, titles, [metric.name for metric in table.metrics], shown)]
    if any(row.uncertain for row in table.rows):
        lines.append("?: cannot be read with certainty in the publication")
    for column, matrix in elo_matrices(table, cells).items():
        names = list(matrix)
        lines += ["", f"{column}: share of comparisons that the row wins, from Elo ratings: published | measured"]
        body = [[name, *(_pair_text(*matrix[name][other]) for other in names)] for name in names]
        lines += _columns([["", *names], *body])
    return "\n".join([*lines, *table.notes, *notes])


Wins = dict[str, dict[str, tuple[float | None, float | None]]]
"""How often each method wins against each other one: as published and as measured."""


def elo_matrices(table: PrintedTable, cells: Cells) -> dict[str, Wins]:
    """Return the win probabilities of each column, from the Elo ratings that follow from the win rates.

    The rows of the table are comparisons `A against B` of one method A, whose rating is the reference.
    """
    found: dict[str, Wins] = {}
    metric = next((metric for metric in table.metrics if metric.name == table.elo), None)
    for place, column in enumerate(table.columns if metric else ()):
        assert metric is not None
        printed: dict[str, float | None] = {}
        measured: dict[str, float | None] = {}
        for row, line in zip(table.rows, cells, strict=True):
            reference, _, other = row.label.partition(" against ")
            value, ours = table.printed(row, column, metric), line[place].measured(metric)
            printed[other] = None if value is None else 1 - value / 100
            measured[other] = None if ours is None else 1 - ours[metric.measured[0]]
        ratings = [elo_ratings(rates, reference=reference) for rates in (printed, measured)]
        found[column] = {
            one: {other: (_wins(ratings[0], one, other), _wins(ratings[1], one, other)) for other in ratings[0]}
            for one in ratings[0]
        }
    return found


def _pair_text(*values: float | None) -> str:
    return " | ".join("–" if each is None else f"{each:.2f}" for each in values)


def _wins(ratings: Mapping[str, float | None], one: str, other: str) -> float | None:
    first, second = ratings.get(one), ratings.get(other)
    return None if first is None or second is None else 1 / (1 + 10 ** ((second - first) / 400))


def as_object(
    table: PrintedTable, titles: Mapping[str, str], cells: Cells, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Convert a table to plain JSON data; with several metrics, a cell is an object with one entry per metric."""
    rows = []
    for row, line in zip(table.rows, cells, strict=True):
        found: dict[str, Any] = {}
        for column, cell in zip(table.columns, line, strict=True):
            parts = {
                metric.name: {
                    "printed": table.printed(row, column, metric),
                    "measured": cell.measured(metric),
                    "n": cell.n,
                    **({"uncertain": True} if column in row.uncertain else {}),
                }
                for metric in table.metrics
            }
            found[column] = parts if len(table.metrics) > 1 else parts[table.metrics[0].name]
        title = titles.get(row.model, row.model)
        rows.append(
            {"model": title, "label": row.label, "method": row.method, "settings": dict(row.settings), "cells": found}
        )
    metrics = {metric.name: {"measured": list(metric.measured), "unit": metric.unit} for metric in table.metrics}
    return {
        "table": table.name,
        "title": table.title,
        "sample": table.sample,
        "metrics": metrics,
        "rows": rows,
        "notes": [*table.notes, *notes],
        **({"elo": elo_matrices(table, cells)} if table.elo else {}),
    }


def _each(table: PrintedTable, cells: Cells) -> list[list[tuple[TableRow, str, TableCell]]]:
    """Return row, column and cell of each cell, line by line."""
    return [
        [(row, column, cell) for column, cell in zip(table.columns, line, strict=True)]
        for row, line in zip(table.rows, cells, strict=True)
    ]


def _meaning(metric: PrintedMetric) -> str:
    names = " / ".join(MEANINGS.get(name, name) for name in metric.measured) or "not measured"
    return f"{names}, in percent" if metric.unit == "percent" else names


def _shown(table: PrintedTable, row: TableRow, column: str, metric: PrintedMetric, cell: TableCell) -> str:
    printed = table.printed(row, column, metric)
    text = "–" if printed is None else _printed(printed, metric) + ("?" if column in row.uncertain else "")
    measured = cell.measured(metric)
    if measured is None:
        ran = cell.judged if any(name.startswith(JUDGED) for name in metric.measured) else cell.n
        missing = metric.measured and not ran and (row.method or not row.model)
        return f"{text} | {'not run' if missing else '–'}"
    scale = 100 if metric.unit == "percent" else 1
    shown = [_number(scale * measured[name], metric) if name in measured else "-" for name in metric.measured]
    if measured.get(SOUND, 1.0) < measured.get("tog_em", 0.0):
        shown[0] += f" ({100 * measured[SOUND]:.1f} sound)"
    asked = cell.n and not metric.measured[0].startswith(CORPUS)
    return f"{text} | {' / '.join(shown)}" + (f" (n={cell.n})" if asked else "")


def _printed(value: float, metric: PrintedMetric) -> str:
    """Format a published figure with as many decimals as it has, in percent at least one."""
    if metric.unit == "percent":
        return f"{value:.1f}" if math.isclose(value, round(value, 1)) else f"{value:.2f}"
    return _number(value, metric)


def _number(value: float, metric: PrintedMetric) -> str:
    if metric.unit == "percent":
        return f"{value:.1f}"
    return f"{int(value):,}" if value == int(value) else f"{value:.2f}"


def _aligned(
    table: PrintedTable, titles: Mapping[str, str], header: Sequence[str], shown: Sequence[Sequence[str]]
) -> list[str]:
    body = [[titles.get(row.model, row.model), row.label, *line] for row, line in zip(table.rows, shown, strict=True)]
    return _columns([["model", "method", *header], *body])


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
