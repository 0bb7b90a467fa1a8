"""Runs started and resumed by library functions."""

from __future__ import annotations

import json
import threading

import pytest

from kgqa import evaluation
from kgqa.errors import SettingsError, StoreTimeout, StoreUnavailable
from kgqa.evaluation import Changes, RunError, RunObserver, RunPlan, open_run, open_runs, resume, run, run_several
from kgqa.evaluation.runs import remaining, run_folder
from kgqa.evaluation.runs.merging import merge_runs
from kgqa.evaluation.runs.run_files import BATCH, MANIFEST, PREDICTIONS

OFFLINE = {"rank.embeddings": "off"}
PLAN = RunPlan("demo", sample=7)


class Recorder(RunObserver):
    def __init__(self, stop_after: int | None = None) -> None:
        self.notes: list[str] = []
        self.done: list[int] = []
        self.results: list[evaluation.RunResult] = []
        self.stop_after = stop_after

    def note(self, message):
        self.notes.append(message)

    def asking(self, progress, stop, label):
        self.stop = stop
        return super().asking(progress, stop, label)

    def progressed(self, progress):
        self.done.append(progress.done)
        if self.stop_after is not None and progress.done >= self.stop_after:
            self.stop.request()

    def finished(self, result):
        self.results.append(result)


def test_run_notifies_its_observer(tmp_path):
    observer = Recorder()
    result = run(PLAN, tmp_path / "x", OFFLINE, observer=observer)
    assert observer.done[-1] == 7 and observer.results == [result]
    assert (result.complete, result.done, result.total, result.reason) == (True, 7, 7, "")
    assert result.run.metrics()["n"] == len(list(result.run.records())) == 7
    with pytest.raises(RunError, match="already contains a run"):
        run(PLAN, tmp_path / "x", OFFLINE)
    again = run(PLAN, tmp_path / "x", OFFLINE, resume_existing=True)
    assert again.complete and again.run.folder == tmp_path / "x"


def test_interrupted_run_is_resumed(tmp_path):
    plan = RunPlan("demo", sample=12, concurrency=1)
    result = run(plan, tmp_path / "x", OFFLINE, observer=Recorder(stop_after=2))
    assert result.interrupted and not result.complete and 2 <= result.done < 12
    (resumed,) = resume(tmp_path / "x", Changes(concurrency=2))
    assert resumed.complete and resumed.done == 12 and not resumed.interrupted


def test_answers_are_kept_after_ctrl_c(tmp_path):
    class Interrupted(RunObserver):
        def progressed(self, progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(RunPlan("demo", sample=60, concurrency=6), tmp_path / "x", OFFLINE, observer=Interrupted())
    kept = {record.id: record.at for record in open_run(tmp_path / "x").records()}
    assert 0 < len(kept) < 60
    for thread in threading.enumerate():
        if thread.name.startswith("kgqa-question"):
            thread.join(timeout=20)
            assert not thread.is_alive()
    (resumed,) = resume(tmp_path / "x")
    found = {record.id: record.at for record in resumed.run.records()}
    assert resumed.complete and len(found) == 60 and kept.items() <= found.items()


def test_all_runs_are_created_before_the_first_question(tmp_path):
    settings = {name: {**OFFLINE, "ask.method": name} for name in ("top", "top-1")}
    observer = Recorder(stop_after=1)
    (first,) = run_several(PLAN, tmp_path / "x", settings, observer=observer)
    assert first.interrupted and first.resume_folder == tmp_path / "x"
    assert observer.notes == [
        f'1 more run has not started. Resume all of them: kgqa.evaluation.resume("{tmp_path / "x"}")'
    ]
    assert [each.folder.name for each in open_runs(tmp_path / "x")] == ["top", "top-1"]
    assert all(result.complete for result in resume(tmp_path / "x"))


@pytest.mark.parametrize("by", ["resume", "run_several"])
def test_runs_planned_by_a_killed_process_are_created(tmp_path, monkeypatch, by):
    class Killed(BaseException):
        pass

    def killed(group):
        raise Killed

    settings = {name: {**OFFLINE, "ask.method": name} for name in ("top", "top-1")}
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(run_folder, "create_pending_runs", killed)
        run_several(PLAN, tmp_path / "x", settings)
    assert (tmp_path / "x" / BATCH).exists() and not (tmp_path / "x" / "top").exists()
    if by == "resume":
        results = resume(tmp_path / "x")
    else:
        results = run_several(PLAN, tmp_path / "x", settings, resume_existing=True)
    assert [(result.run.folder.name, result.complete) for result in results] == [("top", True), ("top-1", True)]
    assert not (tmp_path / "x" / BATCH).exists()


def edit_manifest(folder, **changes):
    manifest = json.loads((folder / MANIFEST).read_text())
    for name, value in changes.items():
        manifest[name] |= value
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_changes_since_a_run_was_created_are_noted(tmp_path):
    run(PLAN, tmp_path / "x", OFFLINE, estimate=True)
    edit_manifest(tmp_path / "x", prompts={"top/pick": "an earlier text"}, versions={"kgqa": "0.0.1"})
    observer = Recorder()
    (result,) = resume(tmp_path / "x", observer=observer)
    assert result.complete
    assert observer.notes[0] == "These prompts have changed since the run was created: top/pick."
    assert observer.notes[1].startswith("The run was created by kgqa 0.0.1 and is resumed by ")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": {"digest": "of other questions"}}, "The questions of demo have changed since the run was created"),
        ({"graph": {"fingerprint": "of another graph"}}, "The graph has changed since the run was created"),
        ({"secret": {"llm.stages": "of other stages"}}, "llm.stages has changed.*Set KGQA_LLM_STAGES to the old value"),
    ],
)
def test_changed_run_is_not_resumed(tmp_path, changes, message):
    run(PLAN, tmp_path / "x", OFFLINE, estimate=True)
    edit_manifest(tmp_path / "x", **changes)
    before = (tmp_path / "x" / PREDICTIONS).read_bytes()
    with pytest.raises(RunError, match=message):
        resume(tmp_path / "x", trust=True)
    assert (tmp_path / "x" / PREDICTIONS).read_bytes() == before


