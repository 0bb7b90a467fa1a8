"""Runs that ask every question several times."""

from __future__ import annotations

from itertools import groupby

import pytest

from kgqa.evaluation import Changes, RunError, RunPlan, open_run, resume, run
from kgqa.evaluation.analysis.aggregate import summary_of
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from kgqa.evaluation.metrics.scores import METRIC_NAMES
from kgqa.evaluation.runs.plan import repeated, select_questions
from kgqa.evaluation.runs.records import record_of
from kgqa.testing.server import ScriptedServer
from tests.evaluation.runs.test_start import Recorder

SETTINGS = {"rank.embeddings": "off", "ask.method": "io", "llm.temperature": 1.0, "llm.seed": 40}


def test_rollouts_have_ids_and_seeds_of_their_own_and_are_resumed(tmp_path):
    plan = RunPlan("demo", sample=3, rollouts=2, concurrency=1)
    with ScriptedServer(lambda messages: "Tokyo") as server:
        settings = {**SETTINGS, "llm.model": f"{server.url}#scripted"}
        first = run(plan, tmp_path / "x", settings, observer=Recorder(stop_after=3))
        assert first.total == 6 and 3 <= first.done < 6
        with pytest.raises(RunError, match="another rollouts"):
            run(RunPlan("demo", sample=3), tmp_path / "x", settings, resume_existing=True)
        (again,) = resume(tmp_path / "x", Changes(concurrency=1))
        assert again.complete and again.done == 6
        seeds = [request.body["seed"] for request in server.requests]
    records = list(open_run(tmp_path / "x").records())
    assert len({record.id for record in records}) == 6 and len({record.group for record in records}) == 3
    assert [record.rollout for record in records] == [0, 1] * 3
    assert [seed for seed, _ in groupby(seeds)] == [40, 41] * 3


def test_rollouts_need_a_language_model_that_varies(tmp_path):
    with pytest.raises(RunError, match="all rollouts of a question are equal"):
        run(RunPlan("demo", sample=1, rollouts=2), tmp_path / "x", {"rank.embeddings": "off"})
    observer = Recorder()
    with ScriptedServer(lambda messages: "Tokyo") as server:
        settings = {**SETTINGS, "llm.temperature": 0.0, "llm.model": f"{server.url}#scripted"}
        run(RunPlan("demo", sample=1, rollouts=2), tmp_path / "y", settings, observer=observer)
    assert any("temperature is 0" in note for note in observer.notes)


def test_rollouts_stay_together_in_a_shard():
    questions = select_questions(RunPlan("demo", sample=4, shard="2/2", rollouts=3)).questions
    assert [question.rollout for question in questions] == [0, 1, 2] * 2


def test_ids_of_rollouts_differ_from_those_of_other_questions():
    found = repeated([GoldQuestion("a", "q", "d", 0), GoldQuestion("b", "q~2", "d", 1)], 2)
    assert [question.id for question in found] == ["q", "q~2~", "q~2", "q~2~2"]


def test_scores_are_means_over_questions():
    """Three rollouts of one question and one of another: (1 + 0 + 0) / 3 and 1, so the mean is 2/3."""

    def record(ident: str, group: str, score: float):
        question = GoldQuestion("a", ident, "d", 0, answers=(GoldAnswer("", "x"),), group=group)
        scores = dict.fromkeys(METRIC_NAMES, score)
        return record_of(question, {"status": "answered", "answers": [], "trace": []}, scores=scores)

    rollouts = [record("q", "q", 1.0), record("q~2", "q", 0.0), record("q~3", "q", 0.0), record("r", "r", 1.0)]
    found = summary_of(rollouts)
    assert (found["scores"]["em"]["value"], found["scores"]["em"]["n"]) == (pytest.approx(2 / 3), 2)
    assert (found["n"], found["scored"]) == (4, 4)
