"""The result tables of the thesis."""

from __future__ import annotations

import pytest

from kgqa.errors import SettingsError
from kgqa.evaluation.datasets.registry import READERS
from kgqa.evaluation.published.thesis_tables import MEASURED, TableCell, as_text, cell_of, read_models, tables
from kgqa.settings import resolve

TABLES = tables()


def test_printed_values():
    rows = {(name, row.model, row.label): row.printed for name, table in TABLES.items() for row in table.rows}
    assert rows["5.2", "llama-3.3-70b", "System 1"] == (56.5, 79.0, 58.0, 64.0)
    # the two tables disagree on ToG with Qwen 3 on WebQSP, and order their columns differently
    assert rows["5.2", "qwen3-32b", "ToG"][1] == 58.5 and rows["5.4", "qwen3-32b", "ToG"][2] == 59.5
    assert rows["5.4", "gemma-4-e2b", "System 2"] == (39.5, 52.0, 64.5, 67.5)
    assert {name: table.sample for name, table in TABLES.items()} == {"5.2": 200, "5.3": 100, "5.4": 200, "5.5": 200}
    assert {name: len(table.rows) for name, table in TABLES.items()} == {"5.2": 8, "5.3": 6, "5.4": 8, "5.5": 4}


@pytest.mark.parametrize("name", TABLES)
def test_settings_of_every_row_are_valid(name, tmp_path):
    table = TABLES[name]
    assert set(table.columns) <= set(READERS)
    assert len({row.folder for row in table.rows}) == len(table.rows)
    for row in table.rows:
        given = {**row.settings, "ask.method": row.method, "ask.preset": "as-published"}
        settings = resolve(given, environment={}, folder=tmp_path, user_file=tmp_path / "none")
        assert all(settings[key] == value for key, value in row.settings.items())


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
    metrics = {"n": 3, "scores": {name: {"value": place / 4} for place, name in enumerate(MEASURED, 1)}}
    assert cell_of(50.0, metrics) == TableCell(50.0, {"tog_em": 0.25, "hit@1": 0.5, "em": 0.75}, 3)
    assert cell_of(50.0, {}) == cell_of(50.0, {"n": 0}) == TableCell(50.0, None)
    table = TABLES["5.5"]
    cells = [[cell_of(46.0, metrics), TableCell(56.5, None)] for _ in table.rows]
    text = as_text(table, {"gemma-4-e4b": "Gemma 4 E4B IT"}, cells)
    assert "46.0 | 25.0 / 50.0 / 75.0 (n=3)" in text and "56.5 | not run" in text and "Gemma 4 E4B IT" in text


def test_read_models(tmp_path):
    file = tmp_path / "models.toml"
    file.write_text('[qwen3-32b]\ntitle = "Qwen"\nllm = "http://127.0.0.1:1/v1"\n[qwen3-14b]\n')
    found = read_models(file)
    assert found["qwen3-32b"].llm == "http://127.0.0.1:1/v1" and found["qwen3-14b"].llm == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gpt-9]\n", "'gpt-9' is not a model"),
        ("[qwen3-32b]\nkey = 'x'\n", "Use only title and llm"),
        ("[qwen3-32b]\nllm = 1\n", "must be strings"),
        ("qwen3-32b = 1\n", "must be strings"),
        ("[", "cannot be read"),
        ("x" * 2_000_000, "larger than"),
    ],
)
def test_invalid_models_file(tmp_path, text, message):
    (tmp_path / "models.toml").write_text(text)
    with pytest.raises(SettingsError, match=message):
        read_models(tmp_path / "models.toml")


def test_bundled_models_file_names_all_models():
    from tests.conftest import ROOT

    assert set(read_models(ROOT / "models.toml")) == {row.model for table in TABLES.values() for row in table.rows}
