"""What the command line shows of answers over text, with a scripted agent over a small corpus."""

from __future__ import annotations

import fcntl
import json
import os
import re
import struct
import subprocess
import termios
from contextlib import suppress

import pytest

from kgqa.testing.agents.graphsearch_agent import GraphSearchAgent
from kgqa.testing.agents.text_agents import RagAgent
from kgqa.testing.agents.tog3_agent import Tog3Agent
from kgqa.testing.server import ScriptedServer
from tests.cli_runner import KGQA
from tests.small_corpus import LONG, QUESTIONS, SHORT, SINGLE, write_corpus, write_questions

OFF = ("--embeddings", "off")


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path)


def test_rounds_on_the_command_line(kgqa, corpus):
    small = ("--set", "tog3.retrieve=2", "--set", "tog3.keep=2", "--set", "tog3.kinds=chunk")
    with ScriptedServer(Tog3Agent(QUESTIONS)) as server:
        command = ("ask", SHORT, "--graph", "corpus", "--method", "tog3", "--llm", f"{server.url}#m", *OFF, *small)
        shown = kgqa(*command, "--trace")
        saved = kgqa(*command, "--json", "--trace")
    assert shown.returncode == 0, shown.err
    assert "] planned: round 1 asks: 1. When was the lighthouse of Tarn Harbour finished?" in shown.err
    assert "] sufficiency_judged: round 2: sufficient" in shown.err and "urn:kgqa:chunk" not in shown.err
    assert "[docs/Tarn Harbour.md, " in shown.out and " ✓\n" in shown.out
    assert "steps  the question → not in the passages" in shown.out
    explained = kgqa("explain", input=saved.out)
    assert explained.returncode == 0 and explained.out.startswith(f"Question: {SHORT}\nAnswer: 1830\nSteps:\n")
    assert "round 1 asks: 1. When was the lighthouse of Tarn Harbour finished?" in explained.out
    assert "“The lighthouse of Tarn Harbour was finished in 1830.” [docs/Tarn Harbour.md" in explained.out


def test_answer_that_no_query_returns(kgqa, corpus):
    with ScriptedServer(RagAgent(QUESTIONS)) as server:
        options = ("--graph", "corpus", "--method", "rag", "--llm", f"{server.url}#m", *OFF, "--show-sparql")
        done = kgqa("ask", SINGLE, *options)
    assert done.out == "" and "No query returns this answer. --json shows the query of its evidence.\n" in done.err


def test_run_and_its_report(kgqa, corpus, tmp_path):
    write_questions(tmp_path / "questions.jsonl")
    with ScriptedServer(RagAgent(QUESTIONS)) as server:
        options = ("--graph", "corpus", "--method", "rag", "--llm", f"{server.url}#m", *OFF, "--losses")
        done = kgqa("eval", "run", "--dataset", "questions.jsonl", *options, "--out", "run")
        assert done.returncode == 0, done.err
    assert "  losses  right 3" in kgqa("eval", "status", "run").out
    assert json.loads(kgqa("eval", "status", "run", "--json").out)[0]["losses"] == {"right": 3}
    report = kgqa("report", "run", "--all-metrics", "--html", "site")
    assert "quotes that are verified" in report.out and "Substring EM" in report.out
    pages = [each.read_text() for each in (tmp_path / "site" / "run-1").iterdir()]
    (page,) = [each for each in pages if LONG in each.split("</title>")[1].split("</h1>")[0]]
    assert "<mark>Mara Holt was born in Tarn Harbour in 1871.</mark>" in page
    (tmp_path / "corpus").rename(tmp_path / "elsewhere")
    assert kgqa("report", "run", "--html", "site").returncode == 0
    pages = [each.read_text() for each in (tmp_path / "site" / "run-1").iterdir()]
    assert all("<mark>" not in each and "the corpus of the run was not found" in each for each in pages)


@pytest.mark.cli
def test_line_on_a_terminal_names_the_step(corpus, tmp_path):
    terminal, stderr = os.openpty()
    fcntl.ioctl(stderr, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    with ScriptedServer(GraphSearchAgent(QUESTIONS)) as server:
        options = ("--graph", "corpus", "--method", "graphsearch", "--llm", f"{server.url}#m", *OFF)
        process = subprocess.Popen([KGQA, "ask", LONG, *options], cwd=tmp_path, stdout=subprocess.PIPE, stderr=stderr)
        os.close(stderr)
        shown = b""
        with suppress(OSError):  # the process has closed the terminal
            while part := os.read(terminal, 4096):
                shown += part
        os.close(terminal)
        answer = process.communicate(timeout=60)[0].decode()
    assert answer.startswith("Ben Aske") and process.returncode == 0
    assert b"round 0 asks: 1. Where was" in shown and b"sub-question 2" in shown, shown
    assert re.search(rb"draft accepted *\r.*\r +\r", shown)  # the line was removed
