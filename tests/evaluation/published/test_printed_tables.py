"""The tables of publications: printed figures, settings of the rows, cells."""

from __future__ import annotations

import pytest

from kgqa.corpus.counts import KINDS
from kgqa.errors import SettingsError
from kgqa.evaluation.datasets.registry import READERS
from kgqa.evaluation.judges.pairwise import PAIR_DIMENSIONS
from kgqa.evaluation.judges.ratings import DIMENSIONS
from kgqa.evaluation.metrics.scores import METRIC_NAMES
from kgqa.evaluation.published.printed_tables import EM, read_models, tables
from kgqa.evaluation.published.table_cells import TableCell, as_object, as_text, elo_matrices, measured_values
from kgqa.evaluation.published.table_judges import CORRECT, RATED
from kgqa.settings.values import resolve

TABLES = tables()
THESIS = {name: table for name, table in TABLES.items() if name.startswith("5.")}


def test_printed_values():
    rows = {(name, row.model, row.label): row.printed for name, table in TABLES.items() for row in table.rows}
    assert rows["5.2", "llama-3.3-70b", "System 1"] == (56.5, 79.0, 58.0, 64.0)
    # the two tables disagree on ToG with Qwen 3 on WebQSP, and order their columns differently
    assert rows["5.2", "qwen3-32b", "ToG"][1] == 58.5 and rows["5.4", "qwen3-32b", "ToG"][2] == 59.5
    assert rows["5.4", "gemma-4-e2b", "System 2"] == (39.5, 52.0, 64.5, 67.5)
    assert {name: table.sample for name, table in THESIS.items()} == {"5.2": 200, "5.3": 100, "5.4": 200, "5.5": 200}
    assert {name: len(table.rows) for name, table in THESIS.items()} == {"5.2": 8, "5.3": 6, "5.4": 8, "5.5": 3}


def printed(name: str, label: str, column: str, metric: str, model: str = "") -> float | None:
    """Look up a printed figure."""
    table = TABLES[name]
    (row,) = [row for row in table.rows if row.label == label and model in ("", row.model)]
    return table.printed(row, column, next(each for each in table.metrics if each.name == metric))


def test_printed_values_of_tables_over_texts():
    assert printed("tog3.1", "ToG-3", "musique", "EM") == 24.1 and printed("tog3.6", "ToG-3", "musique", "EM") == 29.1
    assert printed("tog3.2", "w/o community node", "hotpotqa", "EM") == 65.6
    assert printed("tog3.2", "ToG-3", "2wikimultihopqa", "F1", "qwen2.5-72b") == 30.5
    assert printed("tog3.3", "corpus", "musique", "chunks") == 11300
    assert printed("tog3.4", "ToG-3", "hotpotqa", "P") == 49.2
    assert printed("tog3.5", "ToG-3 against NaiveRAG", "mix", "Overall") == 66.3
    assert printed("graphsearch.1", "GraphSearch + LightRAG, gate=accept", "musique", "E-Score") == 8.38
    assert printed("graphsearch.1", "ReAct", "hotpotqa", "A-Score") is None
    assert printed("graphsearch.2", "GraphSearch + LightRAG, gate=reject", "legal", "SubEM") == 58.59
    assert printed("graphsearch.3", "+ QD, CR, QG, LD", "2wikimultihopqa", "SubEM") == 81.33
    assert printed("graphsearch.6", "Naive RAG, top 10", "musique", "SubEM") is None
    assert printed("graphsearch.7", "Naive RAG", "musique", "step 1") is None


def test_printed_values_of_evograph():
    assert [printed("evograph.2", "EvoGraph-R1-3B", name, "Accuracy") for name in TABLES["evograph.2"].columns] == [
        35.9, 36.7, 57.8,
    ]  # fmt: skip
    assert printed("evograph.3", "EvoGraph-R1", "2wikimultihopqa", "rounds") == 2.57
    assert printed("evograph.3", "w/o insert", "2wikimultihopqa", "rounds") == 3.48
    assert printed("evograph.3", "EvoGraph-R1", "nq", "F1") is None
    for label, mean in (
        ("Qwen2.5-VL-3B", 20.8),
        ("Qwen2.5-VL-7B", 26.7),
        ("EvoGraph-R1-7B", 51.5),
        ("EvoGraph-R1-3B", 43.5),
    ):
        figures = [printed("evograph.2", label, name, "Accuracy") or 0.0 for name in TABLES["evograph.2"].columns]
        assert round(sum(figures) / 3, 1) == mean  # the last one is printed as 41.5


