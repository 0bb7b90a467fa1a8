"""Graph Counselor on the command line, with a scripted agent over the demo graph."""

from __future__ import annotations

import json
import signal

import pytest

from kgqa.testing.agents.counselor_agent import CounselorAgent, GoldProgram
from kgqa.testing.server import ScriptedServer
from tests.end_to_end.stopped_runs import check_stopped_run_resumes
from tests.end_to_end.test_eval import predictions
from tests.end_to_end.test_models import reproducible

FILMS, COUNT, YEAR = (
    "Which films did James Cameron direct?",
    "How many films did James Cameron direct?",
    "Which film of James Cameron came out last?",
)
CALL = "Neighbour[James Cameron, film (as director)]"
RELEASED = f"Feature[{CALL}, initial release date]"
PROGRAMS = {
    FILMS: GoldProgram(("Retrieve[James Cameron]", CALL, "Finish[Aliens; Titanic; Avatar]")),
    COUNT: GoldProgram(("Retrieve[James Cameron]", f"Count[{CALL}]", "Finish[3]")),
    YEAR: GoldProgram(("Retrieve[James Cameron]", f"{CALL}, {RELEASED}", "Finish[Avatar]")),
}
EVENTS = {"step_planned", "action_read", "called", "seen", "finished", "answer_verified"}


def options(server):
    return ("--method", "counselor", "--llm", f"{server.url}#m", "--embeddings", "off")


def test_ask_answers_with_exact_queries_and_replays(kgqa):
    with ScriptedServer(CounselorAgent(PROGRAMS)) as server:
        for question, answers in {FILMS: {"Aliens", "Titanic", "Avatar"}, COUNT: {"3"}, YEAR: {"Avatar"}}.items():
            command = ("ask", question, *options(server), "--json", "--trace", "--replay", "kept.jsonl")
            live = json.loads(kgqa(*command).out)
            assert {each["name"] for each in live["answers"]} == answers and live["query_class"] == "exact"
            assert live["accepted"] and live["grounding"] == "graph" and not live["defects"]
            assert live["usage"]["calls"] == 10 and EVENTS <= {event["kind"] for event in live["trace"]}
            calls = server.calls
            closed = json.loads(kgqa(*command, "--replay-only").out)
            assert server.calls == calls and reproducible(closed) == reproducible(live)
            explained = kgqa("explain", input=live["sparql"])
            assert explained.returncode == 0 and explained.out.strip()
        assert not server.errors


def test_text_trace_and_refusal(kgqa):
    with ScriptedServer(CounselorAgent(PROGRAMS, judge="no")) as server:
        command = ("ask", FILMS, *options(server), "--set", "counselor.reflections=1")
        done = kgqa(*command, "--trace")
        shown = done.out + done.err
        assert done.returncode == 0 and "Aliens" in done.out and "said no" in shown
        assert "trial 2, step 3" in shown and CALL in shown
        done = kgqa(*command, "--on-exhausted", "none")
        assert done.returncode == 3 and "said no" in done.out + done.err
        done = kgqa(*command, "--max-calls", "4")
        assert done.returncode == 3 and "4 model calls" in done.out + done.err


def write_questions(file, count):
    answers = [(FILMS, ("Aliens", "Titanic", "Avatar")), (COUNT, ("3",))]
    rows = [
        {"id": f"q{number}", "question": question, "answers": [{"name": name} for name in names]}
        for number, (question, names) in ((number, answers[number % 2]) for number in range(count))
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_eval_run(kgqa, tmp_path):
    write_questions(tmp_path / "q.jsonl", 2)
    with ScriptedServer(CounselorAgent(PROGRAMS)) as server:
        done = kgqa("eval", "run", "--dataset", "q.jsonl", *options(server), "--out", "x", "-q")
        assert done.returncode == 0 and not server.errors, done.err
    assert [record["scores"]["em"] for record in predictions(tmp_path / "x")] == [1, 1]


@pytest.mark.slow
def test_stopped_run_resumes(kgqa, started, tmp_path):
    write_questions(tmp_path / "q.jsonl", 8)
    with ScriptedServer(CounselorAgent(PROGRAMS)) as server:
        command = ("eval", "run", "--dataset", "q.jsonl", *options(server), "--concurrency", "2", "-q")
        limits = {"questions": 8, "latency": 0.05, "signal_number": signal.SIGINT}
        check_stopped_run_resumes(kgqa, started, tmp_path, server, command, **limits)
