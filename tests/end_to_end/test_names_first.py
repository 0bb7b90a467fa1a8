"""The index of a server's names is built before the first of several questions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path

import pyoxigraph as ox
import pytest

from kgqa.testing.sparql_server import SparqlReply, SparqlRequest, SparqlServer

SCRIPT = """
import sys
from kgqa.evaluation.runs import name_index
name_index.NOTE_AFTER_SECONDS = 0.2
from kgqa.cli.main import main
main(sys.argv[1:])
"""
INDEXED = "once for all questions"
QUESTIONS = 3
BUDGET = {"KGQA_BUDGET_SECONDS": "2", "KGQA_ENDPOINT_PATIENCE": "0.3", "KGQA_ENDPOINT_CACHE": "off"}


def reads_names(request: SparqlRequest) -> bool:
    return "OFFSET" in request.query


def counts_names(request: SparqlRequest) -> bool:
    return "AS ?names" in request.query


@pytest.fixture
def demo() -> Iterator[Callable[..., SparqlServer]]:
    """`demo(special) -> SparqlServer` with the demo graph; `special` may return its own reply to a query."""
    store = ox.Store()
    store.bulk_load(files("kgqa.demo").joinpath("graph.nt").read_bytes(), format=ox.RdfFormat.N_TRIPLES)
    lock = threading.Lock()
    with ExitStack() as opened:

        def demo(special: Callable[[SparqlRequest], SparqlReply | None]) -> SparqlServer:
            def answer(request: SparqlRequest) -> SparqlReply:
                if (sent := special(request)) is not None:
                    return sent
                with lock:
                    return SparqlReply(body=store.query(request.query).serialize(format=ox.QueryResultsFormat.JSON))

            return opened.enter_context(SparqlServer(answer))

        yield demo


def kgqa(folder: Path, *arguments: str, lines: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments, "--embeddings", "off"],
        input=lines, capture_output=True, text=True, cwd=folder, timeout=120,
        env={**os.environ, **BUDGET, **environment},
    )  # fmt: skip
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
    return done


def statuses(folder: Path) -> list[str]:
    return [json.loads(line)["answer"]["status"] for line in (folder / "predictions.jsonl").read_text().splitlines()]


def slow_names(request: SparqlRequest) -> None:
    if reads_names(request):
        time.sleep(1.3)  # for labels and for aliases


def test_run_with_slow_name_index(demo, tmp_path):
    url = demo(slow_names).url
    done = kgqa(tmp_path, "eval", "run", "--dataset", "demo", "--sample", str(QUESTIONS), "--graph", url, "--out", "x")
    assert done.returncode == 0, done.stderr
    assert len(statuses(tmp_path / "x")) == QUESTIONS and "budget_exhausted" not in statuses(tmp_path / "x")
    assert INDEXED in done.stderr


def test_several_questions_with_slow_name_index(demo, tmp_path):
    done = kgqa(
        tmp_path, "ask", "--json", "--graph", demo(slow_names).url, lines="Who directed the film Parasite?\n" * 2
    )
    assert [json.loads(line)["status"] for line in done.stdout.splitlines()] == ["answered"] * 2, done.stderr
    assert INDEXED in done.stderr


@pytest.mark.parametrize("topics", ["gold", "linked"])
def test_failed_name_count_stops_only_runs_that_link_topics(demo, tmp_path, topics):
    def broken(request: SparqlRequest) -> SparqlReply | None:
        return SparqlReply(status=400, body=b"no such function") if counts_names(request) else None

    done = kgqa(
        tmp_path, "eval", "run", "--dataset", "demo", "--sample", str(QUESTIONS), "--graph", demo(broken).url,
        "--out", "x", "--topics", topics,
    )  # fmt: skip
    if topics == "gold":
        assert len(statuses(tmp_path / "x")) == QUESTIONS and "could not be indexed beforehand" in done.stderr
    else:
        assert done.returncode == 1 and "no such function" in done.stderr
        assert not (tmp_path / "x/predictions.jsonl").exists() or statuses(tmp_path / "x") == []


def test_server_without_name_index(demo, tmp_path):
    def uncounted(request: SparqlRequest) -> SparqlReply | None:
        return SparqlReply(status=504, body=b"too slow") if counts_names(request) else None

    done = kgqa(
        tmp_path, "eval", "run", "--dataset", "demo", "--sample", str(QUESTIONS), "--graph", demo(uncounted).url,
        "--out", "x",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert set(statuses(tmp_path / "x")) == {"answered"} and "beforehand" not in done.stderr