def test_searches_are_calls_without_edits():
    """Four calls a question, and six edits proposed in three questions: two searches a question."""
    turns = {"n": 3, "calls": 4.0, "edits": {"proposed": 6, "accepted": 1, "rejected": 0}}
    assert measured_values({"n": 3, "turns": turns})["turns.searches"] == 2.0


def test_the_average_improvement_of_graph_counselor_is_that_over_graph_cot():
    table = TABLES["counselor.1"]
    by_label = {
        label: [row.printed for row in table.rows if row.label == label] for label in ("Graph Counselor", "Graph-CoT")
    }
    means = [[sum(figures) / len(rows) for figures in zip(*rows)] for rows in by_label.values()]
    assert table.rows[-1].label == "Average improvement"
    assert table.rows[-1].printed == tuple(round(ours - theirs, 2) for ours, theirs in zip(*means))


def test_the_judge_of_graph_counselor_is_the_72b_and_that_of_its_trials_the_7b():
    for number in (1, 2, 5):
        assert TABLES[f"counselor.{number}"].judge == "qwen2.5-72b"
    assert {TABLES[f"counselor.{number}"].stages["verify"] for number in range(1, 6)} == {"qwen2.5-7b"}
    assert {"qwen2.5-7b", "qwen2.5-72b"} <= set(TABLES["counselor.1"].models)


def test_printed_values_of_graph_counselor():
    assert [
        printed("counselor.1", "Graph Counselor", column, "RL", "gemma-2-9b")
        for column in TABLES["counselor.1"].columns
    ] == [55.58, 49.02, 55.41, 42.21, 35.74]
    assert printed("counselor.1", "Graph-CoT", "legal", "QS", "gemma-2-9b") == 32.46
    assert printed("counselor.2", "Graph Counselor", "webqsp", "QS", "mistral-nemo") == 60.5
    assert printed("counselor.3", "Base", "healthcare", "seconds", "llama-3.1-70b") == 7.61
    assert printed("counselor.4", "Graph Counselor", "legal", "LS", "qwen2.5-72b") == 58.89
    both = [TABLES[f"counselor.{number}"] for number in (1, 4)]
    one, four = ({(row.model, row.label): row.printed[::2] for row in table.rows if row.model} for table in both)
    assert one == {row: figures for row, figures in four.items() if row in one}, "two tables print the same Rouge-L"
    assert len(one) == 18 and len(four) == 36


def test_printed_f1_of_tog3_is_that_of_its_precision_and_recall():
    for column in TABLES["tog3.4"].columns:
        for label, same in (("ToG-3", True), ("NaiveRAG", False)):
            f1, p, r = (printed("tog3.4", label, column, name) or 0.0 for name in ("F1", "P", "R"))
            assert (abs(2 * p * r / (p + r) - f1) < 0.4) is same, (label, column)


@pytest.mark.parametrize("name", TABLES)
def test_shape_of_every_table(name):
    table = TABLES[name]
    assert len({row.folder for row in table.rows}) == len(table.rows)
    for row in table.rows:
        assert len(row.printed) in (0, len(table.columns) * len(table.metrics)), row.label
        assert set(row.uncertain) <= set(table.columns)
    for column in table.columns:
        assert table.sources.get(column, column).partition(":")[0] in READERS
    known = {*METRIC_NAMES, "f1_of_means", "usage.seconds", "usage.calls", "usage.tokens", "turns.searches"}
    known |= {f"judge.{kind}" for kind in (*RATED, CORRECT)} | {f"win.{dimension}" for dimension in PAIR_DIMENSIONS}
    known |= {f"judge.{kind}.{each}" for kind in RATED for each in DIMENSIONS[kind]}
    known |= {f"corpus.{kind}" for kind in KINDS}
    known |= {f"{curve}.{step}" for curve in ("recall", "semantic", "relational") for step in range(1, 7)}
    assert {value for metric in table.metrics for value in metric.measured} <= known


