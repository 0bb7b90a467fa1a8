"""Outages of a server during a run: the run ends by itself, and `resume` restores the undisturbed result."""

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
from kgqa.virtuoso.process import lock_owner
from tests.conftest import SOAK
from tests.virtuoso_server import copied, running_server

pytestmark = pytest.mark.slow
COMMAND = ("eval", "run", "--dataset", "demo", "--sample", "30", "--embeddings", "off")
SHORT_OUTAGES_SCRIPT = """
import sys
from kgqa.evaluation.runs import outages, runner
outages.OUTAGE_SECONDS, outages.QUIET_SECONDS, outages.PROBE_SECONDS, outages.PAUSE_SECONDS = 1.5, 0.5, 0.5, 0.1
runner.LAST_SECONDS = 1.0
from kgqa.cli.main import main
main(sys.argv[1:])
"""
"""kgqa with the times of outage detection reduced to seconds."""
ENVIRONMENT = {"KGQA_LLM_RETRIES": "1", "KGQA_ENDPOINT_CACHE": "off"}
DEMO = files("kgqa.demo")
LINES = 5
"""Number of questions that are done when the server is stopped."""


class StoppableServer:
    """A SPARQL server with the demo graph that can be stopped and restarted at its port."""

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
        time.sleep(0.002)  # otherwise the run ends before the server is stopped
        with self._lock:
            return SparqlReply(body=self._store.query(request.query).serialize(format=ox.QueryResultsFormat.JSON))

    def stop(self) -> None:
        self._server.close()

    def start(self) -> None:
        """Serve again at the old port."""
        self._server.close()
        self.hanging = False
        self._server = SparqlServer(self._answer, port=self._server.port)

    def hang(self) -> None:
        self.hanging = True


@pytest.fixture
def stoppable_server() -> Iterator[StoppableServer]:
    server = StoppableServer()
    yield server
    server.stop()


@contextmanager
def started(
    folder: Path, *arguments: object, code: str = SHORT_OUTAGES_SCRIPT, **environment: str
) -> Iterator[subprocess.Popen]:
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
    """Return the exit code and the error output of kgqa."""
    with started(folder, *arguments, **options) as process:
        err = process.communicate(timeout=900)[1].decode()
    assert "Traceback" not in err and "internal error" not in err, err
    return process.returncode, err


def run_with_outage(
    folder: Path, stop_server: Callable[[], None], *arguments: object, lines: int = LINES, **options: str
) -> tuple[int, str, float]:
    """Stop a server during a run, and return the exit code, the error output and the seconds from outage to end."""
    file = folder / "x/predictions.jsonl"
    with started(folder, *arguments, "--out", "x", **options) as process:
        while not file.exists() or file.read_bytes().count(b"\n") < lines:
            assert process.poll() is None, process.stderr.read().decode()
            time.sleep(0.005)
        start = time.monotonic()
        stop_server()
        err = process.communicate(timeout=900)[1].decode()
    assert "Traceback" not in err and "internal error" not in err, err
    return process.returncode, err, time.monotonic() - start


def reproducible_records(folder: Path) -> dict[str, dict]:
    """Return what is equal in every run, by question: no times, and no query counts, because names are cached."""
    records = {}
    for line in (folder / "predictions.jsonl").read_text().splitlines():
        record = json.loads(line)
        answer = record["answer"]
        answer.pop("graph")  # contains the URL
        usage = {key: value for key, value in answer.pop("usage").items() if key not in ("seconds", "queries")}
        trace = [{k: v for k, v in e.items() if k not in ("at", "seconds")} for e in answer.pop("trace")]
        assert record["id"] not in records
        del record["seconds"], record["at"]
        records[record["id"]] = {**record, "usage": usage, "trace": trace}
    return records


def with_sorted_walks(records: dict[str, dict]) -> dict[str, dict]:
    """Sort the walks and triples of each path: Virtuoso returns them in another order after a restart."""
    for record in records.values():
        for path in record["answer"]["paths"]:
            for key in ("walks", "triples"):
                path[key].sort(key=json.dumps)
    return records


CASES = (
    [(action, concurrency) for action in ("stop", "hang") for concurrency in (1, 8)]
    if SOAK
    else [("stop", 8), ("hang", 1)]
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, dict]:
    """The records of an undisturbed run."""
    folder = tmp_path_factory.mktemp("quiet")
    server = StoppableServer()
    try:
        assert run(folder, *COMMAND, "--graph", server.url, "--out", "quiet", **ENVIRONMENT)[0] == 0
    finally:
        server.stop()
    return reproducible_records(folder / "quiet")


