"""A comparison as text for a terminal, Markdown, CSV and LaTeX. Names come from data: each format escapes its own way."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from kgqa.report.comparison import Comparison, Figure, MetricRow
from kgqa.words import clean

_FORMULA = tuple("=+-@＝＋－＠")
"""Some spreadsheets take the wide forms for the narrow ones."""
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


class Own(str):
    """A cell that we made ourselves, of digits and brackets: it needs no escaping."""


def figure_text(figure: Figure | None, *, interval: bool = True) -> str:
    """`72.4 [70.8, 74.0]` in percent for shares, `+1.6 [-0.2, 3.4] p=0.08` for differences, else the number as it is; `–`
    where there is none.
    """
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
    """How many questions the figures of a row are of: one number, or one a run where they differ."""
    counts = [f"{f.n:,}" for f in row.figures if f is not None and f.n is not None]
    if len(set(counts)) <= 1:
        return counts[0] if counts else ""
    return " / ".join("–" if f is None or f.n is None else f"{f.n:,}" for f in row.figures)


def as_text(comparison: Comparison) -> str:
    """For a terminal, columns aligned."""
    return "\n\n".join(_aligned(table) for table in _tables(comparison))


def as_markdown(comparison: Comparison) -> str:
    """GitHub's tables, one after the other."""
    parts = []
    for table in _tables(comparison):
        head, *rows = [[cell if isinstance(cell, Own) else markdown_text(cell) for cell in row] for row in table]
        rule = ["---", *["---:"] * (len(head) - 1)]
        parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)))
    return "\n\n".join(parts) + "\n"


def as_csv(comparison: Comparison) -> str:
    """One line a metric and run: table, metric, run, value, low, high, n, p. Numbers are not rounded, shares from 0 to 1."""
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
    """A `table` with the rules of booktabs for the metrics, and one for each group."""
    parts = ["% needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}"]
    for table in _tables(comparison):
        head, *rows = [[latex_text(cell) for cell in row] for row in table]
        lines = [f"\\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", "\\toprule", _latex_row(head), "\\midrule"]
        lines += map(_latex_row, rows)
        parts.append("\n".join([*lines, "\\bottomrule", "\\end{tabular}"]))
    return "\n\n".join(parts) + "\n"


def as_object(comparison: Comparison) -> dict[str, Any]:
    """Plain JSON data: `columns`, `facts`, `rows` and `groups` of figures."""

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
    """A cell that no spreadsheet takes for a formula: text that begins like one gets a quote before it."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    text = clean(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def markdown_text(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", clean(text))


def latex_text(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in clean(text))


def _latex_row(cells: Sequence[str]) -> str:
    # what ends the row before, or a rule, would take a bracket or an asterisk there for an argument of its own
    start = "{}" if cells[0].startswith(("[", "*")) else ""
    return start + " & ".join(cells) + r" \\"


def _tables(comparison: Comparison) -> list[list[list[str]]]:
    """Each table as rows of texts, its head first."""
    columns = list(comparison.columns)
    facts = [[name, *values, ""] for name, values in comparison.facts]
    tables = [[["", *columns, "n"], *facts, *map(_cells, comparison.rows)]]
    return tables + [[[title, *columns, "n"], *map(_cells, rows)] for title, rows in comparison.groups]


def _cells(row: MetricRow) -> list[str]:
    return [row.label, *(Own(figure_text(figure)) for figure in row.figures), Own(questions_text(row))]


def _aligned(table: list[list[str]]) -> str:
    table = [[clean(cell) for cell in row] for row in table]
    widths = [max(map(_width, column)) for column in zip(*table)]
    lines = []
    for row in table:
        first, *rest = row
        cells = [first + " " * (widths[0] - _width(first))]
        cells += [" " * (width - _width(cell)) + cell for cell, width in zip(rest, widths[1:])]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "─" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(lines)


def _width(text: str) -> int:
    """Columns of a terminal: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )
