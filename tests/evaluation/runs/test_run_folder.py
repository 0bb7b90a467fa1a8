"""The folder of a run: reading, resuming and recovery."""

from __future__ import annotations

import json
import multiprocessing
import os
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from kgqa.evaluation.runs import run_files
from kgqa.evaluation.runs.records import Record, read_record, record_of
from kgqa.evaluation.runs.run_files import BATCH, MANIFEST, PREDICTIONS, RunError, open_run, open_runs, pending_runs
from kgqa.evaluation.runs.run_folder import create_run, create_runs, resume_run

MANIFEST_CONTENT = {"format": 1, "method": "top"}


def record(ident: str, *, status: str = "answered", failure: str = "", text: str = "Who?") -> Record:
    return record_of(
        GoldQuestion(text, ident, "demo", 0, answers=(GoldAnswer("m.1", "One", aliases=("Uno",)),), topics=("m.2",)),
        {"id": ident, "status": status, "answers": []},
        scores={"em": 1.0},
        failure=failure,
    )


@pytest.fixture
def run_path(tmp_path):
    path = tmp_path / "runs" / "x"
    with create_run(path, MANIFEST_CONTENT) as folder:
        folder.append([record("a"), record("b", status="failed", failure="StoreTimeout")])
        folder.append([record("c", text="Köln?\n\u2028😀")])
    return path


def test_written_records_are_read(run_path):
    run = open_run(run_path)
    assert run.manifest == MANIFEST_CONTENT and run.name == "top" and run.metrics() == {}
    assert [each.id for each in run.records()] == ["a", "b", "c"]
    assert next(iter(run.records())) == record("a")
    assert list(run.records())[2].text == "Köln?\n\u2028😀"
    assert [each.folder for each in open_runs(run_path)] == [run_path]


def test_record_round_trip():
    original = record("a")
    data = json.loads(json.dumps(asdict(original)))
    assert read_record(data) == original
    assert read_record({**data, "of a later version": 1}) == original
    for wrong in (
        [],
        "x",
        {},
        {"id": 1},
        {**data, "answer": []},
        {**data, "answers": [1]},
    ):
        with pytest.raises(ValueError, match="not a record"):
            read_record(wrong)


def test_one_run_per_folder(run_path):
    with (
        pytest.raises(RunError, match="already contains a run. .* resume the run: kgqa.evaluation.resume"),
        create_run(run_path, {}),
    ):
        pass
    assert len(list(open_run(run_path).records())) == 3
    with pytest.raises(RunError, match="There is no run"):
        open_run(run_path.parent / "y")


def test_one_folder_per_method(tmp_path):
    for name in ("top-2", "io"):
        with create_run(tmp_path / name, {"format": 1, "method": name}):
            pass
    assert [run.name for run in open_runs(tmp_path)] == ["io", "top-2"]
    with pytest.raises(RunError, match="several runs. Choose one of these folders: .*io, .*top-2"):
        open_run(tmp_path)


@given(cut=st.integers(0, 10_000), tail=st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")))
def test_torn_line_is_dropped(tmp_path_factory, cut, tail):
    path = tmp_path_factory.mktemp("torn") / "x"
    with create_run(path, MANIFEST_CONTENT) as folder:
        folder.append([record("a"), record("b")])
    file = path / PREDICTIONS
    data = file.read_bytes()
    end = len(data) - cut % len(data) // 2
    file.write_bytes(data[:end] if end < len(data) else data + tail)
    whole = file.read_bytes().count(b"\n")
    assert len(list(open_run(path).records())) == whole, "readers leave a torn line out"
    with resume_run(path) as (folder, _):
        assert len(folder.done) == whole
        folder.append([record("z")])
    assert [each.id for each in open_run(path).records()] == [*"ab"[:whole], "z"]


@pytest.mark.parametrize("length", [10, 200_000])
@pytest.mark.parametrize("complete", [0, 3])
def test_torn_line_of_any_length_is_dropped(run_path, complete, length):
    file = run_path / PREDICTIONS
    whole = b"".join(file.read_bytes().splitlines(keepends=True)[:complete])
    file.write_bytes(whole + b"{" * length)
    with resume_run(run_path) as (folder, _):
        assert len(folder.done) == complete
    assert file.read_bytes() == whole


def test_linked_predictions_are_not_repaired(run_path, tmp_path):
    """In a folder of another user the file may be a link to a file of this user."""
    mine = tmp_path / "mine.txt"
    mine.write_text("a line\nthe last line has no end")
    (run_path / PREDICTIONS).unlink()
    (run_path / PREDICTIONS).symlink_to(mine)
    with pytest.raises(RunError, match=f"{PREDICTIONS} is a link.*Remove the link"), resume_run(run_path):
        pass
    assert mine.read_text() == "a line\nthe last line has no end"


@pytest.mark.parametrize("present", [MANIFEST, PREDICTIONS])
def test_several_runs_replace_no_run(tmp_path, present):
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / present).write_text("kept")
    with pytest.raises(RunError, match=f"already contains runs.*kgqa.evaluation.resume..{tmp_path}"):
        create_runs(tmp_path, {"top-1": MANIFEST_CONTENT, "top": MANIFEST_CONTENT}, before=lambda: None)
    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == [present]
    assert (tmp_path / "top" / present).read_text() == "kept"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"format": 99, "runs": {}}, "begin.json cannot be read: format"),
        ({"format": 1, "runs": ["a"]}, "runs: Expected `object`"),
        ({"format": 1, "runs": {"../a": MANIFEST_CONTENT}}, "Expected `str` matching regex"),
        ({"format": 1, "runs": {"a": ["top"]}}, "Expected `object`, got `array`"),
    ],
)
def test_invalid_plan_of_several_runs(tmp_path, content, message):
    (tmp_path / BATCH).write_text(json.dumps(content))
    with pytest.raises(RunError, match=message):
        pending_runs(tmp_path)


