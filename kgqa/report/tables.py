"""Formats a comparison of runs as text, Markdown, CSV, LaTeX and JSON, each with its own escaping."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from kgqa.report.comparison import LABELS, Comparison, Figure, MetricRow
from kgqa.text.words import clean, text_width

MAIN_METRICS = (
    "hit@1", "f1", "em", "failed questions", "questions without a usable reply of the model",
    "queries that give exactly the answer", "model calls a question",
    "tokens a question", "USD a question", "seconds a question (mean)",
)  # fmt: skip
"""The metrics that a terminal shows, by their names."""
MAIN_OF_TEXTS = ("token_em", "token_f1", "substring_em", "recall of passages", "answers with a verified quote")
"""Further metrics that a terminal shows of methods that write a response."""
_OF_TEXTS = ("answers with a verified quote", "turns per question")
"""Metrics that only such methods have."""
_FORMULA = tuple("=+-@＝＋－＠")
"""Characters with which a formula may start in a spreadsheet, including their full-width forms."""
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#~!&])")


class SafeCell(str):
    """A table cell that contains only digits and brackets and needs no escaping."""

    __slots__ = ()


def figure_text(figure: Figure | None, *, interval: bool = True) -> str:
    """Format a figure: `72.4 [70.8, 74.0]` for a share, `+1.6 [-0.2, 3.4] p=0.08` for a difference, `–` for None."""
    if figure is None or figure.value is None:
        return "–"
    sign = "+" if figure.p is not None and figure.value > 0 else ""
    parts = [sign + _number(figure, figure.value)]
    if interval and figure.low is not None and figure.high is not None:
        parts.append(f"[{_number(figure, figure.low)}, {_number(figure, figure.high)}]")
    if figure.p is not None:
        parts.append(f"p={figure.p:.2g}" if figure.p >= 0.001 else "p<0.001")
    return " ".join(parts)


def _number(figure: Figure, value: float) -> str:
    if figure.share:
        return f"{100 * value:.1f}"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def questions_text(row: MetricRow) -> str:
    """Format the number of questions of a row: one number, or one number per run if the runs differ."""
    counts = [f"{f.n:,}" for f in row.figures if f is not None and f.n is not None]
    if len(set(counts)) <= 1:
        return counts[0] if counts else ""
    return " / ".join("–" if f is None or f.n is None else f"{f.n:,}" for f in row.figures)


def main_metrics(comparison: Comparison, *, brief: bool = False) -> Comparison:
    """Return a comparison with the main metrics only; if `brief`, without properties of runs and groups."""
    names = (*MAIN_OF_TEXTS, *MAIN_METRICS) if any(map(comparison.row, _OF_TEXTS)) else MAIN_METRICS
    rows = tuple(row for name in names if (row := comparison.row(name)))
    facts, groups = ((), ()) if brief else (comparison.facts, comparison.groups)
    return replace(comparison, rows=rows, facts=facts, groups=groups)


def as_text(comparison: Comparison) -> str:
    """Format a comparison for a terminal, with aligned columns."""
    return "\n\n".join(_aligned(table) for table in _tables(comparison))


def as_markdown(comparison: Comparison) -> str:
    """Format a comparison as GitHub Markdown tables."""
    parts = []
    for table in _tables(comparison):
        head, *rows = [[cell if isinstance(cell, SafeCell) else markdown_text(cell) for cell in row] for row in table]
        rule = ["---", *["---:"] * (len(head) - 1)]
        parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)))
    return "\n\n".join(parts) + "\n"


def as_csv(comparison: Comparison) -> str:
    """Format a comparison as CSV, one line per metric and run: table, metric, run, value, low, high, n, p.

    Numbers are not rounded; shares are between 0 and 1, not percent.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(["table", "metric", "run", "value", "low", "high", "n", "p"])
    for table, rows in (("all", comparison.rows), *comparison.groups):
        for row in rows:
            for run, figure in zip(comparison.columns, row.figures):
                if figure is not None:
                    writer.writerow(
                        map(csv_cell, (table, row.name, run, figure.value, figure.low, figure.high, figure.n, figure.p))
                    )
    return out.getvalue()