def test_shards_that_do_not_belong_together_are_not_merged(tmp_path):
    for number, shard in enumerate(("1/2", "2/2", "2/3")):
        run(RunPlan("demo", sample=6, shard=shard), tmp_path / str(number), OFFLINE)
    first, second, other = (tmp_path / str(number) for number in range(3))
    with pytest.raises(RunError, match="The shards belong to several runs: 1/2, 2/2, 2/3"):
        merge_runs([first, second, other], tmp_path / "out")
    lines = (first / PREDICTIONS).read_bytes().splitlines(keepends=True)
    with (second / PREDICTIONS).open("ab") as file:
        file.write(lines[0])
    with pytest.raises(RunError, match="both contain question .*Leave out one folder"):
        merge_runs([first, second], tmp_path / "out")
    edit_manifest(second, graph={"fingerprint": "of another graph"})
    with pytest.raises(RunError, match="because graph differ"):
        merge_runs([first, second], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_run_without_shards_is_copied_by_a_merge(tmp_path):
    run(PLAN, tmp_path / "x", OFFLINE)
    assert len(list(merge_runs([tmp_path / "x"], tmp_path / "out").records())) == 7


def test_selected_questions(tmp_path):
    with pytest.raises(RunError, match="no questions in this shard. Use fewer shards"):
        run(RunPlan("demo", sample=1, shard="2/2"), tmp_path / "x", OFFLINE)
    (tmp_path / "q.jsonl").write_text('{"id": "a", "question": "Who?"}\n' * 3)
    result = run(RunPlan(str(tmp_path / "q.jsonl"), sample=3), tmp_path / "x", OFFLINE)
    assert sorted(record.id for record in result.run.records()) == ["a", "a#2", "a#3"]


def test_estimate_asks_a_few_questions(tmp_path):
    result = run(PLAN, tmp_path / "x", OFFLINE, estimate=True)
    assert (result.done, result.complete, result.reason) == (5, False, "only an estimate was requested")


@pytest.mark.parametrize("error", [StoreUnavailable("Nothing answers."), StoreTimeout("Too late.")])
def test_unreadable_gold_names_do_not_end_a_run(tmp_path, monkeypatch, error):
    """An outage is detected over the questions, where --keep-going and exit code 3 apply."""

    def with_names(questions, graph):
        raise error

    monkeypatch.setattr(remaining, "with_names", with_names)
    observer = Recorder()
    result = run(PLAN, tmp_path / "x", OFFLINE, observer=observer)
    assert result.complete
    (note,) = observer.notes
    assert note.startswith("The names of gold answers that have only an id could not be read.") and str(error) in note


@pytest.mark.parametrize(("old", "new"), [("NoPlace", "QueueTimeout"), ("BrokenOff", "ConnectionLost")])
def test_retry_by_old_and_new_names_of_failure_classes(tmp_path, old, new):
    def fail_one(failure):
        first, *others = map(json.loads, (tmp_path / "x" / PREDICTIONS).read_text().splitlines())
        lines = [{**first, "failure": failure, "answer": {**first["answer"], "status": "failed"}}, *others]
        (tmp_path / "x" / PREDICTIONS).write_text("".join(json.dumps(line) + "\n" for line in lines))

    run(PLAN, tmp_path / "x", OFFLINE)
    for written in (old, new):
        for name in (old, new):
            fail_one(written)
            observer = Recorder()
            (result,) = resume(tmp_path / "x", retry=[name], observer=observer)
            assert result.complete and not result.lost
            renamed = [f"The class {old} is now called {new}."] if name == old else []
            assert observer.notes == [*renamed, "Asking 1 failed question again."]


def test_invalid_plans_raise(tmp_path):
    with pytest.raises(SettingsError, match="topics must be gold or linked"):
        RunPlan("demo", topics="given")
    with pytest.raises(SettingsError, match="concurrency must be at least 1"):
        RunPlan("demo", concurrency=-1)
    with pytest.raises(RunError, match="not the name of a folder"):
        run_several(PLAN, tmp_path / "x", {"../a": OFFLINE, "b": OFFLINE})
    assert not (tmp_path / "x").exists()


def test_run_of_an_earlier_version_is_resumed(tmp_path):
    """The keys of run.json are those of version 0.1; unknown keys are kept."""
    run(PLAN, tmp_path / "x", OFFLINE, estimate=True)
    manifest = json.loads((tmp_path / "x/run.json").read_text())
    keys = "format id begun working_folder method dataset topics sample seed shard concurrency losses most_cost graph models"
    assert set(keys.split()) <= manifest.keys()
    (tmp_path / "x/run.json").write_text(json.dumps({**manifest, "of a later version": 1}))
    (result,) = resume(tmp_path / "x")
    assert result.complete and result.run.manifest["of a later version"] == 1


def test_public_names():
    assert {getattr(evaluation, name).__name__ for name in evaluation.__all__} == set(evaluation.__all__)
    with pytest.raises(AttributeError):
        getattr(evaluation, "nothing")