@pytest.mark.parametrize("name", TABLES)
def test_settings_of_every_row_are_valid(name, tmp_path):
    for row in TABLES[name].rows:
        if not row.method:
            continue
        given, alone = {"ask.method": row.method, "ask.preset": "as-published"}, tmp_path / "none"
        settings = resolve(given, variants=row.settings, environment={}, folder=tmp_path, user_file=alone)
        for key, value in row.settings.items():
            wanted = {"on": True, "off": False}.get(value, value) if isinstance(settings.values[key], bool) else value
            assert settings.values[key] == wanted, key


def test_tables_that_share_runs_ask_them_alike():
    asked = {}
    for table in TABLES.values():
        for row in table.rows if table.runs else ():
            if row.method:
                settings = (row.model, row.method, dict(row.settings))
                assert asked.setdefault((table.runs, row.folder), settings) == settings


def test_rows_of_hyperedges_name_a_corpus_of_their_own():
    rows = [row for table in TABLES.values() for row in table.rows if row.settings]
    assert all((row.corpus == "hyper") == (row.settings.get("graphsearch.retriever") == "hyper") for row in rows)
    assert any(row.corpus for row in rows)


def test_elo_matrix_follows_from_win_rates():
    table = TABLES["tog3.5"]
    won = {"win.overall": 0.75}
    cells = [[TableCell(won)] * 4, *[[TableCell()] * 4] * 3]
    matrix = elo_matrices(table, cells)["agriculture"]
    assert matrix["ToG-3"]["NaiveRAG"] == (pytest.approx(0.737), pytest.approx(0.75))
    assert matrix["NaiveRAG"]["ToG-3"] == (pytest.approx(0.263), pytest.approx(0.25))
    # both lose against ToG-3: 54.7 and 73.7 of 100; the odds of GraphRAG against NaiveRAG are the quotient
    odds = (0.453 / 0.547) / (0.263 / 0.737)
    assert matrix["GraphRAG"]["NaiveRAG"] == (pytest.approx(odds / (1 + odds)), None)
    text = as_text(table, {}, cells)
    assert "agriculture: share of comparisons that the row wins" in text and "0.74 | 0.75" in text
    assert table.settings["ask.answer_form"] == "long" and as_object(table, {}, cells)["elo"]["agriculture"]


def test_ambiguous_rows_have_two_readings():
    rows = [row for row in TABLES["5.3"].rows if "tournament" in row.label or "prefilter" in row.label]
    assert [row.settings for row in rows] == [
        {"rank.tournament": "single"},
        {"rank.tournament": "pointwise"},
        {"rank.prefilter": "random"},
        {"rank.prefilter": "none"},
    ]
    assert len({row.printed for row in rows}) == 2


def test_cell_shows_measured_values_or_not_run():
    metrics = {"n": 3, "scores": {name: {"value": place / 4} for place, name in enumerate(EM.measured, 1)}}
    values = measured_values(metrics)
    assert TableCell(values, 3).measured(EM) == {"tog_em": 0.25, "hit@1": 0.5, "em": 0.75}
    assert measured_values({}) == measured_values({"n": 0}) == {} and TableCell().measured(EM) is None
    table = TABLES["5.5"]
    cells = [[TableCell(values, 3), TableCell()] for _ in table.rows]
    text = as_text(table, {"gemma-4-e4b": "Gemma 4 E4B IT"}, cells)
    assert "46.0 | 25.0 / 50.0 / 75.0 (n=3)" in text and "56.5 | not run" in text and "Gemma 4 E4B IT" in text


def test_heading_names_the_unit():
    empty = {
        name: [[TableCell()] * len(TABLES[name].columns)] * len(TABLES[name].rows) for name in ("5.2", "counselor.3")
    }
    headings = {name: as_text(TABLES[name], {}, cells).split("\n")[0] for name, cells in empty.items()}
    assert headings["5.2"].endswith("published | measured tog_em / hit@1 / em, in percent")
    assert headings["counselor.3"].endswith("published | measured mean seconds")