def as_latex(comparison: Comparison) -> str:
    """Format a comparison as LaTeX tables with booktabs, one for the metrics and one per group."""
    parts = ["% needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}"]
    for table in _tables(comparison):
        head, *rows = [[latex_text(cell) for cell in row] for row in table]
        lines = [f"\\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", "\\toprule", _latex_row(head), "\\midrule"]
        lines += map(_latex_row, rows)
        parts.append("\n".join([*lines, "\\bottomrule", "\\end{tabular}"]))
    return "\n\n".join(parts) + "\n"


def as_object(comparison: Comparison) -> dict[str, Any]:
    """Convert a comparison to plain JSON data: `columns`, `facts`, `rows` and `groups` of figures."""

    def rows(found: Sequence[MetricRow]) -> list[dict[str, Any]]:
        return [
            {
                "name": row.name,
                "figures": [
                    None if f is None else {"value": f.value, "low": f.low, "high": f.high, "n": f.n, "p": f.p}
                    for f in row.figures
                ],
            }
            for row in found
        ]

    return {
        "columns": list(comparison.columns),
        "facts": {name: list(values) for name, values in comparison.facts},
        "rows": rows(comparison.rows),
        "groups": {title: rows(found) for title, found in comparison.groups},
    }


def csv_cell(value: Any) -> Any:
    """Return the text of a CSV cell. If a spreadsheet would treat the text as a formula, a quote is put before it."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    text = clean(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def markdown_text(text: str) -> str:
    """Escape a text for Markdown."""
    return _MARKDOWN.sub(r"\\\1", clean(text))


def latex_text(text: str) -> str:
    """Escape a text for LaTeX."""
    return "".join(_LATEX.get(char, char) for char in clean(text))


def _latex_row(cells: Sequence[str]) -> str:
    # the preceding `\\` or rule would take a bracket or an asterisk as its argument
    start = "{}" if cells[0].startswith(("[", "*")) else ""
    return start + " & ".join(cells) + r" \\"


def _tables(comparison: Comparison) -> list[list[list[str]]]:
    """Return each table as a list of rows; a row is a list of strings, and the first row is the header."""
    columns = list(comparison.columns)
    facts = [[name, *values, ""] for name, values in comparison.facts]
    tables = [[["", *columns, "n"], *facts, *map(_cells, comparison.rows)]]
    return tables + [[[LABELS.get(name, name), *columns, "n"], *map(_cells, rows)] for name, rows in comparison.groups]


def _cells(row: MetricRow) -> list[str]:
    return [row.label, *(SafeCell(figure_text(figure)) for figure in row.figures), SafeCell(questions_text(row))]


def _aligned(table: list[list[str]]) -> str:
    table = [[clean(cell) for cell in row] for row in table]
    head = list(zip_longest(*map(_stacked, zip(*table)), fillvalue=""))
    table = [*map(list, head), *table[1:]]
    widths = [max(map(text_width, column)) for column in zip(*table)]
    lines = []
    for row in table:
        first, *rest = row
        cells = [first + " " * (widths[0] - text_width(first))]
        cells += [" " * (width - text_width(cell)) + cell for cell, width in zip(rest, widths[1:])]
        lines.append("  ".join(cells).rstrip())
    lines.insert(len(head), "─" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(lines)


def _stacked(column: Sequence[str]) -> list[str]:
    """Break the head of a column at its commas into lines that are not wider than its cells, as far as possible."""
    first, *rest = column[0].split(", ")
    widest = max(map(text_width, column[1:]), default=0)
    lines = [first]
    for part in rest:
        if text_width(lines[-1]) + text_width(part) + 3 <= widest:
            lines[-1] += f", {part}"
        else:
            lines[-1] += ","
            lines.append(part)
    return lines
