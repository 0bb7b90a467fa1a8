"""The embedded store: results, limits, killed processes, and workers without a network."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kgqa.errors import (
    InvalidQuery,
    KgqaError,
    PartialResult,
    QueryRejected,
    StoreCrashed,
    StoreError,
    StoreTimeout,
    StoreUnavailable,
)
from kgqa.graph.embedded import workers
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.queries import Queries
from kgqa.model import Entity, Literal
from kgqa.trace.trace import QuestionStopped, Trace

XSD = "http://www.w3.org/2001/XMLSchema#"
LINES = [
    "<http://e/a> <http://e/p> <http://e/b> .",
    '<http://e/a> <http://e/name> "Ä\\ttab\\nline \\"q\\" \\\\"@en .',
    f'<http://e/a> <http://e/age> "41"^^<{XSD}integer> .',
    '<http://e/b> <http://e/name> "plain" .',
] + [f"<http://e/n{n}> <http://e/next> <http://e/n{(n + 1) % 300}> ." for n in range(300)]
ALL = "SELECT ?s ?p ?o { ?s ?p ?o }"
SLOW = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?a != ?l) }"
QUICK = "SELECT ?o { <http://e/a> <http://e/p> ?o }"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    base = tmp_path_factory.mktemp("embedded")
    (base / "data.nt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    load_graph(base / "g", [base / "data.nt"])
    return base / "g"


@pytest.fixture
def store(folder):
    with EmbeddedStore(folder, workers=1) as store:
        yield store


def idle_workers(store: EmbeddedStore) -> list[int]:
    """Return the process ids of the workers that run no query."""
    return [worker.pid for worker in store._pool._idle]


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def slow(store: EmbeddedStore, errors: list, **options) -> threading.Thread:
    def run():
        try:
            store.select(SLOW, **options)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


class TestAnswers:
    def test_typed_rows(self, store):
        rows = store.select("SELECT ?p ?o ?x { <http://e/a> ?p ?o OPTIONAL { ?o <http://e/name> ?x } } ORDER BY ?p")
        assert rows.variables == ("p", "o", "x")
        assert rows.rows == [
            (Entity("http://e/age"), Literal("41", f"{XSD}integer"), None),
            (Entity("http://e/name"), Literal('Ä\ttab\nline "q" \\', language="en"), None),
            (Entity("http://e/p"), Entity("http://e/b"), Literal("plain")),
        ]

    def test_does_not_depend_on_the_working_folder(self, folder, tmp_path, monkeypatch):
        """The worker imports no module from the working folder."""
        (tmp_path / "json.py").write_text("raise SystemExit('imported')")
        monkeypatch.chdir(tmp_path)
        with EmbeddedStore(folder, workers=1) as store:
            assert len(store.select(QUICK)) == 1


class TestRefused:
    @pytest.mark.parametrize(
        "query",
        [
            "",
            "SELECT ?x { ?x undeclared:p ?y }",
            "ASK { ?s ?p ?o }",
            "DELETE WHERE { ?s ?p ?o }",
            "SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
            "SELECT ('\ud800' AS ?x) {}",
        ],
    )
    def test_select(self, store, query):
        with pytest.raises(QueryRejected):
            store.select(query)
        assert len(store.select(QUICK)) == 1

    def test_message_has_line_and_column(self, store):
        with pytest.raises(InvalidQuery, match=r"^Not valid SPARQL at line 1, column 17\.$"):
            store.select("SELECT ?x WHERE }")
        # prefixed names are sent as longer IRIs
        with pytest.raises(InvalidQuery, match=r"^Not valid SPARQL at line 2, column 19\.$"):
            store.select("PREFIX long: <http://example.org/a/long/namespace#>\nSELECT * { long:b }")


class TestTooLargeResults:
    def test_limits_of_rows_and_bytes(self, store, monkeypatch):
        assert len(store.select(ALL, max_rows=len(LINES))) == len(LINES)
        with pytest.raises(PartialResult, match="more than 303 rows"):
            store.select(ALL, max_rows=len(LINES) - 1)
        with pytest.raises(PartialResult):
            store.select(ALL, max_rows=0)
        assert len(store.select("SELECT * { ?s <http://e/nothing> ?o }", max_rows=0)) == 0
        assert len(store.select(QUICK)) == 1

        monkeypatch.setattr("kgqa.graph.embedded.store.MAX_RESULT_BYTES", 1000)
        with pytest.raises(PartialResult, match="larger than 1,000 bytes"):
            store.select(ALL)


class TestTimeout:
    def test_ends_the_query_and_its_process(self, store):
        store.select(QUICK)
        (worker,) = idle_workers(store)
        started = time.monotonic()
        with pytest.raises(StoreTimeout, match="stopped after .* s.*timeout="):
            store.select(SLOW, timeout=0.5)
        assert time.monotonic() - started < 10
        assert not running(worker)
        assert len(store.select(QUICK)) == 1

    def test_a_stopped_question_ends_its_running_query(self, store):
        store.select(QUICK)
        (worker,) = idle_workers(store)
        trace, started = Trace(), time.monotonic()
        threading.Timer(0.3, trace.stop).start()
        queries = Queries(store, (), timeout=60, trace=trace)
        with pytest.raises(StoreTimeout, match="together with its question"):
            queries.rows(SLOW)
        assert time.monotonic() - started < 10
        assert not running(worker)
        with pytest.raises(QuestionStopped):
            queries.rows(QUICK)
        assert len(store.select(QUICK)) == 1


@pytest.mark.slow
class TestKilledWorker:
    def test_worker_killed_once(self, store, wait_until):
        """A query is repeated once when its worker is killed."""
        store.select(QUICK)
        (worker,) = idle_workers(store)
        os.kill(worker, signal.SIGSTOP)
        found: list = []
        thread = threading.Thread(target=lambda: found.append(store.select(QUICK).rows), daemon=True)
        thread.start()
        assert wait_until(lambda: idle_workers(store) == [])
        os.kill(worker, signal.SIGKILL)
        thread.join(10)
        assert found == [[(Entity("http://e/b"),)]]

    @pytest.mark.parametrize("by_itself", [signal.SIGABRT, signal.SIGSEGV])
    def test_query_that_crashes_the_engine_is_not_repeated(self, store, wait_until, by_itself):
        store.select(QUICK)
        (worker,) = idle_workers(store)
        errors: list = []
        thread = slow(store, errors)
        assert wait_until(lambda: idle_workers(store) == [])
        os.kill(worker, by_itself)
        thread.join(10)
        assert isinstance(errors[0], StoreCrashed) and f"{-by_itself}" in str(errors[0])
        assert "not retried" in str(errors[0])


class TestThreads:
    def test_close_while_queries_run(self, load, users_of, wait_until):
        folder = load(LINES)
        store = EmbeddedStore(folder, workers=2)
        errors: list = []
        threads = [slow(store, errors, timeout=1.5) for _ in range(2)]
        assert wait_until(lambda: idle_workers(store) == [])
        store.close()
        store.close()
        for thread in threads:
            thread.join(15)
        assert len(errors) == 2 and all(isinstance(error, StoreError) for error in errors)
        assert wait_until(lambda: not users_of(folder))
        with pytest.raises(StoreUnavailable, match="has been closed"):
            store.select(QUICK)

    def test_worker_from_before_a_load_is_not_reused(self, new_store, tmp_path, wait_until):
        """After a load during a query, the next query sees the new triples."""
        store = new_store(LINES, workers=2)
        more = tmp_path / "more.nt"
        more.write_text("<http://e/new> <http://e/p> <http://e/b> .\n")
        done: list = []
        query = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h 41 . ?i ?j ?k FILTER(?i = <http://e/a>) FILTER(?c != ?f) }"
        thread = threading.Thread(target=lambda: done.append(store.select(query)), daemon=True)
        store.select(QUICK)
        thread.start()
        assert wait_until(lambda: idle_workers(store) == [])
        store.load([more])
        thread.join(60)
        assert len(done) == 1
        for _ in range(3):
            assert store.ask("ASK { <http://e/new> ?p ?o }")


PARENT = """
import signal, sys, threading, time
from pathlib import Path
from kgqa.graph.embedded.store import EmbeddedStore
store = EmbeddedStore(Path(sys.argv[1]), workers=1)
store.select("SELECT ?o { <http://e/a> <http://e/p> ?o }")
print(store._pool._idle[0].pid, flush=True)
if sys.argv[2] == "interrupt":
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    store.select(sys.argv[3])
except KeyboardInterrupt:
    print("interrupted", len(store._pool._idle), flush=True)
    print(len(store.select("SELECT ?o { <http://e/a> <http://e/p> ?o }")), flush=True)
    store.close()
    print("closed", flush=True)
    time.sleep(30)
