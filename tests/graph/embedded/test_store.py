"""The embedded store: results, limits, updates, and killed processes."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from kgqa.errors import (
    PartialResult,
    QueryRejected,
    SettingsError,
    StoreBusy,
    StoreCrashed,
    StoreError,
    StoreTimeout,
    StoreUnavailable,
)
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.opening import open_store
from kgqa.graph.store import Store
from kgqa.model import Entity, Literal

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

    def test_no_rows(self, shared):
        rows = shared.select("SELECT ?x ?y { ?x <http://e/nothing> ?y }")
        assert rows.variables == ("x", "y") and len(rows) == 0

    def test_ask(self, shared):
        assert shared.ask("ASK { <http://e/a> <http://e/p> ?o }") is True
        assert shared.ask("ASK { <http://e/a> <http://e/q> ?o }") is False

    def test_prefixes_with_dots(self, shared):
        assert len(shared.select("PREFIX n: <http://e/> SELECT ?o { n:a n:p ?o }")) == 1
        assert len(shared.select("PREFIX n: <http://> SELECT ?o { ?s n:a.b.c ?o }")) == 0

    def test_implements_the_store_protocol(self, shared, folder):
        assert not {name for name in dir(Store) if not name.startswith("_")} - set(dir(shared))
        assert shared.fingerprint == GraphFolder(folder).meta().fingerprint
        assert shared.meta.triples == len(LINES)

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

    def test_ask_and_update(self, shared):
        with pytest.raises(QueryRejected):
            shared.ask(ALL)
        with pytest.raises(QueryRejected, match="writable=True"):
            shared.update("INSERT DATA { <http://e/x> <http://e/p> 1 }")
        with pytest.raises(QueryRejected, match="longer than"):
            shared.select(QUICK + " #" + "x" * 5_000_000)
        assert shared.select(ALL).rows and shared.meta.triples == len(LINES)

    def test_message_has_line_and_column(self, shared):
        with pytest.raises(QueryRejected, match="Not valid SPARQL: .*1:"):
            shared.select("SELECT ?x WHERE }")

    def test_rejection_keeps_the_worker(self, store):
        store.select(QUICK)
        before = store.worker_pids()
        with pytest.raises(QueryRejected):
            store.select("nonsense")
        assert store.worker_pids() == before != []


class TestTooLargeResults:
    def test_row_limit(self, store):
        assert len(store.select(ALL, max_rows=len(LINES))) == len(LINES)
        with pytest.raises(PartialResult, match="more than 303 rows"):
            store.select(ALL, max_rows=len(LINES) - 1)
        with pytest.raises(PartialResult):
            store.select(ALL, max_rows=0)
        assert len(store.select("SELECT * { ?s <http://e/nothing> ?o }", max_rows=0)) == 0
        assert len(store.select(QUICK)) == 1

    def test_endless_result_is_stopped(self, store):
        started = time.monotonic()
        with pytest.raises(PartialResult):
            store.select("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", max_rows=1000)
        assert time.monotonic() - started < 10
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
        with pytest.raises(StoreTimeout, match="stopped after .* s.*--timeout"):
            store.select(SLOW, timeout=0.5)
        assert time.monotonic() - started < 10
        assert not running(worker)
        assert len(store.select(QUICK)) == 1

    def test_default_timeout_of_the_store(self, folder):
        with EmbeddedStore(folder, workers=1, timeout=0.4) as store:
            with pytest.raises(StoreTimeout):
                store.select(SLOW)
            assert len(store.select(QUICK, timeout=20)) == 1

    def test_timeout_includes_waiting_for_a_worker(self, store, wait_until):
        errors: list = []
        thread = slow(store, errors, timeout=1.5)
        assert wait_until(lambda: store.worker_pids() == [])
        with pytest.raises(StoreTimeout):
            store.select(QUICK, timeout=0.3)
        thread.join(15)
        assert isinstance(errors[0], StoreTimeout)
        assert len(store.select(QUICK)) == 1

    def test_repeated_timeouts_leave_no_process(self, folder, users_of):
        with EmbeddedStore(folder, workers=2) as store:
            for _ in range(4):
                with pytest.raises(StoreTimeout):
                    store.select(SLOW, timeout=0.15)
            assert len(users_of(folder) - {os.getpid()}) <= 2


@pytest.mark.slow
class TestKilledWorker:
    def test_idle_worker_killed(self, store, wait_until):
        store.select(QUICK)
        for _ in range(2):
            (worker,) = store.worker_pids()
            os.kill(worker, signal.SIGKILL)
            assert wait_until(lambda: has_ended(worker))
            assert len(store.select(QUICK)) == 1

    def test_worker_killed_before_the_first_query(self, folder, wait_until):
        with EmbeddedStore(folder, workers=1) as store:
            (worker,) = store.worker_pids()
            os.kill(worker, signal.SIGKILL)
            assert wait_until(lambda: has_ended(worker))
            assert len(store.select(QUICK)) == 1

    @pytest.fixture
    def busy(self, folder, store, users_of, wait_until):
        """Return `busy() -> pid`, which starts a query and returns the process of its worker."""
        store.select(QUICK)
        seen = users_of(folder) - set(store.worker_pids())

        def busy() -> int:
            assert wait_until(lambda: store.worker_pids() == [] and users_of(folder) - seen)
            (worker,) = users_of(folder) - seen
            seen.add(worker)
            return worker

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

    def test_worker_killed_twice(self, store, busy):
        errors: list = []
        thread = slow(store, errors)
        for _ in range(2):
            os.kill(busy(), signal.SIGKILL)
        thread.join(10)
        assert isinstance(errors[0], StoreCrashed) and "signal 9" in str(errors[0])
        assert len(store.select(QUICK)) == 1

    @pytest.mark.parametrize("by_itself", [signal.SIGABRT, signal.SIGSEGV])
    def test_query_that_crashes_the_engine_is_not_repeated(self, store, busy, by_itself):
        errors: list = []
        thread = slow(store, errors)
        os.kill(busy(), by_itself)
        thread.join(10)
        assert isinstance(errors[0], StoreCrashed) and f"{-by_itself}" in str(errors[0])
        assert "not retried" in str(errors[0])

    def test_update_is_not_repeated(self, new_store, wait_until):
        store = new_store(LINES, writable=True)
        store.select(QUICK)
        (worker,) = store.worker_pids()
        os.kill(worker, signal.SIGSTOP)
        errors: list = []

        def update():
            try:
                store.update("INSERT DATA { <http://e/new> <http://e/p> <http://e/o> }")
            except StoreError as error:
                errors.append(error)

        thread = threading.Thread(target=update, daemon=True)
        thread.start()
        assert wait_until(lambda: store.worker_pids() == [])
        os.kill(worker, signal.SIGKILL)
        thread.join(10)
        assert isinstance(errors[0], StoreCrashed)

    def test_only_the_query_of_the_killed_worker_ends(self, folder, wait_until):
        with EmbeddedStore(folder, workers=2) as store:
            store.select(QUICK)
            (worker,) = store.worker_pids()
            errors: list = []
            thread = slow(store, errors)
            assert wait_until(lambda: worker not in store.worker_pids())
            assert len(store.select(QUICK)) == 1
            os.kill(worker, signal.SIGABRT)
            assert len(store.select(QUICK)) == 1
            thread.join(10)
            assert len(errors) == 1


class TestThreads:
    def test_each_thread_gets_its_own_result(self, shared):
        failures: list = []

        def ask(number: int) -> None:
            try:
                for n in range(number, 300, 8):
                    rows = shared.select(f"SELECT ?o {{ <http://e/n{n}> <http://e/next> ?o }}").rows
                    assert rows == [(Entity(f"http://e/n{(n + 1) % 300}"),)]
                    if n % 5 == 0:
                        with pytest.raises(QueryRejected):
                            shared.select("nonsense")
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not failures

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

    def test_garbage_collected_store_ends_its_workers(self, folder, wait_until):
        import gc

        store = EmbeddedStore(folder, workers=1)
        store.select(QUICK)
        (worker,) = store.worker_pids()
        del store
        gc.collect()
        assert wait_until(lambda: not running(worker))


PARENT = """
import signal, sys, threading, time
from pathlib import Path
from kgqa.graph.embedded.store import EmbeddedStore
store = EmbeddedStore(Path(sys.argv[1]), workers=1, writable=sys.argv[2] == "write")
store.select("SELECT ?o { <http://e/a> <http://e/p> ?o }")
if sys.argv[2] == "write":
    store.update("INSERT DATA { <http://e/new> <http://e/p> <http://e/b> }")
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

    def test_terminal_ctrl_c_reaches_only_the_parent(self, folder, python, wait_until):
        """A terminal sends SIGINT to the process group, so workers must ignore it."""
        parent = python(PARENT, folder, "read", "wait", SLOW, start_new_session=True)
        worker = int(parent.stdout.readline())
        time.sleep(0.3)
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.stdout.readline() == "interrupted 0\n"
        assert wait_until(lambda: not running(worker))
        assert parent.stdout.readline() == "1\n"

    @pytest.mark.parametrize("mode", ["read", "write"])
    def test_parent_killed_during_a_query(self, load, python, users_of, wait_until, mode):
        folder = load(LINES)
        parent = python(PARENT, folder, mode, "wait", SLOW)
        worker = int(parent.stdout.readline())
        time.sleep(0.3)
        if mode == "write":
            with pytest.raises(StoreBusy):
                EmbeddedStore(folder)
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
            assert len(writer.select(ALL)) == len(LINES) + (mode == "write")
            writer.update("INSERT DATA { <http://e/x> <http://e/p> <http://e/b> }")