def test_blank_lines_are_skipped_and_sizes_limited(run_path, monkeypatch):
    file = run_path / PREDICTIONS
    file.write_bytes(file.read_bytes().replace(b"\n", b"\n\n"))
    assert [each.id for each in open_run(run_path).records()] == ["a", "b", "c"]
    monkeypatch.setattr(run_files, "MAX_LINE_BYTES", 50)
    with pytest.raises(RunError, match="line 1: longer than 50 bytes"):
        list(open_run(run_path).records())
    monkeypatch.setattr(run_files, "MAX_MANIFEST_BYTES", 10)
    with pytest.raises(RunError, match=f"{MANIFEST} cannot be read: it is larger than 10 bytes"):
        open_run(run_path)


def test_invalid_line_is_named(run_path):
    file = run_path / PREDICTIONS
    first, *rest = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + b'{"id": 1}\n' + b"".join(rest))
    with pytest.raises(RunError, match="line 2: .*Remove the line"):
        list(open_run(run_path).records())
    with pytest.raises(RunError, match="line 2"), resume_run(run_path):
        pass


def test_removed_predictions_are_asked_again(run_path):
    with resume_run(run_path) as (folder, _):
        assert folder.done == {"a", "b", "c"}
        assert folder.remove(lambda each: each.failure == "StoreTimeout") == 1
        assert folder.done == {"a", "c"} and folder.remove(lambda each: False) == 0
        folder.append([record("b")])
    assert [each.id for each in open_run(run_path).records()] == ["a", "c", "b"]
    assert not list(run_path.glob(".*"))


def _hold_run(path: str, ready, leave) -> None:
    with resume_run(Path(path)):
        ready.set()
        leave.wait(30)


@pytest.mark.slow
def test_only_one_process_writes_to_a_run(run_path):
    context = multiprocessing.get_context("spawn")
    ready, leave = context.Event(), context.Event()
    process = context.Process(target=_hold_run, args=(str(run_path), ready, leave))
    process.start()
    try:
        assert ready.wait(30)
        with pytest.raises(RunError, match="Another kgqa is running in .*kgqa eval status"), resume_run(run_path):
            pass
        assert len(list(open_run(run_path).records())) == 3, "reading is for everybody"
    finally:
        leave.set()
        process.join(30)
    with resume_run(run_path) as (folder, _):
        assert len(folder.done) == 3


def test_full_disk_is_an_error_and_keeps_records(run_path):
    with resume_run(run_path) as (folder, _):
        folder._file = os.open("/dev/full", os.O_WRONLY)
        with pytest.raises(RunError, match="No space left.*All answers in it are kept.*kgqa.evaluation.resume"):
            folder.append([record("d")])
        assert "d" not in folder.done
    assert len(list(open_run(run_path).records())) == 3


def test_invalid_manifest(run_path):
    (run_path / MANIFEST).write_text('{"format": 99}')
    with pytest.raises(RunError, match="was not written by kgqa: format: Invalid enum value 99"):
        open_run(run_path)
    for text in ("", "[1]", "{" * 100_000, "\xff"):
        (run_path / MANIFEST).write_text(text, encoding="latin-1")
        with pytest.raises(RunError, match="run.json"):
            open_run(run_path)


def test_lone_surrogates_round_trip(tmp_path):
    with create_run(tmp_path / "odd", {**MANIFEST_CONTENT, "dataset": {"source": "\ud800.jsonl"}}) as folder:
        folder.append([record("a", text="Who is \udc80?")])
        folder.write("metrics.json", {"groups": {"\ud800": 1}})
    run = open_run(tmp_path / "odd")
    assert run.manifest["dataset"]["source"] == "\ud800.jsonl" and run.metrics() == {"groups": {"\ud800": 1}}
    assert [each.text for each in run.records()] == ["Who is \udc80?"]


def test_unreadable_folder(tmp_path):
    for look in (open_run, open_runs):
        with pytest.raises(RunError, match="cannot be read"):
            look(tmp_path / ("x" * 300))
