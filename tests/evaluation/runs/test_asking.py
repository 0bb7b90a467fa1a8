"""Questions of a file asked and scored by the library and by benchmarks/accuracy.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from kgqa.evaluation.analysis.losses import LOSSES
from kgqa.evaluation.datasets.questions import read_questions, spread
from kgqa.evaluation.runs.asking import ask_question, hops_of
from kgqa.methods.ask import open_resources
from kgqa.settings.values import resolve

DEMO = Path(str(files("kgqa.demo")))
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def resources():
    with open_resources(settings=resolve({"rank.embeddings": "off"})) as resources:
        yield resources


def test_demo_questions(resources):
    questions = spread(read_questions(DEMO / "questions.jsonl"), 12)
    found = [ask_question(question, resources, topics="gold", losses=True) for question in questions]
    assert [record.id for record in found] == [question.id for question in questions]
    for record, question in zip(found, questions):
        gold = {a.id or a.name for a in question.answers}
        got = {a["id"] or a["name"] for a in record.answer["answers"]}
        assert record.scores["em"] == (gold == got)
        assert record.scores["hit@1"] == (len(gold & got) / len(got) if got else 0)
        assert record.loss in LOSSES and (record.loss == "right") == (gold == got)
        assert record.loss != "unknown", "the trace has the keys of all paths"
        assert record.hops == question.hops
        # within two hops a demo question has its gold path
        assert record.loss != "no path" or question.hops > 2
    assert sum(record.scores["em"] for record in found) >= 3, "words alone rank some of these right"


def test_gold_and_linked_topics(resources):
    (question,) = (q for q in read_questions(DEMO / "questions.jsonl") if q.id == "demo-002")
    for topics in ("gold", "linked"):
        answer = ask_question(question, resources, topics=topics).answer
        assert [topic["id"] for topic in answer["topics"]] == list(question.topics)
        assert any(event["kind"] == "linked" for event in answer["trace"]) == (topics == "linked")


def test_hops_of_a_gold_query(resources):
    for question in spread(read_questions(DEMO / "questions.jsonl"), 10):
        row = {name: value for name, value in question.row.items() if name not in ("hops", "path")}
        without_hops = type(question)(question.text, question.id, "demo", 0, question.topics, question.answers, row=row)
        assert hops_of(without_hops, resources.graph) == question.hops


def run_benchmark(tmp_path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "accuracy.py", "--work", tmp_path / "work", *map(str, arguments)],
        capture_output=True, text=True, timeout=300, env={**os.environ, "KGQA_RANK_EMBEDDINGS": "off"},
    )  # fmt: skip


@pytest.mark.slow
def test_accuracy_benchmark(tmp_path):
    options = ["--kg", DEMO / "graph.nt", "--questions", DEMO / "questions.jsonl", "--limit", "8", "--half", "second"]
    done = run_benchmark(tmp_path, *options, "--json", "--losses")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["n"] == 8 == sum(part["n"] for part in found["by"].values())
    assert found["em"] <= found["f1"] <= 1 and found["em"] <= found["hit@1"] <= 1 and found["reproduced"] == 1.0
    assert sum(found["statuses"].values()) == sum(found["losses"].values()) == 8
    totals = Counter()
    for part in found["by"].values():
        totals.update(part["statuses"])
    assert totals == found["statuses"]
    assert "Loading" in done.stderr
    table = run_benchmark(tmp_path, *options)
    assert "Loading" not in table.stderr and "hit@1" in table.stdout and table.stdout.count("%") >= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--questions", "missing.jsonl", "--graph", "missing"], "missing.jsonl cannot be read"),
        (["--questions", DEMO / "questions.jsonl"], "give --questions and one of --kg and --graph"),
        (["--questions", DEMO / "questions.jsonl", "--graph", "g", "--settings", "no.such=1"], "no.such"),
    ],
)
@pytest.mark.slow
def test_accuracy_benchmark_errors(tmp_path, arguments, message):
    done = run_benchmark(tmp_path, *arguments)
    assert done.returncode != 0 and message in done.stderr and "Traceback" not in done.stderr
