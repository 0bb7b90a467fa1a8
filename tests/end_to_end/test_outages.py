"""A server goes away in the middle of a run: the run ends by itself, and `resume` ends as if nothing had been."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path

import pyoxigraph as ox
import pytest

from kgqa.testing.model_oracle import Gold, ModelOracle
from kgqa.testing.server import ScriptedServer
from kgqa.testing.sparql_server import SparqlReply, SparqlRequest, SparqlServer
from kgqa.virtuoso.instance.processes import lock_owner
from tests.conftest import SOAK
from tests.virtuoso_server import copied, running_server

pytestmark = pytest.mark.slow
ASKED = ("eval", "run", "--dataset", "demo", "--sample", "30", "--embeddings", "off")
QUICK = """
import sys
from kgqa.evaluation.runs import outages, runner
outages.OUTAGE_SECONDS, outages.QUIET_SECONDS, outages.PROBE_SECONDS, outages.PAUSE_SECONDS = 1.5, 0.5, 0.5, 0.1
runner.LAST_SECONDS = 1.0
from kgqa.cli.main import main
main(sys.argv[1:])
"""
"""kgqa, to which an outage of two seconds is one of a minute."""
SLOWLY = {"KGQA_ENDPOINT_PATIENCE": "0.3", "KGQA_LLM_RETRIES": "1", "KGQA_ENDPOINT_CACHE": "off"}
DEMO = files("kgqa.demo")
LINES = 5
"""Questions that are done when the server goes."""


class Away:
    """A SPARQL server with the demo graph that can be taken away and comes back at its address."""

    def __init__(self) -> None:
        self._store = ox.Store()
        self._store.bulk_load(DEMO.joinpath("graph.nt").read_bytes(), format=ox.RdfFormat.N_TRIPLES)
        self._lock = threading.Lock()
        self.hanging = False
        self._server = SparqlServer(self._answer)
        self.url = self._server.url

    def _answer(self, request: SparqlRequest) -> SparqlReply:
        if self.hanging:
            return SparqlReply(seconds=60)
        time.sleep(0.002)  # else all is over before the server can go
        with self._lock:
            return SparqlReply(body=self._store.query(request.query).serialize(format=ox.QueryResultsFormat.JSON))

    def stop(self) -> None:
        self._server.close()

    def start(self) -> None:
        """Serve again, at the old address."""
        self._server.close()
        self.hanging = False
        self._server = SparqlServer(self._answer, port=self._server.port)

    def hang(self) -> None:
        self.hanging = True


@pytest.fixture
def away() -> Iterator[Away]:
    server = Away()
    yield server
    server.stop()


@contextmanager
def started(folder: Path, *arguments: object, code: str = QUICK, **environment: str) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env={**os.environ, **environment},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def run(folder: Path, *arguments: object, **options: str) -> tuple[int, str]:
    """The exit code of kgqa and what it said."""
    with started(folder, *arguments, **options) as process:
        err = process.communicate(timeout=900)[1].decode()
    assert "Traceback" not in err and "internal error" not in err, err
    return process.returncode, err


def stopped(
    folder: Path, take_away: Callable[[], None], *arguments: object, lines: int = LINES, **options: str
) -> tuple[int, str, float]:
    """A run whose server is taken away once some questions are done: its exit code, what it said, and how many seconds
    after the outage began it ended."""
    file = folder / "x/predictions.jsonl"
    with started(folder, *arguments, "--out", "x", **options) as process:
        while not file.exists() or file.read_bytes().count(b"\n") < lines:
            assert process.poll() is None, process.stderr.read().decode()
            time.sleep(0.005)
        began = time.monotonic()
        take_away()
        err = process.communicate(timeout=900)[1].decode()
    assert "Traceback" not in err and "internal error" not in err, err
    return process.returncode, err, time.monotonic() - began


def found(folder: Path) -> dict[str, dict]:
    """What does not differ from run to run, by question: no times, and not how many queries names took that another
    question had asked for."""
    records = {}
    for line in (folder / "predictions.jsonl").read_text().splitlines():
        record = json.loads(line)
        answer = record["answer"]
        answer.pop("graph")  # its address
        usage = {key: value for key, value in answer.pop("usage").items() if key not in ("seconds", "queries")}
        trace = [{k: v for k, v in e.items() if k not in ("at", "seconds")} for e in answer.pop("trace")]
        assert record["id"] not in records
        del record["seconds"], record["at"]
        records[record["id"]] = {**record, "usage": usage, "trace": trace}
    return records


CASES = [(how, many) for how in ("stop", "hang") for many in (1, 8)] if SOAK else [("stop", 8), ("hang", 1)]


@pytest.fixture(scope="module")
def quiet(tmp_path_factory) -> dict[str, dict]:
    """What an undisturbed run found."""
    folder = tmp_path_factory.mktemp("quiet")
    server = Away()
    try:
        assert run(folder, *ASKED, "--graph", server.url, "--out", "quiet", **SLOWLY)[0] == 0
    finally:
        server.stop()
    return found(folder / "quiet")


@pytest.mark.parametrize(("how", "concurrency"), CASES)
def test_a_graph_that_goes_away_ends_the_run_and_resume_ends_as_undisturbed(tmp_path, away, quiet, how, concurrency):
    asked = (*ASKED, "--graph", away.url, "--concurrency", concurrency)
    code, err, seconds = stopped(tmp_path, getattr(away, how), *asked, **SLOWLY)
    assert code == 3 and "Resume: kgqa eval resume x" in err and away.url in err, err
    assert seconds < 60
    assert all(record["answer"]["status"] != "failed" for record in found(tmp_path / "x").values())
    if how == "stop":
        before = found(tmp_path / "x")
        code, err = run(tmp_path, "eval", "resume", "x", **SLOWLY)
        assert code == 1 and f"Nothing answers at {away.url}" in err and found(tmp_path / "x") == before, err
    away.start()
    code, err = run(tmp_path, "eval", "resume", "x", **SLOWLY)
    assert code == 0, err
    assert found(tmp_path / "x") == quiet


def test_a_model_that_goes_away_ends_the_run_and_resume_ends_as_undisturbed(tmp_path):
    """Whoever asks elsewhere then gets what an undisturbed run gets."""
    asked = ("eval", "run", "--dataset", "demo", "--sample", "40", "--method", "io", "--embeddings", "off")
    asked += ("--concurrency", "2")
    oracle = ModelOracle({"": Gold()})
    with ScriptedServer(oracle, latency=0.03) as first, ScriptedServer(oracle) as second:
        code, err, _ = stopped(tmp_path, first.close, *asked, "--llm", f"{first.url}#m", **SLOWLY)
        assert code == 3 and "Resume: kgqa eval resume x" in err and "language model m" in err, err
        assert len(found(tmp_path / "x")) < 40
        assert run(tmp_path, "eval", "resume", "x", "--llm", f"{second.url}#m", **SLOWLY)[0] == 0
        assert run(tmp_path, *asked, "--llm", f"{second.url}#m", "--out", "quiet", **SLOWLY)[0] == 0
    assert found(tmp_path / "x") == found(tmp_path / "quiet")


REAL = "import sys; from kgqa.cli.main import main; main(sys.argv[1:])"
GRAPH = "http://freebase.example/fast"


if SOAK:  # it takes minutes; the tests above are its reduced form

    @pytest.mark.timeout(1800)
    @pytest.mark.parametrize(("how", "concurrency"), [(how, count) for how in ("stop", "hang") for count in (1, 8)])
    def test_virtuoso_goes_away_in_the_middle_of_a_run(tmp_path, prepared_folder, data_folder, how, concurrency):
        """Default settings, real questions: the run ends by itself within two minutes, and `resume` ends as undisturbed."""
        data = data_folder / "freebase_fast"
        own = {"KGQA_CACHE_FOLDER": str(tmp_path / "cache"), "KGQA_ENDPOINT_CACHE": "off"}
        with running_server(copied(prepared_folder, tmp_path / "server")) as server:
            file = server.import_folder / "kg.nt.gz"
            shutil.copyfile(data / "kg.nt.gz", file)
            assert server.load([file], GRAPH)[0].error is None
            asked = (
                "eval", "run", "--dataset", data / "questions.jsonl.gz", "--graph", server.url, "--graph-iri", GRAPH,
                "--concurrency", concurrency, "--embeddings", "off",
            )  # fmt: skip
            assert run(tmp_path, *asked, "--out", "quiet", code=REAL, **own)[0] == 0
            pid = lock_owner(server.folder.lock).pid
            take_away = server.stop if how == "stop" else partial(os.kill, pid, signal.SIGSTOP)
            code, err, seconds = stopped(tmp_path, take_away, *asked, lines=80, code=REAL, **own)
            print(f"{how}, concurrency {concurrency}: ended {seconds:.0f} s after the outage began\n{err}")
            assert code == 3 and seconds < 120 and "Resume: kgqa eval resume x" in err, err
            again = run(tmp_path, "eval", "resume", "x", code=REAL, **own, KGQA_GRAPH_TIMEOUT="5")
            assert again[0] == 1 and "is not what it was" not in again[1], again
            server.start() if how == "stop" else os.kill(pid, signal.SIGCONT)
            code, err = run(tmp_path, "eval", "resume", "x", code=REAL, **own)
            assert code == 0, err
            assert found(tmp_path / "x") == found(tmp_path / "quiet")
