"""Renders the page that compares two runs question by question, with the significance of their difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

from kgqa.evaluation.analysis.comparison import compare_runs
from kgqa.report.comparison import Figure
from kgqa.report.lenient_json import number_of
from kgqa.report.pages import render, shown
from kgqa.report.site.index_page import outcome_words, question_words
from kgqa.report.site.index_rows import IndexRow, by_question
from kgqa.report.site.outcomes import OUTCOMES
from kgqa.report.tables import figure_text
from kgqa.text.words import counted

METRICS = {"em": "exactly the gold answers (EM)", "hit@1": "the first answer is right (Hit@1)"}
"""What may count as right on the page: a score of 1 in one of these metrics."""


def compare_page(columns: Sequence[str], lines: Sequence[Sequence[IndexRow]]) -> Iterator[str]:
    """Render the page, in pieces of HTML. The first two runs are compared until the reader chooses others.

    Args:
        columns: the titles of the runs.
        lines: the questions of each run, in the order of the titles.
    """
    return render("compare", "list", "compare", columns=columns, block=compare_data(columns, lines))


def compare_data(columns: Sequence[str], lines: Sequence[Sequence[IndexRow]]) -> dict[str, Any]:
    """Return the data of the page's list and of its choices.

    A row has the question's id, text, data set, type, hops and gold answers, and for each run the question's page, its
    outcome, its score in each metric, its answers and its model calls; 0 replaces them if the run lacks the question.
    `tests`: the words on the difference of each pair of runs by metric, under the key `FIRST-SECOND`.
    """
    outcomes = {name: number for number, name in enumerate(OUTCOMES)}
    rows = []
    for each in by_question(lines):
        row = next(row for row in each if row)
        results = [
            [row.file, outcomes[row.outcome], row.exact, row.hit, row.answers, row.calls] if row else 0 for row in each
        ]
        rows.append([*question_words(row), row.hops, row.gold, results])
    return {
        "runs": list(map(shown, columns)),
        "outcomes": outcome_words(),
        "metrics": list(METRICS.items()),
        "tests": {
            f"{first}-{second}": difference_words(lines[first], lines[second])
            for first, second in permutations(range(len(lines)), 2)
        },
        "rows": rows,
    }


def difference_words(first: Sequence[IndexRow], second: Sequence[IndexRow]) -> dict[str, str]:
    """Say for each metric how much better the second run is on the questions of both runs, with interval and p."""
    scores = [
        {str(row.key): kept for row in rows if (kept := _scores(row))}
        for rows in (first, second)
    ]  # fmt: skip
    found = {}
    for compared in compare_runs(*scores):
        d, test = compared.difference, compared.mcnemar
        p = number_of(test.p if test else d.p)
        figure = figure_text(Figure(number_of(d.value), number_of(d.low), number_of(d.high), p=p))
        name = "McNemar's exact test" if test else "paired bootstrap"
        means = f"A {compared.first:.1%}, B {compared.second:.1%}; B − A in percentage points:"
        found[compared.metric] = f"{means} {figure} ({name}, {counted(d.n, 'question')} of both runs)"
    return found


def _scores(row: IndexRow) -> dict[str, float]:
    return {name: value for name, value in zip(METRICS, (row.exact, row.hit)) if value is not None}
