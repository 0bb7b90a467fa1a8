"""Questions of many threads while the server is restarted and killed: each gets the usual answer or a clear error."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import time
from importlib.resources import files

import pytest

from kgqa.methods.ask import ask, open_resources
from kgqa.model import Answer, Question
from kgqa.settings.values import resolve
from tests.conftest import SOAK
from tests.virtuoso_server import copied, running_server

GRAPH = "http://e/demo"
pytestmark = pytest.mark.slow
THREADS, SECONDS = 16, 60 if SOAK else 3
MAX_SECONDS = 40.0
"""The longest time of a question in seconds: its budget of 20 s, a last query and a restart."""


@pytest.fixture(scope="module")
def server(prepared_folder, tmp_path_factory):
    """Yield a server with the demo graph that a test may stop and kill."""
    folder = copied(prepared_folder, tmp_path_factory.mktemp("restarts") / "server")
    with running_server(folder, query_seconds=30) as server:
        file = server.import_folder / "graph.nt"
        file.write_bytes((files("kgqa.demo") / "graph.nt").read_bytes())
        server.load([file], GRAPH)
        yield server


def kill(server) -> None:
    os.kill(server.status().pid, signal.SIGKILL)


def outcome(answer: Answer) -> tuple:
    found = sorted((str(named.value), named.name) for named in answer.answers)
    return answer.status, found, answer.sparql


@pytest.mark.soak
def test_questions_survive_restarts(server, tmp_path):
    settings = resolve(
        {
            "graph.path": server.url,
            "graph.iri": GRAPH,
            "graph.timeout": 10.0,
            "budget.seconds": 20.0,
            "endpoint.cache": "off",  # no result is cached
            "rank.embeddings": "off",
            "cache.folder": str(tmp_path / "cache"),
        }
    )
    lines = (files("kgqa.demo") / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [Question(json.loads(line)["question"]) for line in lines[:: 1 if SOAK else 6]]
    with open_resources(settings=settings) as resources:
        quiet = {question.text: outcome(ask(question, resources=resources)) for question in questions}
        assert sum(status == "answered" for status, *_ in quiet.values()) > len(questions) / 2

        over, numbers = threading.Event(), itertools.count()
        ended: list[tuple[str, tuple, str, float]] = []

        def work() -> None:
            while not over.is_set():
                question = questions[next(numbers) % len(questions)]
                started = time.monotonic()
                answer = ask(question, resources=resources)
                ended.append((question.text, outcome(answer), answer.reason or "", time.monotonic() - started))

        threads = [threading.Thread(target=work, daemon=True) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        finish = time.monotonic() + SECONDS
        while time.monotonic() < finish:
            for end in (server.stop, lambda: kill(server)):
                time.sleep(1.5)
                end()
                time.sleep(0.5)
                server.start()
        time.sleep(1)
        over.set()
        for thread in threads:
            thread.join(MAX_SECONDS)
        assert not any(thread.is_alive() for thread in threads)

        again = {question.text: outcome(ask(question, resources=resources)) for question in questions}
    assert again == quiet
    assert max(seconds for *_, seconds in ended) < MAX_SECONDS
    failures = [(status, reason) for _, (status, *_), reason, _ in ended if status in ("failed", "budget_exhausted")]
    assert all(reason for _, reason in failures)
    assert [
        (text, found)
        for text, found, *_ in ended
        if found[0] not in ("failed", "budget_exhausted") and found != quiet[text]
    ] == []
    assert len(ended) - len(failures) > THREADS
