"""Bulk loading of files into a managed Virtuoso server."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kgqa.virtuoso.bulk.loading import bulk_load, discard_interrupted, write_chunks
from kgqa.virtuoso.instance.processes import lock_owner
from kgqa.virtuoso.server.server import Server

from kgqa.errors import LoadError, ServerError, StoreUnavailable
from kgqa.graph.embedded.loading import load_graph as load_into_folder
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.rdf.files import MalformedLines, file_job
from kgqa.graph.rdf.upload import UploadFiles, upload_problem
from tests.conftest import SOAK
from tests.rdf_samples import files_of_each_format

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:rdflib")
ALL = "SELECT ?s ?p ?o { ?s ?p ?o }"
XSD = "http://www.w3.org/2001/XMLSchema#"
LINES = [f"<http://e/{n}> <http://e/p{n % 7}> <http://e/{n + 1}> ." for n in range(30_000)]
FILE_LINES = 50_000 if SOAK else 3_000
CHUNK_LINES = FILE_LINES // 2
COUNT = 12 * FILE_LINES
GOOD = COUNT - COUNT // 1000
_graphs = itertools.count()
_existing_files: set[str] = set()


@pytest.fixture(autouse=True)
def _clean_up_loads(virtuoso_server):
    """Discard the interrupted load of a failed test, and ignore files left by other tests."""
    _existing_files.update(remaining_files(virtuoso_server))
    yield
    _existing_files.clear()
    discard_interrupted(virtuoso_server)


@pytest.fixture
def target(virtuoso_server):
    """`target(server=None) -> EndpointStore` that may write to a new graph."""
    opened = []

    def target(server: Server | None = None, *, writable: str | None = None) -> EndpointStore:
        graph = writable or f"urn:bulk:{next(_graphs)}"
        opened.append(EndpointStore((server or virtuoso_server).url, writable=graph))
        return opened[-1]

    yield target
    for store in opened:
        store.close()


@pytest.fixture
def file(tmp_path):
    """`file(lines, name="data.nt") -> Path`."""

    def file(lines: list[str], name: str = "data.nt") -> Path:
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return tmp_path / name

    return file


@pytest.fixture
def wait_until():
    """`wait_until(condition, seconds)`: wait and return whether the condition became true."""

    def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not condition():
            time.sleep(0.02)
        return condition()

    return wait_until


@pytest.fixture(scope="module")
def many_files(tmp_path_factory) -> list[Path]:
    """Twelve files with a few malformed lines; with small chunks they make three groups."""
    folder = tmp_path_factory.mktemp("many")
    paths = [folder / f"{number}.nt" for number in range(12)]
    for number, path in enumerate(paths):
        lines = (f"<http://e/{number}-{n}> <http://e/p{n % 7}> <http://e/{n // 3}> .\n" for n in range(FILE_LINES))
        path.write_text("".join(line if n % 1000 else "nonsense\n" for n, line in enumerate(lines)))
    return paths


def triples(store: EndpointStore) -> set[tuple]:
    return set(store.select(ALL.replace("{", f"FROM <{store.writable}> {{", 1), fresh=True))


def remaining_files(server: Server) -> list[str]:
    """Return the files of a load that are in the server's folder."""
    journals = [name for name in ("graph-load.json", "loading.json") if (server.folder.path / name).exists()]
    found = journals + [path.name for path in server.import_folder.iterdir()]
    return [name for name in found if name not in _existing_files]


