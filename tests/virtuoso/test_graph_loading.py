"""Bulk loading of files into a managed Virtuoso server."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kgqa.errors import LoadError, ServerError, StoreUnavailable
from kgqa.graph.embedded.loading import load_graph as load_into_folder
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.store import Progress
from kgqa.schema import bundled_schema
from kgqa.virtuoso.graph_loading import NAME, bulk_load, discard_load, index_graph, load_into_url
from kgqa.virtuoso.loads import forget_journal
from kgqa.virtuoso.process import lock_owner
from kgqa.virtuoso.server import Server
from tests.conftest import SOAK
from tests.rdf_samples import files_of_each_format
from tests.virtuoso.conftest import remaining_files

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:rdflib")
ALL = "SELECT ?s ?p ?o { ?s ?p ?o }"
XSD = "http://www.w3.org/2001/XMLSchema#"
LINES = [f"<http://e/{n}> <http://e/p{n % 7}> <http://e/{n + 1}> ." for n in range(30_000)]
FILE_LINES = 50_000 if SOAK else 3_000
CHUNK_LINES = FILE_LINES // 2
COUNT = 12 * FILE_LINES
GOOD = COUNT - COUNT // 1000
_graphs = itertools.count()


@pytest.fixture(autouse=True)
def _clean_up_loads(virtuoso_server, monkeypatch):
    """Discard the interrupted load of a failed test."""
    monkeypatch.setenv("KGQA_VIRTUOSO_FOLDER", str(virtuoso_server.folder.path))
    yield
    forget_journal(virtuoso_server, NAME)


@pytest.fixture
def target(virtuoso_server):
    """`target(server=None) -> EndpointStore` that may write to a new graph."""
    opened = []

    def target(server: Server | None = None) -> EndpointStore:
        opened.append(EndpointStore((server or virtuoso_server).url, writable=f"urn:bulk:{next(_graphs)}"))
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


def stop_after(lines: int, stage: str = "loading") -> Callable[[Progress], None]:
    """Return a function that presses Ctrl-C when this many lines are done; only once, as a second one does not wait."""
    stopped = []

    def stop(progress: Progress) -> None:
        if progress.stage == stage and progress.lines > lines and not stopped:
            stopped.append(progress)
            raise KeyboardInterrupt

    return stop


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
        again = bulk_load(virtuoso_server, store, files)
        assert (again.added, again.triples, again.fingerprint) == (0, len(expected), report.fingerprint)
        assert remaining_files(virtuoso_server) == set()

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


class TestMalformedLines:
    def test_another_graph(self, virtuoso_server, target, file):
        store = target()
        quads = [LINES[0], f"{LINES[1][:-2]} <{store.writable}> .", f"{LINES[2][:-2]} <http://e/other> ."]
        with pytest.raises(LoadError, match=r"data\.nq, line 3: .*<http://e/other>"):
            bulk_load(virtuoso_server, store, [file(quads, "data.nq")], on_error="skip")
        assert bulk_load(virtuoso_server, store, [file(quads[:2], "data.nq")]).added == 2

    def test_one_fails_the_load_or_is_skipped(self, virtuoso_server, target, file):
        malformed = {
            f'"abc"^^<{XSD}integer>': "the server would store 0",
            f'""^^<{XSD}integer>': "the server would store 0",
            f'"P1Y"^^<{XSD}duration>': "does not store such a value",
            '"<a>"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral>': "does not store such a value",
            '"POINT(x)"^^<http://www.openlinksw.com/schemas/virtrdf#Geometry>': "does not store such a value",
            '"x"@en--ltr': "does not store such a value",
            f"<http://e/{'x' * 2000}>": "an IRI of 2,009 bytes",
            "nonsense": "",
        }
        fine = [f'"5"^^<{XSD}integer>', f'"-5"^^<{XSD}integer>', f'"abc \\"^^<{XSD}integer>"']
        store = target()
        path = file([LINES[0], *(f"<http://e/a> <http://e/p> {value} ." for value in (*malformed, *fine))])
        with pytest.raises(LoadError, match=r"data\.nt, line 2: .*store 0.*The load was discarded.*on_error=.skip"):
            bulk_load(virtuoso_server, store, [path])
        assert triples(store) == set() and remaining_files(virtuoso_server) == set()
        report = bulk_load(virtuoso_server, store, [path], on_error="skip")
        assert (report.added, report.lines, report.malformed) == (4, 12, 8)
        found = {example.line: example.message for example in report.examples}
        assert all(word in found[line] for line, word in enumerate(malformed.values(), start=2))


class TestInterrupted:
    @pytest.mark.soak
    @pytest.mark.slow
    def test_ctrl_c_and_resume(self, virtuoso_server, target, many_files):
        store, stop = target(), stop_after(COUNT // 2)
        message = r"[1-9][\d,]* of [\d,]+ lines are loaded into <.*>. Resume: kgqa graph load --resume --into http"
        with pytest.raises(KeyboardInterrupt, match=message):
            bulk_load(virtuoso_server, store, many_files, on_error="skip", progress=stop, chunk_lines=CHUNK_LINES)
        assert 0 < len(triples(store)) < GOOD
        assert remaining_files(virtuoso_server) == {"graph-load.json"}
        message = virtuoso_server.status().message
        assert message == "A load was interrupted. Resume it: kgqa graph load --resume --into URL"
        with pytest.raises(LoadError, match="An earlier load into .* was interrupted.*resume=True.*restart=True"):
            bulk_load(virtuoso_server, store, many_files)
        with pytest.raises(LoadError, match=f"interrupted load is into another graph, <{store.writable}>.*graph_iri="):
            bulk_load(virtuoso_server, target(), resume=True)
        done = load_into_url([], virtuoso_server.url, resume=True)
        assert (done.graph_iri, done.report.lines, done.report.malformed) == (store.writable, COUNT, COUNT - GOOD)
        assert len(triples(store)) == done.report.triples == done.report.added == GOOD
        assert remaining_files(virtuoso_server) == set()
        with pytest.raises(LoadError, match="There is no interrupted load"):
            bulk_load(virtuoso_server, store, resume=True)

    def test_changed_file_and_damaged_journal(self, virtuoso_server, target, file):
        store, files = target(), [file(LINES[n : n + 5], f"{n}.nt") for n in range(0, 45, 5)]
        with pytest.raises(KeyboardInterrupt):
            bulk_load(virtuoso_server, store, files, progress=stop_after(0, "reading"))
        assert remaining_files(virtuoso_server) == set()
        with pytest.raises(KeyboardInterrupt):
            bulk_load(virtuoso_server, store, files, progress=stop_after(20), chunk_lines=1)
        file(LINES[:6], "0.nt")
        with pytest.raises(LoadError, match=r"0\.nt has changed since the interrupted load.*--restart"):
            bulk_load(virtuoso_server, store, resume=True)
        assert discard_load(virtuoso_server.url) and not discard_load(virtuoso_server.url)
        (virtuoso_server.folder.path / "graph-load.json").write_text("{")
        with pytest.raises(ServerError, match="cannot be read.*restart=True"):
            bulk_load(virtuoso_server, target(), resume=True)
        assert bulk_load(virtuoso_server, store, files, restart=True).triples == 45

    @pytest.mark.soak
    @pytest.mark.slow
    def test_kill_9_and_stop_of_the_server(self, own_server, target, many_files, file):
        store = target(own_server)
        timers: list[threading.Timer] = []

        def kill_soon(progress) -> None:
            if progress.stage == "loading" and not timers:
                timers.append(threading.Timer(0.2, os.kill, (lock_owner(own_server.folder.lock), signal.SIGKILL)))
                timers[0].start()

        with pytest.raises(ServerError, match="kgqa virtuoso start.* loaded into .* Resume: kgqa graph load --resume"):
            bulk_load(own_server, store, many_files, on_error="skip", progress=kill_soon, chunk_lines=CHUNK_LINES)
        status = own_server.status()
        assert status.state == "crashed" and "kgqa virtuoso start" in status.message
        with pytest.raises(ServerError, match="is not running"):
            bulk_load(own_server, store, resume=True)
        own_server.start()
        report = bulk_load(own_server, store, resume=True)
        assert (report.lines, report.added, len(triples(store))) == (COUNT, GOOD, GOOD)
        assert remaining_files(own_server) == set()
        own_server.stop()
        with pytest.raises(StoreUnavailable, match="whether the server is running"):
            bulk_load(own_server, target(own_server), [file(LINES[:5])])
        with pytest.raises(
            ServerError, match="names are not indexed.*kgqa virtuoso index --graph-iri urn:x --schema rdfs"
        ):
            index_graph(own_server, target(own_server), bundled_schema("rdfs"), "urn:x")


def test_refused_loads(virtuoso_server, target, file):
    def second(progress) -> None:
        if progress.stage == "loading":
            with pytest.raises(ServerError, match="Another load into this server is running"):
                bulk_load(virtuoso_server, target(), [path])

    path = file(LINES[:50])
    assert bulk_load(virtuoso_server, target(), [path], progress=second).added == 50
    with pytest.raises(LoadError, match="open for reading only"):
        bulk_load(virtuoso_server, EndpointStore(virtuoso_server.url), [path])


def test_into_a_url(virtuoso_server, file):
    """In bulk into the user's own server; a load by updates leaves nothing to resume."""
    label, notes = "<http://www.w3.org/2000/01/rdf-schema#label>", []
    path = file([f'<http://e/a> {label} "Ada" .', f'<http://e/b> {label} "Bo" .'])
    done = load_into_url([path], virtuoso_server.url, graph_iri="urn:url-loading", notify=notes.append)
    assert (done.names, done.report.added, done.schema.name, done.graph_iri) == (2, 2, "rdfs", "urn:url-loading")
    assert notes == ["The files are loaded. Indexing the names ..."]
    for attempt in (discard_load, lambda url: load_into_url([], url, resume=True)):
        with pytest.raises(LoadError, match="cannot be resumed or discarded"):
            attempt("http://127.0.0.1:1/sparql")
