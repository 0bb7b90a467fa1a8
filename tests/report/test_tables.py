"""Tables of a comparison as text, Markdown, CSV, LaTeX and JSON."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.report.comparison import Comparison, Figure, MetricRow
from kgqa.report.tables import (
    as_csv,
    as_latex,
    as_markdown,
    as_object,
    as_text,
    csv_cell,
    figure_text,
    latex_text,
    markdown_text,
    questions_text,
)


def table(*columns: str, figure: Figure = Figure(0.724, 0.708, 0.74, 3531)) -> Comparison:
    row = MetricRow("hit@1", "Hit@1", tuple(figure for _ in columns))
    return Comparison(columns, (("topics", tuple("gold" for _ in columns)),), (row,), (("Hit@1 by hops", (row,)),))


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Figure(0.724, 0.708, 0.74, 9), "72.4 [70.8, 74.0]"),
        (Figure(0.5), "50.0"),
        (Figure(1.0, 1.0, 1.0), "100.0 [100.0, 100.0]"),
        (Figure(None, 0.1, 0.2), "–"),
        (None, "–"),
        (Figure(1234.0, share=False), "1,234"),
        (Figure(1234.56, share=False), "1,234.6"),
        (Figure(0.0123456, share=False), "0.0123"),
        (Figure(0.016, -0.002, 0.034, p=0.08), "+1.6 [-0.2, 3.4] p=0.08"),
        (Figure(-0.016, -0.034, -0.002, p=0.0001), "-1.6 [-3.4, -0.2] p<0.001"),
    ],
)
def test_figure_text(figure, text):
    assert figure_text(figure) == text


def test_questions_text():
    assert questions_text(MetricRow("a", "a", (Figure(1.0, n=3531), Figure(0.5, n=3531)))) == "3,531"
    assert questions_text(MetricRow("a", "a", (Figure(1.0, n=3531), None, Figure(0.5, n=2)))) == "3,531 / – / 2"
    assert questions_text(MetricRow("a", "a", (None, Figure(0.5, n=2)))) == "2"


def test_text_table_with_wide_characters():
    lines = as_text(table("日本語", "top-1")).split("\n\n")[0].split("\n")
    assert lines[0].endswith("n") and "日本語" in lines[0]
    # a wide character takes two columns, so this line is three characters shorter
    (hit,) = [line for line in lines if line.startswith("Hit@1")]
    assert lines[0].index("top-1") + len("top-1") + 3 == hit.rindex("74.0]") + len("74.0]")


def test_markdown_escapes_run_names():
    text = as_markdown(table("a|b", "c\n| d |\n", "<script>", "`x` *y* [z](javascript:1)"))
    for part in text.strip().split("\n\n"):
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in part.split("\n")}
        assert cells == {7}
    assert "<script>" not in text and "[z]" not in text
    assert "72.4 [70.8, 74.0]" in text


@pytest.mark.parametrize(
    "text",
    [
        "＝1+1",
        "＋1",
        "－1",
        "＠SUM(A1)",
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\u200b=1",
        " =1",
        "=HYPERLINK(1)",
    ],
)
def test_csv_cells_are_not_formulas(text):
    assert csv_cell(text).startswith("'")
    (line,) = [row for row in csv.reader(io.StringIO(as_csv(table(text)))) if row[0] == "all"]
    assert line[2].startswith("'")


def test_csv_keeps_numbers():
    found = list(csv.DictReader(io.StringIO(as_csv(table("top", figure=Figure(-0.25, -0.5, 0.0, 4, p=0.5))))))
    assert found[0] == {
        "table": "all", "metric": "hit@1", "run": "top", "value": "-0.25", "low": "-0.5", "high": "0.0", "n": "4", "p": "0.5",
    }  # fmt: skip
    assert [row["table"] for row in found] == ["all", "Hit@1 by hops"]


@given(st.text())
def test_csv_escapes_any_name(name):
    rows = list(csv.reader(io.StringIO(as_csv(table(name)))))
    assert {len(row) for row in rows} == {8}
    assert not rows[1][2].startswith(("=", "+", "-", "@", "\t", "\r"))


def test_latex_escapes_special_characters():
    text = latex_text('50% of $x_1 & #2 {a} ~b^c \\input{/etc/passwd} <|> "–"')
    assert text == (
        "50\\% of \\$x\\_1 \\& \\#2 \\{a\\} \\textasciitilde{}b\\textasciicircum{}c "
        "\\textbackslash{}input\\{/etc/passwd\\} \\textless{}\\textbar{}\\textgreater{} "
        "\\textquotedbl{}--\\textquotedbl{}"
    )


@given(st.text())
def test_latex_names_add_no_command(name):
    allowed = {
        "textbackslash",
        "textasciitilde",
        "textasciicircum",
        "textless",
        "textgreater",
        "textbar",
        "textquotedbl",
    }
    assert set(re.findall(r"\\([A-Za-z]+)", latex_text(name))) <= allowed
    left = re.sub(r"\\[A-Za-z]+\{\}|\\[&%$#_{}]", "", latex_text(name))
    assert not set(left) & set('\\~^<>|"&%$#_{}\n')


def test_latex_table():
    text = as_latex(table("top_1", "top-2"))
    assert text.count("\\begin{tabular}{lrrr}") == text.count("\\end{tabular}") == text.count("\\toprule") == 2
    assert "Hit@1 & 72.4 [70.8, 74.0] & 72.4 [70.8, 74.0] & 3,531 \\\\" in text
    assert " & top\\_1 & top-2 & n \\\\" in text


@pytest.mark.parametrize("name", ["[2cm] films", "*", "[", "* of all"])
def test_latex_row_names_are_not_arguments(name):
    row = MetricRow("hit@1", name, (Figure(0.5),))
    text = as_latex(Comparison(("top",), (("topics", ("gold",)),), (row, row), ((name, (row,)),)))
    assert text.count("{}" + name + " & ") == 4
    assert not re.search(r"^[\[*]", text, re.MULTILINE)


@given(st.text())
def test_markdown_text_cannot_end_its_cell(text):
    assert not re.search(r"(?<!\\)(?:\\\\)*[|<>\[\]`]", markdown_text(text))
    assert "\n" not in markdown_text(text)


def test_text_table_has_no_terminal_escapes():
    text = as_text(table("a\x1b[31m\u202eb"))
    assert "\x1b" not in text and "\u202e" not in text


def test_json_data():
    found = as_object(table("top"))
    assert json.loads(json.dumps(found)) == found
    assert found["rows"][0]["figures"][0] == {"value": 0.724, "low": 0.708, "high": 0.74, "n": 3531, "p": None}
    assert found["facts"] == {"topics": ["gold"]} and list(found["groups"]) == ["Hit@1 by hops"]
