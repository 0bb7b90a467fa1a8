"""`kgqa report` and `kgqa export` on a run of the demo graph."""

from __future__ import annotations

import csv
import json
import re
import shutil

import pytest

from tests.report.conftest import demo_records, write_run


@pytest.fixture(scope="module")
def runs(session_cache, tmp_path_factory):
    """A folder with the runs of two methods."""
    folder = tmp_path_factory.mktemp("runs")
    manifest, records = demo_records(session_cache, 4)
    write_run(folder / "top", manifest, records)
    write_run(folder / "other", {**manifest, "method": "other"}, records[:2])
    return folder


def test_text_table(kgqa, runs):
    done = kgqa("report", runs)
    assert done.returncode == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].split() == ["other", "top", "n"]
    assert any(line.startswith("Hit@1 ") and line.endswith("2 / 4") for line in lines)
    assert any(line.startswith("topics") and line.split() == ["topics", "gold", "gold"] for line in lines)


def test_a_terminal_shows_the_main_metrics(kgqa, runs):
    short, quiet, full = (kgqa("report", runs / "top", *more) for more in ((), ("-q",), ("--all-metrics",)))
    counted = re.search(r"All (\d+) metrics: --all-metrics", short.err)
    assert counted and not quiet.err and "metrics" not in full.err
    labels = [line.split("  ")[0] for line in quiet.out.splitlines()[2:]]
    assert labels[:4] == ["Hit@1", "F1", "EM of sets", "failed questions"] and len(labels) == 8
    assert "MRR" in full.out and "MRR" not in short.out
    assert "data set" in short.out and "data set" not in quiet.out
    assert int(counted[1]) == len(json.loads(kgqa("report", runs / "top", "--json").out)["rows"]) > 20


def test_all_output_files(kgqa, runs, tmp_path):
    done = kgqa(
        "report", runs / "top", runs / "other", "--html", "site", "--markdown", "t.md", "--csv", "t.csv", "--latex", "t.tex"
    )  # fmt: skip
    assert done.returncode == 0, done.err
    assert (tmp_path / "site" / "index.html").as_uri() in done.err
    assert len(list((tmp_path / "site").glob("run-*/*.html"))) == 6
    assert "| Hit@1 |" in (tmp_path / "t.md").read_text()
    assert "\\toprule" in (tmp_path / "t.tex").read_text()
    with open(tmp_path / "t.csv", newline="") as file:
        assert {row["run"] for row in csv.DictReader(file)} == {"top", "other"}


def test_json(kgqa, runs):
    found = json.loads(kgqa("report", runs / "top", "--json").out)
    assert found["columns"] == ["top"] and found["rows"][0]["name"] == "hit@1"
    assert found["rows"][0]["figures"][0]["n"] == 4


def test_export_and_explain_a_query(kgqa, runs, tmp_path):
    done = kgqa("export", runs / "top", "--sparql", "queries")
    assert done.returncode == 0 and done.out.endswith("queries for 4 questions\n")
    files = sorted((tmp_path / "queries").glob("*.rq"))
    assert files
    explanation = kgqa("explain", files[0])
    assert explanation.returncode == 0 and "Find every ?answer" in explanation.out
    found = json.loads(kgqa("export", runs, "--sparql", "both", "--json").out)
    assert [each["questions"] for each in found] == [2, 4]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("report", "nothing-there"), "There is no run in"),
        (("export", "nothing-there", "--sparql", "q"), "There is no run in"),
        (("report", "RUNS", "--html", "full"), "contains other files"),
        (("export", "RUNS", "--sparql", "full"), "contains other files"),
        (("report", "RUNS", "--csv", "missing/t.csv"), "cannot be written"),
    ],
)
def test_errors(kgqa, runs, tmp_path, arguments, words):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("")
    done = kgqa(*[runs / "top" if each == "RUNS" else each for each in arguments])
    assert done.returncode == 1 and words in done.err


def test_damaged_run(kgqa, runs, tmp_path):
    shutil.copytree(runs / "top", tmp_path / "bad")
    with open(tmp_path / "bad" / "predictions.jsonl", "a") as file:
        file.write("no record\n")
    for command in (("report", "bad"), ("export", "bad", "--sparql", "q")):
        done = kgqa(*command)
        assert done.returncode == 1 and "line 5" in done.err


@pytest.mark.parametrize(
    "fields", [{"text": 3}, {"dataset": 3}, {"kind": 3}, {"hops": "two"}, {"topics": [[1]]}, {"scores": {"hit@1": "x"}}]
)
def test_field_of_a_wrong_type(kgqa, runs, tmp_path, fields):
    shutil.copytree(runs / "top", tmp_path / "bad")
    predictions = tmp_path / "bad" / "predictions.jsonl"
    first, *rest = predictions.read_text().splitlines(keepends=True)
    predictions.write_text("".join([json.dumps({**json.loads(first), **fields}) + "\n", *rest]))
    done = kgqa("report", "bad", "--html", "site")
    assert done.returncode == 1 and "line 1: this is not a record of a run" in done.err, done.err
    assert next(iter(fields)) in done.err


def test_help(kgqa):
    assert "--latex" in kgqa("report", "--help").out and "--sparql" in kgqa("export", "--help").out
    assert kgqa("report").returncode == 2