def test_both_readings_of_a_conflict_are_shown():
    """Table 4 of ToG-3: the F1 is a mean, or the F1 of mean precision and mean recall."""
    scores = {"token_f1": 0.5, "token_precision": 0.25, "token_recall": 0.75}
    values = measured_values({"n": 8, "scores": {name: {"value": value} for name, value in scores.items()}})
    assert values["f1_of_means"] == 0.375
    table = TABLES["tog3.4"]
    cells = [
        [TableCell(values, 8), TableCell(), TableCell()] if row.method else [TableCell()] * 3 for row in table.rows
    ]
    text = as_text(table, {}, cells)
    assert "56.9 | 50.0 / 37.5 (n=8)  67.5 | 75.0 (n=8)  49.2 | 25.0 (n=8)" in text
    assert "29.1 | not run" in text and "1.3 | –" in text
    found = as_object(table, {}, cells)["rows"][-1]["cells"]["hotpotqa"]
    assert found["P"] == {"printed": 49.2, "measured": {"token_precision": 0.25}, "n": 8}
    assert found["F1"]["measured"] == {"token_f1": 0.5, "f1_of_means": 0.375}


def test_sizes_and_costs_in_one_row():
    """Sizes of a corpus have no number of questions; a value that a finished run does not have was not measured."""
    table = TABLES["tog3.6"]
    cell = TableCell({"corpus.entities": 1511.0, "usage.seconds": 1.25}, 2)
    text = as_text(table, {}, [[TableCell(), TableCell(), cell if row.method else TableCell()] for row in table.rows])
    assert "32,842 | 1,511  39,134 | –" in text and "13.34 | 1.25 (n=2)" in text and "9.70 | –" in text
    assert "37,358 | not run" in text


def test_figures_that_cannot_be_read_with_certainty_are_marked():
    table = TABLES["graphsearch.1"]
    text = as_text(table, {}, [[TableCell()] * 6 for _ in table.rows])
    assert "65.88? | not run" in text and "73.24 | not run" in text and "73.83? | not run" in text
    assert "?: cannot be read with certainty" in text


def test_values_of_steps_and_costs():
    retrieval = {"by_step": [{"step": 1, "recall": 0.5}], "by_channel": {"semantic": [0.25]}}
    metrics = {
        "n": 1,
        "scores": {},
        "usage": {"calls": {"mean": 3.0}, "tokens": {"mean": None}},
        "retrieval": retrieval,
    }
    assert measured_values(metrics) == {"usage.calls": 3.0, "recall.1": 0.5, "semantic.1": 0.25}


def test_read_models(tmp_path):
    file = tmp_path / "models.toml"
    file.write_text('[qwen3-32b]\ntitle = "Qwen"\nllm = "http://127.0.0.1:1/v1"\n[qwen3-14b]\n')
    found = read_models(file)
    assert found["qwen3-32b"].llm == "http://127.0.0.1:1/v1" and found["qwen3-14b"].llm == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gpt-9]\n", "'gpt-9' is not a model"),
        ("[qwen3-32b]\nkey = 'x'\n", "unknown field `key`. Write a table"),
        ("[qwen3-32b]\nllm = 1\n", "Expected `str`"),
        ("qwen3-32b = 1\n", "Expected `object`"),
        ("[", "cannot be read"),
        ("x" * 2_000_000, "larger than"),
    ],
)
def test_invalid_models_file(tmp_path, text, message):
    (tmp_path / "models.toml").write_text(text)
    with pytest.raises(SettingsError, match=message):
        read_models(tmp_path / "models.toml")


def test_bundled_models_file_names_all_models_and_a_recipe_for_those_of_the_thesis():
    from tests.conftest import ROOT

    models = read_models(ROOT / "models.toml")
    assert set(models) == {name for table in TABLES.values() for name in table.models}
    for name in {name for table in THESIS.values() for name in table.models}:
        assert models[name].serve.startswith(f"vllm serve {models[name].repository}"), name
    assert models["qwen3-14b"].extra_body == {"chat_template_kwargs": {"enable_thinking": False}}
