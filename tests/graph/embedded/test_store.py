"""The embedded store: results, limits, and killed processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from kgqa.errors import (
    InvalidQuery,
    PartialResult,
    QueryRejected,
    SettingsError,
    StoreBusy,
    StoreCrashed,
    StoreError,
    StoreTimeout,
    StoreUnavailable,
)
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.opening import open_store
from kgqa.graph.queries import Queries
from kgqa.model import Entity, Literal
from kgqa.trace.trace import QuestionStopped, Trace
from tests.graph.edits import triples

XSD = "http://www.w3.org/2001/XMLSchema#"
LINES = [
    "<http://e/a> <http://e/p> <http://e/b> .",
    '<http://e/a> <http://e/name> "Ä\\ttab\\nline \\"q\\" \\\\"@en .',
    f'<http://e/a> <http://e/age> "41"^^<{XSD}integer> .',
    '<http://e/b> <http://e/name> "plain" .',
] + [f"<http://e/n{n}> <http://e/next> <http://e/n{(n + 1) % 300}> ." for n in range(300)]
ALL = "SELECT ?s ?p ?o { ?s ?p ?o }"
SLOW = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?a != ?l) }"
NEW = triples("<http://e/new> <http://e/p> <http://e/b> .")
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


@pytest.fixture(scope="module")
def shared(folder):
    with EmbeddedStore(folder, workers=2) as store:
        yield store


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def has_ended(pid: int) -> bool:
    """Return whether a child process has ended, without waiting for it."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


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
    def test_typed_rows(self, shared):
        rows = shared.select("SELECT ?p ?o ?x { <http://e/a> ?p ?o OPTIONAL { ?o <http://e/name> ?x } } ORDER BY ?p")
        assert rows.variables == ("p", "o", "x")
        assert rows.rows == [
            (Entity("http://e/age"), Literal("41", f"{XSD}integer"), None),
            (Entity("http://e/name"), Literal('Ä\ttab\nline "q" \\', language="en"), None),
            (Entity("http://e/p"), Entity("http://e/b"), Literal("plain")),
        ]
        assert len(rows) == 3 and list(rows) == rows.rows

    def test_web_address(self):
        with open_store("http://127.0.0.1:1/sparql") as store:
            assert isinstance(store, EndpointStore) and store.location == "http://127.0.0.1:1/sparql"
        with pytest.raises(SettingsError, match="name the graph to write to"):
            open_store("http://127.0.0.1:1/sparql", writable=True)

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
            "nonsense",
            "SELECT ?x {",
            "SELECT ?x { ?x <http://e/p> }",
            "SELECT ?x { ?x undeclared:p ?y }",
            "ASK { ?s ?p ?o }",
            "CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }",
            "DESCRIBE <http://e/a>",
            "INSERT DATA { <http://e/x> <http://e/p> 1 }",
            "DELETE WHERE { ?s ?p ?o }",
            "SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
            "SELECT ('\ud800' AS ?x) {}",
        ],
    )
    def test_select(self, shared, query):
        with pytest.raises(QueryRejected):
            shared.select(query)
        assert len(shared.select(QUICK)) == 1

    def test_message_has_line_and_column(self, shared):
        with pytest.raises(InvalidQuery, match=r"^Not valid SPARQL at line 1, column 17\.$"):
            shared.select("SELECT ?x WHERE }")
        # prefixed names are sent as longer IRIs
        with pytest.raises(InvalidQuery, match=r"^Not valid SPARQL at line 2, column 19\.$"):
            shared.select("PREFIX long: <http://example.org/a/long/namespace#>\nSELECT * { long:b }")


class TestTooLargeResults:
    def test_row_limit(self, store):
        assert len(store.select(ALL, max_rows=len(LINES))) == len(LINES)
        with pytest.raises(PartialResult, match="more than 303 rows"):
            store.select(ALL, max_rows=len(LINES) - 1)
        with pytest.raises(PartialResult):
            store.select(ALL, max_rows=0)
        assert len(store.select("SELECT * { ?s <http://e/nothing> ?o }", max_rows=0)) == 0
        assert len(store.select(QUICK)) == 1

    def test_byte_limit(self, store, monkeypatch):
        monkeypatch.setattr("kgqa.graph.embedded.store.MAX_RESULT_BYTES", 1000)
        with pytest.raises(PartialResult, match="larger than 1,000 bytes"):
            store.select(ALL)


