"""A run with rollouts over a corpus, from the questions to the prompts of a trainer."""

from __future__ import annotations

import json

from kgqa.evaluation import RunPlan, run
from kgqa.report.trajectories.export import ExportPlan, export_trajectories
from kgqa.testing.agents.evograph_agent import EvographAgent, FactGold
from kgqa.testing.server import ScriptedServer
from tests.small_corpus import SINGLE


def test_rollouts_become_trajectories_of_one_group(corpus_folder, tmp_path):
    questions = tmp_path / "questions.jsonl"
    questions.write_text(json.dumps({"id": "q", "question": SINGLE, "answers": [{"name": "museum of Oster Quay"}]}))
    fact = "It stands in the museum of Oster Quay."
    agent = EvographAgent({SINGLE: FactGold("first tide clock", fact, "museum of Oster Quay")})
    settings = {"ask.method": "evograph", "rank.embeddings": "off", "graph.path": str(corpus_folder)}
    settings |= {"evograph.commit": "off", "llm.temperature": 1.0}
    with ScriptedServer(agent) as server:
        plan = RunPlan(str(questions), rollouts=2)
        done = run(plan, tmp_path / "run", {**settings, "llm.model": f"{server.url}#m"})
    assert done.complete and done.total == 2
    export_trajectories([done.run], tmp_path / "all", ExportPlan("jsonl", form="strict"))
    rows = [json.loads(line) for line in (tmp_path / "all" / "trajectories.jsonl").read_text().splitlines()]
    assert sorted((row["group"], row["rollout"]) for row in rows) == [("q", 0), ("q", 1)]
    assert [row["reward"]["total"] for row in rows] == [1.0, 1.0]
    assert export_trajectories([done.run], tmp_path / "trl", ExportPlan("trl")).rows == 1
    (row,) = [json.loads(line) for line in (tmp_path / "trl" / "questions.jsonl").read_text().splitlines()]
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]
    assert '"graph_search"' in row["prompt"][0]["content"] and SINGLE in row["prompt"][1]["content"]
    for file in [*(tmp_path / "all").iterdir(), *(tmp_path / "trl").iterdir()]:
        assert str(tmp_path) not in file.read_text() and server.url not in file.read_text()
