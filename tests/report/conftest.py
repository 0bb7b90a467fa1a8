"""Runs to report on: real answers on the demo graph, and records with hostile texts."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from kgqa import open_resources
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion, read_questions
from kgqa.evaluation.runs.asking import ask_question
from kgqa.evaluation.runs.manifest import new_manifest
from kgqa.evaluation.runs.plan import RunPlan, Selection
from kgqa.evaluation.runs.records import Record
from kgqa.evaluation.runs.run_files import Run
from kgqa.evaluation.runs.run_folder import create_run
from kgqa.graph.opening import open_graph
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache
from kgqa.testing.gold_table import gold_for
from kgqa.testing.model_oracle import ModelOracle
from kgqa.testing.server import ScriptedServer


def demo_questions(limit: int) -> list[GoldQuestion]:
    return read_questions(Path(str(files("kgqa.demo") / "questions.jsonl")))[:limit]


def demo_records(cache: Path, limit: int, **given: Any) -> tuple[dict[str, Any], list[Record]]:
    """Return the manifest and the records of the first questions of the demo."""
    questions = demo_questions(limit)
    settings = resolve({"rank.embeddings": "off", **{name.replace("__", "."): value for name, value in given.items()}})
    with open_graph(cache=Cache(cache)) as graph:
        resources = open_resources(graph, settings=settings)
        manifest = new_manifest(RunPlan("demo", losses=True), Selection(questions, questions), resources)
        return manifest, [ask_question(item, resources, topics="gold", losses=True) for item in questions]


def write_run(folder: Path, manifest: dict[str, Any], records: list[Record]) -> Run:
    with create_run(folder, manifest) as run:
        run.append(records)
    return Run(folder, manifest)


@pytest.fixture(scope="session")
def offline(session_cache, tmp_path_factory) -> Run:
    """A run of twelve questions without a language model."""
    manifest, records = demo_records(session_cache, 12)
    return write_run(tmp_path_factory.mktemp("runs") / "top", manifest, records)


@pytest.fixture(scope="session")
def by_model(session_cache, tmp_path_factory) -> Run:
    """A run of top-2 with an oracle that knows the gold path of the first question."""
    with open_graph(cache=Cache(session_cache)) as graph:
        resources = open_resources(graph, settings=resolve({"rank.embeddings": "off", "ask.method": "top-2"}))
        gold = gold_for(demo_questions(1)[0], resources)
    with ScriptedServer(ModelOracle({"": gold})) as server:
        manifest, records = demo_records(session_cache, 2, ask__method="top-2", llm__model=f"{server.url}#oracle")
    return write_run(tmp_path_factory.mktemp("runs") / "top-2", manifest, records)


def hostile_record(record: Record, texts: Any) -> Record:
    """Return the record with every text replaced by `texts()`, except the words that reports interpret."""
    known = {"answered", "exact", "graph", "out", "in"}

    def replaced(value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            return value if value in known or key == "kind" else texts()
        if isinstance(value, dict):
            return {name: replaced(item, name) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [replaced(item) for item in value]
        return value

    answer = replaced(dict(record.answer))
    return replace(
        record,
        id=texts(),
        dataset=texts(),
        text=texts(),
        kind=texts(),
        level=texts(),
        failure=texts(),
        answer=answer,
        answers=(GoldAnswer(texts(), texts()), GoldAnswer("", texts())),
        topics=(texts(),),
        scores={texts(): 0.5, "hit@1": 0.5},
        loss="prefilter",
    )