class TestTimeout:
    def test_ends_the_query_and_its_process(self, store):
        store.select(QUICK)
        (worker,) = store.worker_pids()
        started = time.monotonic()
        with pytest.raises(StoreTimeout, match="stopped after .* s.*timeout="):
            store.select(SLOW, timeout=0.5)
        assert time.monotonic() - started < 10
        assert not running(worker)
        assert len(store.select(QUICK)) == 1

    def test_a_stopped_question_ends_its_running_query(self, store):
        store.select(QUICK)
        (worker,) = store.worker_pids()
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
    def test_idle_worker_killed(self, store, wait_until):
        store.select(QUICK)
        for _ in range(2):
            (worker,) = store.worker_pids()
            os.kill(worker, signal.SIGKILL)
            assert wait_until(lambda: has_ended(worker))
            assert len(store.select(QUICK)) == 1

    @pytest.fixture
    def busy(self, folder, store, users_of, wait_until):
        """Return `busy() -> pid`, which starts a query and returns the process of its worker."""
        store.select(QUICK)
        seen = (users_of(folder) - set(store.worker_pids())) | {os.getpid()}  # the store reads the folder, too

        def busy() -> int:
            found: set[int] = set()

            def found_one() -> bool:
                # a process that opens or closes a file meanwhile is missed
                found.clear()
                found.update(users_of(folder) - seen if store.worker_pids() == [] else ())
                return len(found) == 1

            assert wait_until(found_one)
            seen.update(found)
            return found.pop()

        return busy

    def test_worker_killed_once(self, store, wait_until):
        """A query is repeated once when its worker is killed."""
        store.select(QUICK)
        (worker,) = store.worker_pids()
        os.kill(worker, signal.SIGSTOP)
        found: list = []
        thread = threading.Thread(target=lambda: found.append(store.select(QUICK).rows), daemon=True)
        thread.start()
        assert wait_until(lambda: store.worker_pids() == [])
        os.kill(worker, signal.SIGKILL)
        thread.join(10)
        assert found == [[(Entity("http://e/b"),)]]

    @pytest.mark.parametrize("by_itself", [signal.SIGABRT, signal.SIGSEGV])
    def test_query_that_crashes_the_engine_is_not_repeated(self, store, busy, by_itself):
        errors: list = []
        thread = slow(store, errors)
        os.kill(busy(), by_itself)
        thread.join(10)
        assert isinstance(errors[0], StoreCrashed) and f"{-by_itself}" in str(errors[0])
        assert "not retried" in str(errors[0])

    def test_edit_during_which_the_worker_is_killed(self, new_store, wait_until):
        store = new_store(LINES, writable=True)
        store.select(QUICK)
        (worker,) = store.worker_pids()
        os.kill(worker, signal.SIGSTOP)
        errors: list = []

        def update():
            try:
                store.edit("", NEW)
            except StoreError as error:
                errors.append(error)

        thread = threading.Thread(target=update, daemon=True)
        thread.start()
        assert wait_until(lambda: store.worker_pids() == [])
        os.kill(worker, signal.SIGKILL)
        thread.join(10)
        assert isinstance(errors[0], StoreCrashed)
        assert store.edits_since("0") == [] and store.triples_of() == len(LINES)
        assert store.edit("", NEW).added == tuple(NEW)


class TestThreads:
    def test_close_while_queries_run(self, load, users_of, wait_until):
        folder = load(LINES)
        store = EmbeddedStore(folder, workers=2)
        errors: list = []
        threads = [slow(store, errors, timeout=1.5) for _ in range(2)]
        assert wait_until(lambda: store.worker_pids() == [])
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
        assert wait_until(lambda: store.worker_pids() == [])
        store.load([more])
        thread.join(60)
        assert len(done) == 1
        for _ in range(3):
            assert store.ask("ASK { <http://e/new> ?p ?o }")


class TestClose:
    def test_close_twice(self, folder, users_of, wait_until):
        store = EmbeddedStore(folder, workers=2)
        store.select(QUICK)
        (worker,) = store.worker_pids()
        store.close()
        store.close()
        assert wait_until(lambda: not running(worker))
        with pytest.raises(StoreUnavailable, match="has been closed"):
            store.ask("ASK {}")


PARENT = """
import signal, sys, threading, time
from pathlib import Path
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.model import Entity, Triple
store = EmbeddedStore(Path(sys.argv[1]), workers=1, writable=sys.argv[2] == "write")
store.select("SELECT ?o { <http://e/a> <http://e/p> ?o }")
if sys.argv[2] == "write":
    store.edit("", [Triple(Entity("http://e/new"), "http://e/p", Entity("http://e/b"))])
print(store.worker_pids()[0], flush=True)
if sys.argv[3] == "interrupt":
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    store.select(sys.argv[4])
except KeyboardInterrupt:
    print("interrupted", len(store.worker_pids()), flush=True)
    print(len(store.select("SELECT ?o { <http://e/a> <http://e/p> ?o }")), flush=True)
    store.close()
    print("closed", flush=True)
    time.sleep(30)
"""


@pytest.mark.slow
class TestParent:
    def test_ctrl_c_leaves_no_worker(self, folder, python, wait_until):
        parent = python(PARENT, folder, "read", "interrupt", SLOW)
        worker = int(parent.stdout.readline())
        assert running(worker)
        assert parent.stdout.readline() == "interrupted 0\n"
        assert wait_until(lambda: not running(worker))
        assert parent.stdout.readline() == "1\n"  # the store still works
        assert parent.stdout.readline() == "closed\n"
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text()
        assert children == ""

    @pytest.mark.parametrize("mode", ["read", "write"])
    def test_parent_killed_during_a_query(self, load, python, users_of, wait_until, mode):
        folder = load(LINES)
        parent = python(PARENT, folder, mode, "wait", SLOW)
        worker = int(parent.stdout.readline())
        time.sleep(0.3)
        if mode == "write":
            with pytest.raises(StoreBusy, match=rf"\({parent.pid}\)"):
                EmbeddedStore(folder, writable=True)
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(10)
        assert wait_until(lambda: not running(worker) and not users_of(folder), 10)
        deadline = time.monotonic() + 10
        while True:
            try:
                writer = EmbeddedStore(folder, writable=True)
                break
            except StoreBusy:
                assert time.monotonic() < deadline, "a lock outlived its process"
                time.sleep(0.05)
        with writer:
            assert len(writer.select(ALL)) == len(LINES)
            assert ("1 edit" in writer.notice()) == (mode == "write")
            writer.edit("", NEW)
