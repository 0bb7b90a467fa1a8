"""`kgqa graph convert grbench`, and a load of what it writes."""

from __future__ import annotations

import json
import re

import pytest

from kgqa.testing.agents.counselor_agent import CounselorAgent, GoldProgram
from kgqa.testing.grbench.mini import write_mini_grbench
from kgqa.testing.server import ScriptedServer


@pytest.fixture(scope="module")
def mini(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mini")
    write_mini_grbench(folder, per_template=1)
    return folder


def test_convert_load_and_look(kgqa, tmp_path, mini):
    done = kgqa("graph", "convert", "grbench", mini / "legal", "--out", "legal.nt.gz")
    assert done.returncode == 0, done.err
    assert re.search(r"opinion\.reference \(written\): \d+ edges; only here [1-9]\d*\n", done.out), done.out
    assert "60 with ids that lack a prefix" in done.out and "no such node: op-0 opinion_cluster opc-7777" in done.out
    assert "Load it: kgqa graph load legal.nt.gz --schema grbench --into legal/" in done.out
    assert kgqa("graph", "load", "legal.nt.gz", "--schema", "grbench", "--into", "legal").returncode == 0
    detected = json.loads(kgqa("graph", "info", "legal", "--json").out)
    assert detected["schema"] == "grbench"
    found = kgqa("graph", "search", "310007", "--graph", "legal", "--json")
    assert json.loads(found.out)[0]["id"] == "legal/d-1", found.out


def answers_of(row):
    return tuple(map(str, row["answer"] if isinstance(row["answer"], list) else [row["answer"]]))


def test_eval_run_with_gold_programs(kgqa, tmp_path, mini):
    """`counselor` answers GRBench's questions: calls by formula, lists in order for Rouge-L, a group for each template."""
    rows = [json.loads(line) for line in (mini / "literature" / "questions.jsonl").read_text().splitlines()]
    programs = {row["question"]: GoldProgram(tuple(row["program"]), answers_of(row)) for row in rows}
    kgqa("graph", "convert", "grbench", mini / "literature", "--out", "x.nt.gz", "--keep-order")
    kgqa("graph", "load", "x.nt.gz", "--schema", "grbench", "--into", "x")
    with ScriptedServer(CounselorAgent(programs)) as server:
        done = kgqa(
            "eval", "run", "--dataset", f"grbench:{mini / 'literature' / 'questions.jsonl'}", "--graph", "x",
            "--method", "counselor", "--llm", f"{server.url}#m", "--embeddings", "off", "--out", "run", "-q",
        )  # fmt: skip
    assert done.returncode == 0 and not server.errors, done.err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert {metrics["scores"][name]["value"] for name in ("em", "rouge_l", "rouge_l_recall")} == {1}
    assert set(metrics["groups"]["kind"]) == {str(number) for number in range(12)}
    assert metrics["usage"]["calls"]["total"] == sum(3 * len(row["program"]) + 1 for row in rows)


def test_json_report(kgqa, mini):
    done = kgqa("graph", "convert", "grbench", mini / "healthcare", "--out", "x.nt", "--name", "hetionet", "--json")
    report = json.loads(done.out)
    assert report["graph"] == "hetionet" and report["nodes"]["Gene"] == 90
    (regulates,) = [each for each in report["links"] if each["link"] == "Gene.Gene-regulates-Gene"]
    assert regulates["role"] == "written" and regulates["duplicates"] == 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nowhere", "--out", "x.nt"], "contains no graph.json"),
        ([".", "--out", "x.rdf"], "must end in .nt or .nt.gz"),
        (["damaged", "--out", "x.nt"], "in or after node 'p1'"),
    ],
)
def test_mistakes(kgqa, tmp_path, arguments, message):
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "graph.json").write_text('{"paper_nodes": {"p1": ]}}')
    done = kgqa("graph", "convert", "grbench", *arguments)
    assert done.returncode == 1 and message in done.err and not (tmp_path / "x.nt").exists()