def fresh_fingerprint(load, store: EmbeddedStore) -> str:
    """Return the fingerprint of a new graph loaded from all triples of the store."""
    lines = []
    for s, p, o in store.select(ALL):
        if isinstance(o, Entity):
            text = f"<{o.iri}>"
        else:
            value = o.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
            text = f'"{value}"' + (f"@{o.language}" if o.language else f"^^<{o.datatype}>")
        lines.append(f"<{s.iri}> <{p.iri}> {text} .")
    return GraphFolder(load(lines)).meta().fingerprint


class TestUpdates:
    def test_updates_change_results_and_fingerprint(self, new_store, load):
        store = new_store(LINES, writable=True)
        before = store.fingerprint
        store.update("INSERT DATA { <http://e/new> <http://e/p> <http://e/b>, 'a\\tb\\u007F', 'ä'@en, 5, 1.5, true }")
        assert len(store.select("SELECT ?o { <http://e/new> ?p ?o }")) == 6
        middle = store.fingerprint
        assert middle != before and store.meta.triples == len(LINES) + 6
        assert middle == fresh_fingerprint(load, store)
        store.update("DELETE WHERE { <http://e/new> ?p ?o }")
        assert not store.ask("ASK { <http://e/new> ?p ?o }")
        assert store.fingerprint == before
        store.close()
        store.close()
        assert GraphFolder(store.folder.path).meta().fingerprint == before

    @pytest.mark.parametrize(
        "values",
        [
            ('"007"^^xsd:integer', '"+5"^^xsd:integer', '"1.50"^^xsd:decimal', '"1.0E0"^^xsd:double', '"1.50"^^xsd:float'),
            ('"1"^^xsd:boolean', '"2020-01-01T00:00:00+00:00"^^xsd:dateTime', '"P1Y0M"^^xsd:duration', '"02020"^^xsd:gYear'),
            ('"a"@EN-GB', '"a\\tb\\u007F\\u0001"', '"a\u2028b"', '"x"^^<http://E/t>', "<http://e/%7Ex>", "<http://E/B#>"),
        ],
        ids=["numbers", "other values", "texts"],
    )  # fmt: skip
    def test_removing_an_added_triple_restores_the_fingerprint(self, new_store, values):
        """Adding and removing a triple restores the fingerprint, however its value is written."""
        full = [re.sub(r"xsd:(\w+)", rf"<{XSD}\1>", value) for value in values]
        store = new_store([f"<http://e/x> <http://e/v{n}> {value} ." for n, value in enumerate(full)], writable=True)
        before = store.meta
        store.update("INSERT DATA { <http://e/y> <http://e/p> 1 }")
        store.update("DELETE DATA { <http://e/y> <http://e/p> 1 }")
        after = store.meta
        assert (after.triples, after.fingerprint) == (before.triples, before.fingerprint)

    def test_two_spellings_of_one_value_are_one_triple(self, new_store):
        """The engine stores numbers by value; the triple count must match the returned triples."""
        store = new_store(
            [f'<http://e/x> <http://e/v> "{text}"^^<{XSD}integer> .' for text in ("1", "01", "+1")], writable=True
        )
        assert store.meta.triples == len(store.select(ALL))

    def test_writing_store_locks_out_other_writers(self, new_store, python):
        store = new_store(LINES, writable=True)
        folder = store.folder.path
        script = (
            "import sys; from pathlib import Path; from kgqa.errors import KgqaError\n"
            "from kgqa.graph.embedded.store import EmbeddedStore, load_graph\n"
            "def attempt(do):\n"
            "    try: do(); print('done')\n"
            "    except KgqaError as error: print(type(error).__name__, error)\n"
            "attempt(lambda: EmbeddedStore(Path(sys.argv[1])))\n"
            "attempt(lambda: EmbeddedStore(Path(sys.argv[1]), writable=True))\n"
            "attempt(lambda: load_graph(Path(sys.argv[1]), [Path(sys.argv[2])]))\n"
        )
        data = folder.parent / "lines1.nq"
        out, errors = python(script, folder, data).communicate(timeout=30)
        lines = out.splitlines()
        assert len(lines) == 3 and all(line.startswith("StoreBusy Another process") for line in lines), out + errors
        store.close()
        with EmbeddedStore(folder, workers=1) as reader:
            with pytest.raises(StoreBusy, match="is reading"):
                EmbeddedStore(folder, writable=True)
            assert len(reader.select(ALL)) == len(LINES)

    def test_load_through_a_writing_store_is_refused(self, new_store, tmp_path):
        store = new_store(LINES, writable=True)
        with pytest.raises(StoreUnavailable):
            store.load([tmp_path / "x.nt"])
        assert len(store.select(ALL)) == len(LINES)

    @pytest.mark.slow
    def test_crash_between_update_and_close(self, load, python, users_of, wait_until):
        folder = load(LINES)
        before = GraphFolder(folder).meta().fingerprint
        parent = python(PARENT, folder, "write", "wait", SLOW)
        parent.stdout.readline()
        parent.kill()
        parent.wait(10)
        assert wait_until(lambda: not users_of(folder))
        time.sleep(0.1)
        with EmbeddedStore(folder, workers=1) as reader:
            with pytest.raises(StoreUnavailable, match="not closed properly.*Open and close it once"):
                reader.fingerprint
        with pytest.raises(StoreUnavailable, match="not closed properly.*Open and close it once"):
            load_graph(folder, [folder.parent / "lines1.nq"])
        EmbeddedStore(folder, writable=True).close()
        with EmbeddedStore(folder, workers=1) as reader:
            assert reader.fingerprint not in ("", before)
            assert reader.meta.triples == len(LINES) + 1
            assert reader.fingerprint == fresh_fingerprint(load, reader)

    def test_refused_update_changes_nothing(self, new_store):
        store = new_store(LINES, writable=True)
        before = store.fingerprint
        for text in ("nonsense", "LOAD <http://127.0.0.1:9/>", "INSERT DATA { <http://e/x> <http://e/p> ?v }", ALL):
            with pytest.raises(QueryRejected):
                store.update(text)
        assert store.fingerprint == before and len(store.select(ALL)) == len(LINES)

    def test_named_graphs(self, new_store):
        store = new_store(LINES[:2], writable=True)
        before = store.fingerprint
        store.update("INSERT DATA { GRAPH <http://e/g> { <http://e/a> <http://e/p> <http://e/b> } }")
        assert len(store.select(ALL)) == 2 and store.meta.triples == 3 and store.fingerprint != before

    def test_blank_nodes_in_updates(self, new_store):
        store = new_store(LINES[:2], writable=True)
        store.update("INSERT DATA { _:x <http://e/p> [ <http://e/q> 'a' ] }")
        first = store.fingerprint
        assert first == store.fingerprint and store.meta.triples == 4
        store.close()
        with EmbeddedStore(store.folder.path, workers=1) as reader:
            assert reader.fingerprint == first

    def test_create_new_graph(self, tmp_path):
        with open_store(tmp_path / "new", writable=True, create=True) as store:
            assert store.meta.triples == 0 and len(store.select(ALL)) == 0
            store.update("INSERT DATA { <http://e/a> <http://e/p> <http://e/b> }")
        with open_store(tmp_path / "new", create=True) as store:
            assert len(store.select(ALL)) == 1

    def test_load_after_updates_keeps_both(self, new_store, load):
        store = new_store(LINES[:2], writable=True)
        store.update("INSERT DATA { <http://e/new> <http://e/p> <http://e/b> }")
        store.close()
        folder = load(LINES[2:4], into=store.folder.path)
        with EmbeddedStore(folder, workers=1) as reader:
            assert len(reader.select(ALL)) == reader.meta.triples == 5
            assert reader.fingerprint == fresh_fingerprint(load, reader)


def test_failing_close_releases_everything(load, monkeypatch):
    folder = load(LINES)
    store = EmbeddedStore(folder, writable=True)
    store.update("INSERT DATA { <http://e/new> <http://e/p> <http://e/o> }")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.folder, "save_hashes", full)
    with pytest.raises(OSError):
        store.close()
    monkeypatch.undo()
    with EmbeddedStore(folder, writable=True) as again:
        assert again.ask("ASK { <http://e/new> ?p ?o }")