class TestLoadedGraph:
    def test_same_graph_as_embedded_for_every_format(self, tmp_path, virtuoso_server, target):
        """Blank nodes are renamed per file, so each file adds its own triples."""
        store, files = target(), files_of_each_format(tmp_path)
        report = bulk_load(virtuoso_server, store, files)
        load_into_folder(tmp_path / "g", files)
        with EmbeddedStore(tmp_path / "g", workers=1) as embedded:
            expected = set(embedded.select(ALL))
        assert triples(store) == expected
        assert (report.added, report.triples, report.malformed) == (len(expected), len(expected), 0)
        assert remaining_files(virtuoso_server) == []

    def test_loading_a_file_twice_changes_nothing(self, virtuoso_server, target, file):
        store = target()
        path = file(["_:x <http://e/p> _:y .", "_:y <http://e/p> <http://e/b> ."])
        first = bulk_load(virtuoso_server, store, [path])
        again = bulk_load(virtuoso_server, store, [path])
        assert (first.added, again.added, again.triples, again.fingerprint) == (2, 0, 2, first.fingerprint)

    def test_many_chunks_of_several_files(self, virtuoso_server, target, file):
        steps, most, folder = [], [0], virtuoso_server.import_folder / "graph-load"

        def record_progress(progress) -> None:
            steps.append(progress)
            most[0] = max(most[0], len(list(folder.iterdir())) if folder.exists() else 0)

        files = [file(LINES[start : start + 3_000], f"{start}.nt") for start in range(0, 30_000, 3_000)]
        files.insert(4, file(["# nothing"], "empty.nt"))
        store = target()
        report = bulk_load(virtuoso_server, store, files, chunk_lines=2_000, progress=record_progress)
        assert (report.lines, report.added, report.files) == (30_001, 30_000, 11)
        assert len(triples(store)) == 30_000
        assert 1 < most[0] <= 8
        loading = [step for step in steps if step.stage == "loading"]
        assert [step.lines for step in loading] == sorted(step.lines for step in loading)
        assert loading[-1].lines == 30_001 and loading[-1].bytes_done == loading[-1].bytes_total
        assert {step.file for step in loading} == {path.name for path in files}

    def test_only_the_named_graph_is_written_to(self, virtuoso_server, target, file):
        store = target()
        total = virtuoso_server.triples()
        before = dict(graphs_of(virtuoso_server))
        bulk_load(virtuoso_server, store, [file(LINES[:10])])
        after = dict(graphs_of(virtuoso_server))
        assert after.pop(store.writable) == "10" and after == before
        assert virtuoso_server.triples() == total + 10


def graphs_of(server: Server) -> list[tuple[str, ...]]:
    return server.sql("sparql select ?g (count(*) as ?n) where { graph ?g { ?s ?p ?o } } group by ?g")


class TestMalformedLines:
    def test_fail_changes_nothing(self, virtuoso_server, target, file):
        store = target()
        with pytest.raises(LoadError, match=r"bad\.nt, line 2: .*The load was discarded.*on_error=.skip"):
            bulk_load(virtuoso_server, store, [file(LINES), file([LINES[0], "nonsense"], "bad.nt")])
        assert triples(store) == set() and remaining_files(virtuoso_server) == []

    def test_skip_counts(self, virtuoso_server, target, file):
        report = bulk_load(virtuoso_server, target(), [file([LINES[0], "nonsense", LINES[1]])], on_error="skip")
        assert (report.added, report.lines, report.malformed, report.examples[0].line) == (2, 3, 1, 2)

    def test_another_graph(self, virtuoso_server, target, file):
        store = target()
        quads = [LINES[0], f"{LINES[1][:-2]} <{store.writable}> .", f"{LINES[2][:-2]} <http://e/other> ."]
        with pytest.raises(LoadError, match=r"data\.nq, line 3: .*<http://e/other>"):
            bulk_load(virtuoso_server, store, [file(quads, "data.nq")], on_error="skip")
        assert bulk_load(virtuoso_server, store, [file(quads[:2], "data.nq")]).added == 2

    @pytest.mark.parametrize("value, message", [
        (f'"abc"^^<{XSD}integer>', "the server would store 0"),
        (f'""^^<{XSD}integer>', "the server would store 0"),
        (f'"P1Y"^^<{XSD}duration>', "does not support durations"),
        (f"<http://e/{'x' * 2000}>", "an IRI of 2,009 bytes"),
    ])  # fmt: skip
    def test_values_the_server_would_change(self, virtuoso_server, target, file, value, message):
        path = file([LINES[0], f"<http://e/a> <http://e/p> {value} .", LINES[1]])
        with pytest.raises(LoadError, match=f"line 2: .*{message}"):
            bulk_load(virtuoso_server, target(), [path])
        assert bulk_load(virtuoso_server, target(), [path], on_error="skip").added == 2

    def test_valid_integers(self, virtuoso_server, target, file):
        values = [f'"{n}"^^<{XSD}integer>' for n in ("5", "-5")] + [f'"abc \\"^^<{XSD}integer>"']
        path = file([f"<http://e/a> <http://e/p> {value} ." for value in values])
        assert bulk_load(virtuoso_server, target(), [path]).added == 3

    def test_lines_rejected_by_the_server(self, virtuoso_server, target, file):
        refused = ['"<a>"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral>', '"x"@en--ltr']
        first, second = (f"<http://e/a> <http://e/p> {value} ." for value in refused)
        path = file([*LINES[:5], first, "nonsense", *LINES[5:9], second, *LINES[9:12]])
        store = target()
        report = bulk_load(virtuoso_server, store, [path], on_error="skip")
        assert (report.added, report.malformed) == (12, 3)
        assert sorted(item.line for item in report.examples) == [6, 7, 12]
        assert sum("rejected by the server" in item.message for item in report.examples) == 2
        with pytest.raises(ServerError, match=r"short\.nt, line 2: the server rejects this line: .*restart=True"):
            bulk_load(virtuoso_server, target(), [file([LINES[0], first, LINES[1]], "short.nt")])
        report = bulk_load(virtuoso_server, target(), [path.with_name("short.nt")], on_error="skip", restart=True)
        assert report.added == 2 and remaining_files(virtuoso_server) == []


