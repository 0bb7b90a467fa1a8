"""The index of a server's names is built before the first of several questions."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path

import pyoxigraph as ox
import pytest

from kgqa.methods import resources
from kgqa.testing.sparql_server import SparqlReply, SparqlRequest, SparqlServer
from tests.cli_runner import Finished

INDEXED = "once for all questions"
QUESTIONS = 3
BUDGET = {"KGQA_BUDGET_SECONDS": "2", "KGQA_ENDPOINT_CACHE": "off"}


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


@pytest.fixture
def run(kgqa, monkeypatch) -> Callable[..., Finished]:
    """`run(*arguments, **environment) -> Finished`: the command line with a small time budget, and an early message."""
    monkeypatch.setattr(resources, "NOTE_AFTER_SECONDS", 0.2)
    return lambda *arguments, **options: kgqa(*arguments, "--embeddings", "off", **BUDGET, **options)


def statuses(folder: Path) -> list[str]:
    return [json.loads(line)["answer"]["status"] for line in (folder / "predictions.jsonl").read_text().splitlines()]


def slow_names(request: SparqlRequest) -> None:
    if reads_names(request):
        time.sleep(1.3)  # for labels and for aliases


@pytest.mark.slow
def test_run_with_slow_name_index(run, demo, tmp_path):
    url = demo(slow_names).url
    done = run("eval", "run", "--dataset", "demo", "--sample", str(QUESTIONS), "--graph", url, "--out", "x")
    assert done.returncode == 0, done.err
    assert len(statuses(tmp_path / "x")) == QUESTIONS and "budget_exhausted" not in statuses(tmp_path / "x")
    assert INDEXED in done.err


@pytest.mark.slow
def test_several_questions_with_slow_name_index(run, demo, tmp_path):
    done = run("ask", "--json", "--graph", demo(slow_names).url, input="Who directed the film Parasite?\n" * 2)
    assert [json.loads(line)["status"] for line in done.out.splitlines()] == ["answered"] * 2, done.err
    assert INDEXED in done.err


@pytest.mark.parametrize("topics", ["gold", "linked"])
def test_failed_name_count_stops_only_runs_that_link_topics(run, demo, tmp_path, topics):
    def broken(request: SparqlRequest) -> SparqlReply | None:
        return SparqlReply(status=400, body=b"no such function") if counts_names(request) else None

    done = run(
        "eval", "run", "--dataset", "demo", "--sample", str(QUESTIONS), "--graph", demo(broken).url,
        "--out", "x", "--topics", topics,
    )  # fmt: skip
    if topics == "gold":
        assert len(statuses(tmp_path / "x")) == QUESTIONS and "could not be indexed beforehand" in done.err
    else:
        assert done.returncode == 1 and "no such function" in done.err
        assert not (tmp_path / "x/predictions.jsonl").exists() or statuses(tmp_path / "x") == []


def test_server_without_name_index(run, demo, tmp_path):
    def uncounted(request: SparqlRequest) -> SparqlReply | None:
        return SparqlReply(status=504, body=b"too slow") if counts_names(request) else None

    done = run(
        "eval", "run", "--dataset", "demo", "--sample", str(QUESTIONS), "--graph", demo(uncounted).url,
        "--out", "x",
    )  # fmt: skip
    assert done.returncode == 0, done.err
    assert set(statuses(tmp_path / "x")) == {"answered"} and "beforehand" not in done.err
