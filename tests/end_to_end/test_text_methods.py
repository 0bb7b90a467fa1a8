"""The methods over text on the command line, with scripted agents over a small corpus."""

from __future__ import annotations

import json
import shutil
import signal
from importlib.resources import files

import pytest

from kgqa.testing.agents.graphsearch_agent import GraphSearchAgent
from kgqa.testing.agents.text_agents import RagAgent
from kgqa.testing.agents.tog3_agent import Tog3Agent
from kgqa.testing.server import ScriptedServer
from tests.end_to_end.stopped_runs import check_stopped_run_resumes
from tests.end_to_end.test_eval import predictions
from tests.end_to_end.test_models import reproducible
from tests.small_corpus import LONG, QUESTIONS, SHORT, SINGLE, write_corpus, write_questions

OFF = ("--embeddings", "off")
AGENTS = {"rag": RagAgent, "tog3": Tog3Agent, "graphsearch": GraphSearchAgent}
METHODS = tuple(AGENTS)
FEW = {"tog3": ("--set", "tog3.retrieve=2", "--set", "tog3.keep=2", "--set", "tog3.rounds=4")}
"""Settings with which a question needs several rounds in a corpus as small as this."""
EVENTS = {
    "rag": {"retrieved", "pieces_kept"},
    "tog3": {
        "retrieved",
        "pieces_kept",
        "planned",
        "step_answered",
        "sufficiency_judged",
        "evidence_edited",
        "stopped",
    },
    "graphsearch": {"retrieved", "pieces_kept", "planned", "grounded", "step_answered", "drafted", "draft_verified"},
}
"""Events that every answer of a method has."""


class AllAgents:
    """The agents of all methods behind one server; the first line of the rules tells whose prompt it is."""

    def __init__(self):
        self._agents = {name: agent(QUESTIONS) for name, agent in AGENTS.items()}
        self._methods = {
            file.read_text().partition("{% block system %}")[2].split("\n")[1]: name
            for name in METHODS
            for file in files("kgqa.prompts").joinpath(name).iterdir()
            if file.name.endswith(".j2")
        }

    def __call__(self, messages):
        return self._agents[self._methods[messages[0]["content"].split("\n")[0]]](messages)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    write_corpus(folder)
    write_questions(folder / "questions.jsonl")
    return folder


@pytest.fixture(autouse=True)
def _copied(built, tmp_path):
    """The corpus as `corpus`, and the questions as `questions.jsonl`."""
    shutil.copytree(built / "corpus", tmp_path / "corpus")
    shutil.copy(built / "questions.jsonl", tmp_path)


def options(methods, server):
    few = [each for method in methods.split(",") for each in FEW.get(method, ())]
    return ("--graph", "corpus", "--method", methods, "--llm", f"{server.url}#m", *OFF, *few)


@pytest.mark.parametrize("method", METHODS)
def test_ask_shows_quotes_and_replays(kgqa, method):
    agent = AGENTS[method](QUESTIONS)
    with ScriptedServer(agent) as server:
        command = ("ask", LONG, *options(method, server), "--replay", "kept.jsonl")
        done = kgqa(*command)
        assert done.returncode == 0 and "Ben Aske" in done.out and "The highest hill of Corrin is Ben Aske." in done.out
        calls = server.calls
        first = json.loads(kgqa(*command, "--json", "--trace").out)
        assert server.calls == calls == first["usage"]["calls"] > 0 and not server.errors
    closed = json.loads(kgqa(*command, "--json", "--trace", "--replay-only").out)
    assert reproducible(closed) == reproducible(first)
    assert first["method"] == method and first["response"] and first["grounding"] in ("text", "graph")
    assert all(each["verified"] for each in first["citations"]) and first["citations"] and not first["defects"]
    assert EVENTS[method] <= {event["kind"] for event in first["trace"]}
    queries = [first["evidence_sparql"], *([first["sparql"]] if first["sparql"] else [])]
    for query in queries:
        assert "Ben Aske" not in query
        explained = kgqa("explain", "--graph", "corpus", input=query)
        assert explained.returncode == 0 and explained.out.strip(), explained.err


@pytest.mark.parametrize("method", METHODS)
def test_trace_shows_each_step(kgqa, method):
    with ScriptedServer(AGENTS[method](QUESTIONS)) as server:
        done = kgqa("ask", SHORT, *options(method, server), "--trace")
    assert done.returncode == 0 and "1830" in done.out
    shown = done.out + done.err
    for kind in EVENTS[method]:
        assert kind in shown or kind.replace("_", " ") in shown, shown


@pytest.mark.parametrize("method", METHODS)
def test_budgets_end_in_a_status(kgqa, method):
    with ScriptedServer(AGENTS[method](QUESTIONS)) as server:
        for limit in (("--max-calls", "0"), ("--max-calls", "2"), ("--max-tokens", "10"), ("--max-queries", "1")):
            done = kgqa("ask", LONG, *options(method, server), *limit, "--json")
            answer = json.loads(done.out)
            assert done.returncode == (0 if answer["status"] == "answered" else 3), done.err
            assert answer["status"] in ("budget_exhausted", "no_answer") or answer["notes"] or server.calls
        assert not server.errors


def test_eval_run_of_all_methods(kgqa, tmp_path):
    with ScriptedServer(AllAgents()) as server:
        command = ("eval", "run", "--dataset", "questions.jsonl", *options(",".join(METHODS), server), "--out", "x")
        done = kgqa(*command)
        assert done.returncode == 0 and not server.errors, done.err
    for method in METHODS:
        folder = tmp_path / "x" / method if len(METHODS) > 1 else tmp_path / "x"
        records = predictions(folder)
        assert len(records) == len(QUESTIONS) and all(record["scores"]["em"] == 1 for record in records)
        assert {record["answer"]["method"] for record in records} == {method}
        assert json.loads((folder / "metrics.json").read_text())["quotes"]["answers"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_run_resumes(kgqa, started, tmp_path, method, signal_number):
    rows = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    many = [{**rows[number % len(rows)], "id": f"q{number}"} for number in range(12)]
    (tmp_path / "many.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in many))
    with ScriptedServer(AGENTS[method](QUESTIONS)) as server:
        command = ("eval", "run", "--dataset", "many.jsonl", *options(method, server), "--concurrency", "2", "-q")
        limits = {"questions": 12, "latency": 0.1, "signal_number": signal_number}
        check_stopped_run_resumes(kgqa, started, tmp_path, server, command, **limits)


def test_question_without_text_about_it(kgqa):
    with ScriptedServer(lambda messages: "no prompt is needed") as server:
        done = kgqa("ask", "Xyzzy plugh?", *options("rag", server))
    assert done.returncode == 3 and server.calls == 0 and "no text about this question" in done.out + done.err


def test_methods_need_a_corpus_and_a_model(kgqa):
    for method in METHODS:
        done = kgqa("ask", SINGLE, "--method", method, "--llm", "http://127.0.0.1:9/v1#m", *OFF)
        assert done.returncode in (1, 2) and "kgqa corpus build" in done.err
        done = kgqa("ask", SINGLE, "--method", method, "--graph", "corpus", *OFF)
        assert done.returncode in (1, 2) and "--llm" in done.err
