"""Loading into servers by SPARQL updates."""

from __future__ import annotations

import base64
import itertools
from pathlib import Path

import pyoxigraph as ox
import pytest

from kgqa.errors import InvalidTerm, LoadError, QueryRejected, StoreUnavailable
from kgqa.graph.endpoint import upload
from kgqa.graph.endpoint.options import Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.testing.sparql_faults import dropped
from kgqa.testing.sparql_server import SparqlReply, SparqlServer
from tests.rdf_samples import files_of_each_format

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:rdflib")
LINES = [f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> ." for n in range(50)]
WRONG_NUMBER = '<http://e/x> <http://e/p> "abc"^^<http://www.w3.org/2001/XMLSchema#integer> .'
ALL = "SELECT ?s ?p ?o { ?s ?p ?o }"
ME = Access("me", "secret", patience=0.3)
_graphs = itertools.count()


@pytest.fixture(scope="module")
def password(virtuoso_server) -> str:
    """Return the password of the user kgqa, who may write."""
    return virtuoso_server.allow_updates("kgqa").read_text().strip()


@pytest.fixture
def target(virtuoso_server, password):
    """Return `target() -> EndpointStore`, which may write to a new graph."""
    stores = []

    def target(url: str | None = None, **options) -> EndpointStore:
        options = {"access": Access("kgqa", password), "writable": f"urn:load:{next(_graphs)}", **options}
        stores.append(EndpointStore(url or virtuoso_server.url, **options))
        return stores[-1]

    yield target
    for store in stores:
        store.close()


@pytest.fixture
def file(tmp_path):
    """Return `file(lines, name="data.nt") -> Path`."""

    def file(lines: list[str] | str, name: str = "data.nt") -> Path:
        text = lines if isinstance(lines, str) else "\n".join(lines) + "\n"
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return file


def triples(store: EndpointStore) -> set[tuple]:
    return set(store.select(ALL.replace("{", f"FROM <{store.writable}> {{", 1), fresh=True))


def test_every_format_gives_the_same_graph_as_a_folder(tmp_path, target, new_store):
    for path in files_of_each_format(tmp_path):
        store, expected = target(), set(new_store(path).select(ALL))
        report = store.load([path])
        assert triples(store) == expected, path.suffix
        assert (report.added, report.triples) == (len(expected), len(expected)), path.suffix


def test_loading_twice_changes_nothing(target, file):
    store = target()
    path = file("@prefix : <http://e/> . :a :p [ :q [ :r 1 ] ; :s (1 2) ] . _:b :p _:c .", "nodes.ttl")
    first = store.load([path])
    version, again = store.version_of(), store.load([path])
    assert (again.added, again.triples, again.fingerprint) == (0, first.triples, first.fingerprint)
    assert store.version_of() != version


def test_malformed_lines(target, file):
    store = target()
    with pytest.raises(LoadError, match=r"bad\.nt, line 2: .*The load was discarded.*on_error=.skip"):
        store.load([file(LINES), file([LINES[0], "<http://e/a> nonsense ."], "bad.nt")])
    with pytest.raises(LoadError, match="line 2: .*<http://e/other>"):
        store.load([file([LINES[0], f"{LINES[1][:-2]} <http://e/other> ."], "data.nq")], on_error="skip")
    assert triples(store) == set()
    report = store.load(
        [file([LINES[0], "nonsense", "", "# nothing", LINES[1], "<http://e:port/> <b> <c> ."])], on_error="skip"
    )
    assert (report.added, report.lines, report.malformed) == (2, 6, 2)
    assert [(item.file, item.line) for item in report.examples] == [("data.nt", 2), ("data.nt", 6)]


def test_line_refused_by_the_server_is_named(target, file):
    report = target().load([file([*LINES[:20], "nonsense", WRONG_NUMBER, *LINES[20:]])], on_error="skip")
    assert (report.added, report.malformed) == (50, 2)
    assert (report.examples[1].line, "abc" in report.examples[1].message) == (22, True)
    with pytest.raises(QueryRejected, match=r"data\.nt, line 1: .*on_error=.skip.*Load the same files again"):
        target().load([file([WRONG_NUMBER, *LINES])])


@pytest.mark.parametrize("writable, error, message", [
    (None, LoadError, "open for reading only. Name the graph"),
    ("no iri", InvalidTerm, "is not an absolute IRI"),
    ("http://www.openlinksw.com/schemas/virtrdf#", LoadError, "is a system graph"),
])  # fmt: skip
def test_store_without_writable_graph(target, file, writable, error, message):
    with pytest.raises(error, match=message):
        target(writable=writable).load([file(LINES)])


@pytest.mark.parametrize("access", [Access(), Access("kgqa", "wrong")])
def test_wrong_password(target, file, access):
    with pytest.raises(StoreUnavailable, match="refuses access.*endpoint.user.*KGQA_ENDPOINT_PASSWORD") as caught:
        target(access=access).load([file(LINES)])
    assert "wrong" not in str(caught.value)


class Oxigraph:
    """A server of another kind: the embedded engine with basic authentication. `left` updates are carried out."""

    login = "Basic " + base64.b64encode(b"me:secret").decode()

    def __init__(self) -> None:
        self.data = ox.Store()
        self.left = 1_000

    def __call__(self, request) -> SparqlReply:
        if request.query:
            return SparqlReply(body=self.data.query(request.query).serialize(format=ox.QueryResultsFormat.JSON))
        if request.headers.get("authorization") != self.login:
            return SparqlReply(401, b"", headers=(("WWW-Authenticate", 'Basic realm="x"'),))
        self.left -= 1
        if self.left < 0:
            return dropped()
        self.data.update(request.update)
        return SparqlReply(204)


@pytest.mark.parametrize(
    ("reply", "fits", "found"),
    [
        (SparqlReply(500, b"<html>bad literal</html>", "text/html"), "<http://e/7> <", [8]),
        (SparqlReply(500, b"out of disk space", "text/plain"), "INSERT", None),
    ],
    ids=["error page for a line", "all lines"],
)
def test_rejected_lines_are_skipped_up_to_a_limit(file, reply, fits, found):
    oxigraph = Oxigraph()

    def script(request):
        return reply if fits in request.update and "DELETE" not in request.update else oxigraph(request)

    with SparqlServer(script) as server, EndpointStore(server.url, writable="urn:g", access=ME) as store:
        if found:
            report = store.load([file(LINES[:20])], on_error="skip")
            assert (report.added, [example.line for example in report.examples]) == (19, found)
        else:
            with pytest.raises(QueryRejected, match="out of disk space.*rejected 100 lines"):
                store.load([file([f"<urn:{n}> <urn:p> <urn:o> ." for n in range(300)])], on_error="skip")


def test_interrupted_load_says_what_is_loaded(file, monkeypatch):
    def stop(progress):
        if progress.stage == "loading" and progress.file == "more.nt":
            raise KeyboardInterrupt

    monkeypatch.setattr(upload, "BATCH_TRIPLES", 10)
    script = Oxigraph()
    with SparqlServer(script) as server, EndpointStore(server.url, writable="urn:g", access=ME) as store:
        files = [file(LINES), file(["<urn:a> <urn:b> <urn:c> .", "<urn:a> <urn:b> <urn:d> ."], "more.nt")]
        with pytest.raises(
            KeyboardInterrupt, match=r"so far: all up to line 2 of more\.nt\. Load the same files again"
        ):
            store.load(files, progress=stop)
        assert len(triples(store)) == 52
        store.update("clear_graph", graph="urn:g")
        script.left = 4  # the first of them tests whether updates are allowed
        with pytest.raises(
            StoreUnavailable, match=r"so far: all up to line 30 of data\.nt\. Load the same files again"
        ):
            store.load(files)
        assert len(triples(store)) == 30
        script.left = 1_000
        assert store.load(files).triples == 52
