"""Renders the index page of a report: comparison, accuracy against cost, causes of loss, and all questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.report.comparison import LABELS, MAIN, Comparison, Figure, MetricRow
from kgqa.report.drawing import Plot, Point, draw_plot
from kgqa.report.pages import render, shown
from kgqa.report.site.index_rows import IndexRow, by_question
from kgqa.report.site.outcomes import OUTCOMES, SIGNS, STAGES, UNSCORED
from kgqa.report.tables import figure_text, questions_text


@dataclass(frozen=True, slots=True)
class StageCounts:
    """The questions that ended at one stage: their number and their share of the scored questions, by run."""

    words: str
    right: bool
    counts: tuple[tuple[int, float], ...]


def index_page(comparison: Comparison, lines: Sequence[Sequence[IndexRow]]) -> Iterator[str]:
    """Render the index page, in pieces of HTML.

    Args:
        lines: the questions of each run; the runs have the order of the comparison's columns.
    """
    return render(
        "index",
        "list",
        "index",
        columns=comparison.columns,
        facts=comparison.facts,
        rows=list(map(_shown_row, comparison.rows)),
        groups=[(LABELS.get(name, name), list(map(_shown_row, rows))) for name, rows in comparison.groups],
        plot=plot_of(comparison, lines),
        lost=losses_of(lines),
        questions=[len(each) for each in lines],
        block=index_data(comparison.columns, lines),
    )


def _shown_row(row: MetricRow) -> tuple[str, list[tuple[str, str, str]], str]:
    """Return the label of a row, the value, interval and p of each figure, and the number of questions."""
    return row.label, [_parts(figure_text(figure)) for figure in row.figures], questions_text(row)


def _parts(figure: str) -> tuple[str, str, str]:
    """Split a formatted figure into value, interval and p, so that narrow screens show them below each other."""
    figure, sign, p = figure.partition(" p")
    value, _, interval = figure.partition(" ")
    return value, interval, f"p{p}" if sign else ""


def losses_of(lines: Sequence[Sequence[IndexRow]]) -> list[StageCounts]:
    """Count the questions per stage; the stages have the order in which a question passes them."""
    counted = [Counter(line.stage for line in each if line.stage != UNSCORED) for each in lines]
    return [
        StageCounts(
            words, stage == "right", tuple((count[stage], count[stage] / (count.total() or 1)) for count in counted)
        )
        for stage, words in STAGES.items()
        if any(count[stage] for count in counted)
    ]


def plot_of(comparison: Comparison, lines: Sequence[Sequence[IndexRow]]) -> Plot | None:
    """Plot accuracy against mean cost per question: in USD if all runs have a price, otherwise tokens or queries."""
    if not any(lines):
        return None
    if all(each and all(line.usd is not None for line in each) for each in lines):
        unit, costs = "USD per question", [_mean([line.usd or 0.0 for line in each]) for each in lines]
    elif any(line.calls for each in lines for line in each):
        unit, costs = "tokens per question", [_mean([line.tokens for line in each]) for each in lines]
    else:
        unit, costs = "SPARQL queries per question", [_mean([line.queries for line in each]) for each in lines]
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
    """Return the data for the table of questions; the page's script displays this table.

    A row has the question's id, text, data set, type and hops, and for each run the question's page, its outcome, its
    stage, and its Hit@1 in percent; if the run does not contain the question, 0 replaces these four values.
    """
    outcomes, stages = ({name: number for number, name in enumerate(names)} for names in (OUTCOMES, STAGES))
    rows = []
    for each in by_question(lines):
        row = next(row for row in each if row)
        results = [
            [row.file, outcomes[row.outcome], stages[row.stage], None if row.hit is None else round(100 * row.hit)]
            if row
            else 0
            for row in each
        ]
        rows.append([*question_words(row), row.hops, results])
    return {
        "runs": list(map(shown, columns)),
        "outcomes": outcome_words(),
        "stages": [[name, words] for name, words in STAGES.items()],
        "rows": rows,
    }


def question_words(row: IndexRow) -> list[str]:
    """Return a question's id, text, data set and type for the data of a page."""
    return [shown(row.id)[:120], row.text, shown(row.dataset)[:60], shown(row.kind)[:60]]


def outcome_words() -> list[list[str]]:
    """Return name, sign and label of each outcome for the data of a page."""
    return [[name, SIGNS[name], words] for name, words in OUTCOMES.items()]


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0