"""


@pytest.mark.slow
class TestParent:
    def test_ctrl_c_leaves_no_worker(self, folder, python, wait_until):
        parent = python(PARENT, folder, "interrupt", SLOW)
        worker = int(parent.stdout.readline())
        assert running(worker)
        assert parent.stdout.readline() == "interrupted 0\n"
        assert wait_until(lambda: not running(worker))
        assert parent.stdout.readline() == "1\n"  # the store still works
        assert parent.stdout.readline() == "closed\n"
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text()
        assert children == ""

    def test_parent_killed_during_a_query(self, load, python, users_of, wait_until):
        folder = load(LINES)
        parent = python(PARENT, folder, "wait", SLOW)
        worker = int(parent.stdout.readline())
        time.sleep(0.3)
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(10)
        assert wait_until(lambda: not running(worker) and not users_of(folder))


def test_worker_cannot_connect(load):
    folder = load("<http://e/a> <http://e/b> <http://e/c> .")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        worker = workers.Worker(folder / "gen-1" / "store")
        query = f"SELECT * {{ SERVICE <http://127.0.0.1:{server.getsockname()[1]}/x> {{ ?s ?p ?o }} }}"
        with pytest.raises(KgqaError):
            worker.call({"op": "select", "query": query, "max_rows": 10, "max_bytes": 1000}, seconds=30)
        assert worker.call({"op": "ask", "query": "ASK { ?s ?p ?o }"}, seconds=30) == b"1"
        worker.kill()
        with pytest.raises(BlockingIOError):
            server.accept()


def test_only_the_network_is_denied():
    """The sandbox cannot be undone, so the test uses another process."""
    code = (
        "import socket, subprocess, tempfile\n"
        "from kgqa.graph.embedded.worker import deny_network\n"
        "assert deny_network() and deny_network()\n"
        "tempfile.TemporaryFile().write(b'x')\n"
        "assert subprocess.run(['true']).returncode == 0\n"
        "try:\n    socket.socket()\nexcept PermissionError:\n    print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "refused", done.stderr