@pytest.mark.soak
@pytest.mark.parametrize(("action", "concurrency"), CASES)
def test_graph_outage(tmp_path, stoppable_server, undisturbed, action, concurrency):
    command = (*COMMAND, "--graph", stoppable_server.url, "--concurrency", concurrency)
    code, err, seconds = run_with_outage(tmp_path, getattr(stoppable_server, action), *command, **ENVIRONMENT)
    assert code == 3 and "Resume: kgqa eval resume x" in err and stoppable_server.url in err, err
    assert seconds < 60
    assert all(record["answer"]["status"] != "failed" for record in reproducible_records(tmp_path / "x").values())
    if action == "stop":
        before = reproducible_records(tmp_path / "x")
        code, err = run(tmp_path, "eval", "resume", "x", **ENVIRONMENT)
        assert (
            code == 1
            and f"Nothing answers at {stoppable_server.url}" in err
            and reproducible_records(tmp_path / "x") == before
        ), err
    stoppable_server.start()
    code, err = run(tmp_path, "eval", "resume", "x", **ENVIRONMENT)
    assert code == 0, err
    assert reproducible_records(tmp_path / "x") == undisturbed


def test_model_outage(tmp_path):
    """A run resumed at another URL equals an undisturbed run."""
    command = ("eval", "run", "--dataset", "demo", "--sample", "40", "--method", "io", "--embeddings", "off")
    command += ("--concurrency", "2")
    oracle = ModelOracle({"": Gold()})
    with ScriptedServer(oracle, latency=0.03) as first, ScriptedServer(oracle) as second:
        code, err, _ = run_with_outage(tmp_path, first.close, *command, "--llm", f"{first.url}#m", **ENVIRONMENT)
        assert code == 3 and "Resume: kgqa eval resume x" in err and first.url in err, err
        assert len(reproducible_records(tmp_path / "x")) < 40
        assert run(tmp_path, "eval", "resume", "x", "--llm", f"{second.url}#m", **ENVIRONMENT)[0] == 0
        assert run(tmp_path, *command, "--llm", f"{second.url}#m", "--out", "quiet", **ENVIRONMENT)[0] == 0
    assert reproducible_records(tmp_path / "x") == reproducible_records(tmp_path / "quiet")


SCRIPT = "import sys; from kgqa.cli.main import main; main(sys.argv[1:])"
GRAPH = "http://freebase.example/fast"


if SOAK:  # takes minutes

    @pytest.mark.soak
    @pytest.mark.timeout(1800)
    @pytest.mark.parametrize(
        ("action", "concurrency"), [(action, count) for action in ("stop", "hang") for count in (1, 8)]
    )
    def test_virtuoso_outage(tmp_path, prepared_folder, data_folder, action, concurrency):
        """With default settings and real questions the run ends within two minutes."""
        data = data_folder / "freebase_fast"
        environment = {"KGQA_CACHE_FOLDER": str(tmp_path / "cache"), "KGQA_ENDPOINT_CACHE": "off"}
        with running_server(copied(prepared_folder, tmp_path / "server")) as server:
            file = server.import_folder / "kg.nt.gz"
            shutil.copyfile(data / "kg.nt.gz", file)
            server.load([file], GRAPH)
            command = (
                "eval", "run", "--dataset", data / "questions.jsonl.gz", "--graph", server.url, "--graph-iri", GRAPH,
                "--concurrency", concurrency, "--embeddings", "off",
            )  # fmt: skip
            assert run(tmp_path, *command, "--out", "quiet", code=SCRIPT, **environment)[0] == 0
            pid = lock_owner(server.folder.lock)
            stop_server = server.stop if action == "stop" else partial(os.kill, pid, signal.SIGSTOP)
            code, err, seconds = run_with_outage(tmp_path, stop_server, *command, lines=80, code=SCRIPT, **environment)
            print(f"{action}, concurrency {concurrency}: ended {seconds:.0f} s after the outage began\n{err}")
            assert code == 3 and seconds < 120 and "Resume: kgqa eval resume x" in err, err
            again = run(tmp_path, "eval", "resume", "x", code=SCRIPT, **environment, KGQA_GRAPH_TIMEOUT="5")
            assert again[0] == 1 and "is not what it was" not in again[1], again
            server.start() if action == "stop" else os.kill(pid, signal.SIGCONT)
            code, err = run(tmp_path, "eval", "resume", "x", code=SCRIPT, **environment)
            assert code == 0, err
            quiet, interrupted = (with_sorted_walks(reproducible_records(tmp_path / name)) for name in ("quiet", "x"))
            assert interrupted == quiet
