"""The first page of a report: the comparison, accuracy against cost, where answers were lost, and all questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.report.comparison import MAIN, Comparison, Figure
from kgqa.report.drawing import Plot, Point, draw_plot
from kgqa.report.index_rows import IndexRow
from kgqa.report.outcomes import STAGES, UNSCORED
from kgqa.report.pages import render, shown
from kgqa.report.tables import figure_text, questions_text


@dataclass(frozen=True, slots=True)
class Lost:
    """A stage and, for each run, how many questions ended there and what share that is of those with gold answers."""

    words: str
    right: bool
    counts: tuple[tuple[int, float], ...]


def index_page(comparison: Comparison, lines: Sequence[Sequence[IndexRow]]) -> Iterator[str]:
    """The page in pieces of HTML.

    Args:
        lines: for each column of the comparison its questions.
    """
    return render(
        "index",
        "index",
        columns=comparison.columns,
        facts=comparison.facts,
        rows=[(row.label, list(map(figure_text, row.figures)), questions_text(row)) for row in comparison.rows],
        groups=[
            (title, [(row.label, list(map(figure_text, row.figures)), questions_text(row)) for row in rows])
            for title, rows in comparison.groups
        ],
        plot=plot_of(comparison, lines),
        lost=losses_of(lines),
        questions=[len(each) for each in lines],
        block=index_data(comparison.columns, lines),
    )


def losses_of(lines: Sequence[Sequence[IndexRow]]) -> list[Lost]:
    """The stages at which some question ended, in the order a question goes through them."""
    counted = [Counter(line.stage for line in each if line.stage != UNSCORED) for each in lines]
    return [
        Lost(words, stage == "right", tuple((count[stage], count[stage] / (count.total() or 1)) for count in counted))
        for stage, words in STAGES.items()
        if any(count[stage] for count in counted)
    ]


def plot_of(comparison: Comparison, lines: Sequence[Sequence[IndexRow]]) -> Plot | None:
    """Accuracy against the mean cost of a question: in USD where every run has a price, else in tokens, else in SPARQL
    queries.
    """
    if not any(lines):
        return None
    if all(each and all(line.usd is not None for line in each) for each in lines):
        unit, costs = "USD a question", [_mean([line.usd or 0.0 for line in each]) for each in lines]
    elif any(line.calls for each in lines for line in each):
        unit, costs = "tokens a question", [_mean([line.tokens for line in each]) for each in lines]
    else:
        unit, costs = "SPARQL queries a question", [_mean([line.queries for line in each]) for each in lines]
    main = comparison.row(MAIN)
    points = []
    for place, (label, each) in enumerate(zip(comparison.columns, lines)):
        figure = main.figures[place] if main else None
        if figure is None or figure.value is None:
            hits = [line.hit for line in each if line.hit is not None]
            figure = Figure(_mean(hits)) if hits else None
        if figure is not None and figure.value is not None:
            points.append(Point(label, costs[place], figure.value, figure.low, figure.high))
    return draw_plot(points, unit)


def index_data(columns: Sequence[str], lines: Sequence[Sequence[IndexRow]]) -> dict[str, Any]:
    """What the script of the page shows as a table: for each question its id, text, data set, type and hops, and for
    each run its page, the stage it ended at, and Hit@1 in percent; 0 where a run does not have the question. `unscored`:
    the stage that is neither right nor wrong.
    """
    stages = list(STAGES)
    place = {stage: number for number, stage in enumerate(stages)}
    rows: dict[tuple[str, str, int], list[Any]] = {}
    for run, each in enumerate(lines):
        for line in each:
            row = rows.get(line.key)
            if row is None:
                about = [shown(line.id)[:120], line.text, shown(line.dataset)[:60], shown(line.kind)[:60], line.hops]
                row = rows[line.key] = [*about, [0] * len(lines)]
            hit = None if line.hit is None else round(100 * line.hit)
            row[5][run] = [line.file, place[line.stage], hit]
    return {
        "runs": list(map(shown, columns)),
        "stages": list(STAGES.values()),
        "unscored": place[UNSCORED],
        "rows": list(rows.values()),
    }


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0
