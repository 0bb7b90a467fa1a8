"""The run that ships with the docs: its report is rebuilt and its questions are asked again, both without a model."""

from __future__ import annotations

import re

import pytest

from kgqa.evaluation import open_run
from kgqa.settings.values import resolve
from tests.cli_runner import run_cli
from tests.conftest import ROOT

FOLDER = ROOT / "docs" / "demo-run"
REBUILD = "python -m scripts.demo_run writes the run anew"


@pytest.fixture(scope="module")
def commands() -> list[list[str]]:
    """The commands in the README of the run, without `kgqa`."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    return [line.split()[1:] for line in text.replace("docs/demo-run", str(FOLDER)).splitlines() if "    kgqa" in line]


def test_report_is_built_from_the_run_alone(commands, tmp_path):
    files = sorted(FOLDER.iterdir())
    done = run_cli(*commands[0], cwd=tmp_path)
    assert done.returncode == 0, done.err
    pages = list((tmp_path / "out").rglob("*.html"))
    records = list(open_run(FOLDER).records())
    assert len(pages) >= 1 + len(records)
    assert "simulated-oracle" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert sorted(FOLDER.iterdir()) == files
    assert open_run(FOLDER).manifest["settings"].keys() <= resolve({}).values.keys(), REBUILD


def test_kept_replies_give_the_same_predictions(commands, tmp_path):
    done = run_cli(*commands[1], cwd=tmp_path)
    assert done.returncode == 0, f"{done.err}\n{REBUILD}"
    kept, again = (
        {
            each.id: (
                each.status,
                each.answer["answers"],
                [path["words"] for path in each.answer["paths"]],
                each.scores,
            )
            for each in open_run(folder).records()
        }
        for folder in (FOLDER, tmp_path / "runs" / "again")
    )
    assert kept == again, REBUILD
    assert len({scores["hit@1"] for *_, scores in kept.values()}) == 2  # right and wrong answers


def test_run_is_small_and_names_no_folder_of_the_machine_it_was_made_on():
    files = [file for file in FOLDER.iterdir() if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 300_000
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r'"(?:/[a-z]|[A-Z]:\\)|127\.0\.0\.1|localhost', text), file.name
