"""benchmarks/peer.py: kgqa and another program with the same server, proxy and oracle, on a real Virtuoso."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import kgqa.demo
from benchmarks.peer_answers import answer_text, holds_gold, read_answers, write_questions
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from tests.conftest import ROOT

GRAPH = "http://peers.example/graph"
WALKER = "peer_walker.py --questions {questions} --out {out}/answers.jsonl"
ANSWERED = GoldQuestion(
    "Who?", "q1", "", 0, topics=("m.0ann", "m.0bo"), topic_names=("Ann",),
    answers=(GoldAnswer("m.0holt", "Mára Holt", aliases=("M. H.",)), GoldAnswer("", "1931")),
)  # fmt: skip


@pytest.fixture(scope="module")
def endpoint(virtuoso_server) -> str:
    """Yield the URL of a server with the demo graph and a second graph about the same entities."""
    demo = Path(kgqa.demo.__file__).with_name("graph.nt")
    file = virtuoso_server.import_folder / "peers.nt"
    shutil.copyfile(demo, file)
    virtuoso_server.load([file], GRAPH)
    other = virtuoso_server.import_folder / "peers-other.nt"
    country = "<http://rdf.freebase.com/ns/m.demo_brazil>"
    other.write_text(f'{country} <http://rdf.freebase.com/ns/other.graph.relation> "x" .\n')
    virtuoso_server.load([other], "http://peers.example/other")
    return virtuoso_server.url


@pytest.fixture
def run_benchmark(endpoint, monkeypatch, capsys):
    """Return a function that runs the benchmark and returns its results by program."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import peer

    def run_benchmark(*arguments: str) -> dict:
        options = ["--graph", endpoint, "--graph-iri", GRAPH, "--dataset", "demo", "--limit", "3", "--p", "1"]
        options += ["--embeddings", "off", "--latency", "0.01", "--json"]
        monkeypatch.setattr(sys, "argv", ["peer.py", *options, *arguments])
        assert peer.main() == 0
        printed = capsys.readouterr()
        errors.append(printed.err)
        return json.loads(printed.out)["programs"]

    errors = run_benchmark.errors = []  # type: ignore[attr-defined]
    return run_benchmark


def test_kgqa_and_a_walking_program(run_benchmark):
    peer = ["--peer", str(ROOT / "benchmarks"), "--peer-command", f"{sys.executable} {WALKER}"]
    found = run_benchmark("--methods", "tog", *peer, "--peer-answers", "{out}/answers.jsonl")
    assert set(found) == {"kgqa tog", "benchmarks"}
    for name in ("kgqa tog", "benchmarks"):
        row = found[name]
        assert row["right"] == 3 and row["crashes"] == row["failed requests"] == 0, row
        assert row["SPARQL queries"] >= 2 and row["calls"] >= 2 and row["kB"] > 0
        assert row["prompt characters"] > row["prompt tokens"] > 0 and row["reply tokens"] > 0
        assert [each["queries"] > 0 and each["calls"] > 0 for each in row["questions"]] == [True] * 3
        assert row["wall s"] >= 0.01 * row["calls"] / 3 and row["SPARQL ms"] > 0


def test_program_runs_once_per_question_or_once_for_all(run_benchmark):
    peer = ["--peer", str(ROOT / "benchmarks"), "--peer-name", "walker", "--peer-command"]
    command = f"{sys.executable} {WALKER} --no-marks"
    each = run_benchmark("--methods", "", *peer, command, "--each")["walker"]
    once = run_benchmark("--methods", "", *peer, command)["walker"]
    # the last reply to each question is its answer; before the first prompt the question is unknown
    assert each["right"] == once["right"] == 3
    assert each["set-up queries"] == 0 < once["set-up queries"]
    assert each["calls"] == once["calls"]


def test_failing_program_is_reported_with_no_correct_answers(run_benchmark, tmp_path):
    command = f"{sys.executable} -c 'import sys; sys.exit(\"no such luck {{sparql}}\")'"
    found = run_benchmark("--methods", "", "--peer", str(tmp_path), "--peer-command", command)[tmp_path.name]
    assert (found["right"], found["crashes"]) == (0, 1)
    assert "no such luck" in run_benchmark.errors[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("{Yes}. It is {Mara Holt; Bo}.", "Mara Holt; Bo"),
        ("{No}.", "{No}."),
        ("Mara Holt", "Mara Holt"),
        ('{"A": {"Sufficient": "Yes", "Answer": "Mara Holt"}, "R": "not Bo"}', "Mara Holt"),
        ('{"answers": ["a", {"Answer": 3}]}', "a; 3"),
        (["a", "b"], "a; b"),
        (None, ""),
        ("1931", "1931"),
        ({"A": "Cara"}, "Cara"),
    ],
)
def test_answer_in_a_reply(value, text):
    assert answer_text(value) == text


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("It is mara holt.", True), ("m.0holt", True), ("M. H.", True), ("in 1931", True), ("x; Mara Holt; y", True),
        ("Mara Holtz", False), ("19310", False), ("e", False), ("", False),
    ],
)  # fmt: skip
def test_gold_answer_must_match_whole_words(answer, right):
    assert holds_gold(answer, ANSWERED) is right


def test_questions_and_answers_of_other_programs(tmp_path):
    places = write_questions([ANSWERED], tmp_path)
    (line,) = Path(places["questions"]).read_text().splitlines()
    assert json.loads(line) == {"id": "q1", "question": "Who?", "topics": {"m.0ann": "Ann", "m.0bo": "m.0bo"}}
    (listed,) = json.loads(Path(places["questions_json"]).read_text())
    assert listed["RawQuestion"] == listed["question"] == "Who?"
    assert listed["topic_entity"] == json.loads(line)["topics"]
    assert "Holt" not in Path(places["questions_json"]).read_text()
    file = tmp_path / "answers.jsonl"
    rows = [{"question": "Who?", "results": "{Bo}"}, [1], {"id": "q1", "answers": ["Cara"]}]
    rows.append({"question": "Other?", "results": "x"})
    file.write_text("\n".join([*map(json.dumps, rows), "{half", '{"id": "q1"}']))
    assert read_answers(file, [ANSWERED]) == {"q1": "Cara"}