class TestInterrupted:
    @pytest.mark.slow
    def test_ctrl_c_and_resume(self, virtuoso_server, target, many_files):
        stopped = []

        def stop(progress) -> None:
            if progress.stage == "loading" and not stopped:
                stopped.append(progress)  # only once: a second Ctrl-C does not wait for the server
                raise KeyboardInterrupt

        store = target()
        message = r"[1-9][\d,]* of [\d,]+ lines are loaded into <.*>. Resume: kgqa graph load --resume --into http"
        with pytest.raises(KeyboardInterrupt, match=message):
            bulk_load(virtuoso_server, store, many_files, on_error="skip", progress=stop, chunk_lines=CHUNK_LINES)
        assert 0 < len(triples(store)) < GOOD
        assert remaining_files(virtuoso_server) == ["graph-load.json"]
        message = virtuoso_server.status().message
        assert (
            message == f"A load into <{store.writable}> was interrupted. Resume it: kgqa graph load --resume --into URL"
        )
        with pytest.raises(LoadError, match="An earlier load into .* was interrupted.*resume=True.*restart=True"):
            bulk_load(virtuoso_server, store, many_files)
        with pytest.raises(LoadError, match=f"interrupted load is into another graph, <{store.writable}>.*graph_iri="):
            bulk_load(virtuoso_server, target(), resume=True)
        report = bulk_load(virtuoso_server, store, resume=True)
        assert (report.lines, report.malformed, report.added) == (COUNT, COUNT - GOOD, GOOD)
        assert len(triples(store)) == report.triples == GOOD
        assert remaining_files(virtuoso_server) == []
        with pytest.raises(LoadError, match="There is no interrupted load"):
            bulk_load(virtuoso_server, store, resume=True)

    @pytest.mark.slow
    def test_resume_needs_the_same_database(self, own_server, target, many_files, prepared_folder):
        stopped = []

        def stop(progress) -> None:
            if progress.stage == "loading" and not stopped:
                stopped.append(progress)  # only once: a second Ctrl-C does not wait for the running group
                raise KeyboardInterrupt

        store = target(own_server)
        with pytest.raises(KeyboardInterrupt):
            bulk_load(own_server, store, many_files, on_error="skip", progress=stop, chunk_lines=CHUNK_LINES)
        own_server.stop()
        shutil.copy(prepared_folder / "virtuoso.db", own_server.folder.database)
        own_server.start()
        with pytest.raises(LoadError, match="another database or an older copy.*again: restart=True"):
            bulk_load(own_server, store, resume=True)
        report = bulk_load(
            own_server, store, many_files, on_error="skip", restart=True, progress=None, chunk_lines=CHUNK_LINES
        )
        assert len(triples(store)) == report.triples == GOOD

    def test_changed_file_is_not_resumed(self, virtuoso_server, target, file):
        def stop(progress) -> None:
            raise KeyboardInterrupt

        store, path = target(), file(LINES[:50])
        with pytest.raises(KeyboardInterrupt):
            bulk_load(virtuoso_server, store, [path], progress=stop)
        file(LINES[:51])
        with pytest.raises(LoadError, match=r"data\.nt has changed since the interrupted load.*restart=True"):
            bulk_load(virtuoso_server, store, resume=True)
        assert discard_interrupted(virtuoso_server) and not discard_interrupted(virtuoso_server)
        assert bulk_load(virtuoso_server, store, [path]).added == 51

    def test_damaged_journal_is_discarded_by_restart(self, virtuoso_server, target, file):
        (virtuoso_server.folder.path / "graph-load.json").write_text("{")
        with pytest.raises(LoadError, match="is damaged.*restart=True"):
            bulk_load(virtuoso_server, target(), resume=True)
        assert bulk_load(virtuoso_server, target(), [file(LINES[:5])], restart=True).added == 5

    @pytest.mark.slow
    def test_kill_9_of_the_loading_process(self, virtuoso_server, target, many_files, wait_until):
        store = target()
        journal = virtuoso_server.folder.path / "graph-load.json"
        arguments = [virtuoso_server.folder.path, store.writable, CHUNK_LINES, *many_files]
        process = subprocess.Popen([sys.executable, "-c", LOAD, *map(str, arguments)])
        try:
            assert wait_until(lambda: process.poll() is not None or _chunks(journal) >= 1, 60)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert 1 <= _chunks(journal) < 12, "it was done before it was killed"
        report = bulk_load(virtuoso_server, store, resume=True)
        assert (report.lines, report.malformed, report.added, len(triples(store))) == (COUNT, COUNT - GOOD, GOOD, GOOD)
        assert remaining_files(virtuoso_server) == []

    @pytest.mark.slow
    def test_kill_9_of_the_server(self, own_server, target, many_files):
        store = target(own_server)
        timers: list[threading.Timer] = []

        def kill_soon(progress) -> None:
            if progress.stage == "loading" and not timers:
                timers.append(threading.Timer(0.2, os.kill, (lock_owner(own_server.folder.lock).pid, signal.SIGKILL)))
                timers[0].start()

        with pytest.raises(ServerError, match="kgqa virtuoso start.* loaded into .* Resume: kgqa graph load --resume"):
            bulk_load(own_server, store, many_files, on_error="skip", progress=kill_soon, chunk_lines=CHUNK_LINES)
        own_server.start()
        report = bulk_load(own_server, store, resume=True)
        assert (report.lines, report.added, len(triples(store))) == (COUNT, GOOD, GOOD)
        assert remaining_files(own_server) == []

    def test_stopped_server(self, own_server, target, file):
        store = target(own_server)
        own_server.stop()
        with pytest.raises(StoreUnavailable, match="whether the server is running"):
            bulk_load(own_server, store, [file(LINES[:5])])

    def test_second_load_is_refused(self, virtuoso_server, target, file):
        def second(progress) -> None:
            if progress.stage == "loading":
                with pytest.raises(ServerError, match="Another kgqa process is loading"):
                    bulk_load(virtuoso_server, target(), [path])

        path = file(LINES[:50])
        assert bulk_load(virtuoso_server, target(), [path], progress=second).added == 50


def _chunks(journal: Path) -> int:
    try:
        return json.loads(journal.read_text())["chunks"]
    except FileNotFoundError:
        return 0


LOAD = """
import sys
from pathlib import Path
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.virtuoso.bulk.loading import bulk_load
from kgqa.virtuoso.server.server import Server
server = Server.at(Path(sys.argv[1]))
store = EndpointStore(server.url, writable=sys.argv[2])
bulk_load(server, store, sys.argv[4:], on_error="skip", chunk_lines=int(sys.argv[3]))
"""


def test_disk_full(small_disk, file):
    source = UploadFiles(
        [file_job(file(LINES))], "urn:g", staging=Path("/"), malformed=MalformedLines("fail"), unfit=upload_problem
    )
    with pytest.raises(ServerError, match="The disk is full: .* are free at .*Free some space"):
        list(write_chunks(source, number=0, lines=100, folder=small_disk(1), name="x"))


def test_store_must_be_writable(virtuoso_server, file):
    with pytest.raises(LoadError, match="open for reading only"):
        bulk_load(virtuoso_server, EndpointStore(virtuoso_server.url), [file(LINES[:5])])
