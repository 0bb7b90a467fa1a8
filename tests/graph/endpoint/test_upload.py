"""Loading into servers by SPARQL updates."""

from __future__ import annotations

import base64
import itertools
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyoxigraph as ox
import pytest

from kgqa.errors import InvalidTerm, LoadError, QueryRejected, StoreUnavailable
from kgqa.graph.endpoint import upload
from kgqa.graph.endpoint.access import Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.endpoint.upload import DEFAULT_GRAPH, choose_target_graph
from tests.rdf_samples import files_of_each_format

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:rdflib")
LINES = [f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> ." for n in range(50)]
WRONG_NUMBER = '<http://e/x> <http://e/p> "abc"^^<http://www.w3.org/2001/XMLSchema#integer> .'
ALL = "SELECT ?s ?p ?o { ?s ?p ?o }"
_graphs = itertools.count()


@pytest.fixture(scope="module")
def password(virtuoso_server) -> str:
    """Return the password of the user kgqa, who may write."""
    return virtuoso_server.allow_updates("kgqa").read_text().strip()


@pytest.fixture
def target(virtuoso_server, password):
    """Return `target() -> EndpointStore`, which may write to a new graph."""
    new_store = []

    def target(url: str | None = None, **options) -> EndpointStore:
        graph = options.pop("writable", f"urn:load:{next(_graphs)}")
        options = {"access": Access("kgqa", password), **options}
        new_store.append(EndpointStore(url or virtuoso_server.url, writable=graph, **options))
        return new_store[-1]

    yield target
    for store in new_store:
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


class TestSameGraph:
    def test_every_format_gives_the_same_graph_as_a_folder(self, tmp_path, target, new_store):
        for path in files_of_each_format(tmp_path):
            store, embedded = target(), new_store(path)
            report = store.load([path])
            expected = set(embedded.select(ALL))
            assert triples(store) == expected, path.suffix
            assert (report.added, report.triples) == (len(expected), len(expected)), path.suffix

    def test_loading_twice_changes_nothing(self, tmp_path, target, file):
        store = target()
        path = file("@prefix : <http://e/> . :a :p [ :q [ :r 1 ] ; :s (1 2) ] . _:b :p _:c .", "nodes.ttl")
        first = store.load([path])
        version, again = store.version_of(), store.load([path])
        assert (again.added, again.triples, again.fingerprint) == (0, first.triples, first.fingerprint)
        assert store.version_of() != version


class TestMalformedLines:
    def test_fail_changes_nothing(self, target, file):
        store = target()
        with pytest.raises(LoadError, match=r"bad\.nt, line 2: .*The load was discarded.*on_error=.skip"):
            store.load([file(LINES), file([LINES[0], "<http://e/a> nonsense ."], "bad.nt")])
        assert triples(store) == set()

    def test_skip_counts(self, target, file):
        report = target().load([file([LINES[0], "nonsense", LINES[1], "<a> <b> <c> ."])], on_error="skip")
        assert (report.added, report.lines, report.malformed) == (2, 4, 2)
        assert [(item.file, item.line) for item in report.examples] == [("data.nt", 2), ("data.nt", 4)]

    def test_triple_of_another_graph(self, target, file):
        store = target()
        with pytest.raises(LoadError, match="line 2: .*<http://e/other>"):
            store.load([file([LINES[0], f"{LINES[1][:-2]} <http://e/other> ."], "data.nq")], on_error="skip")
        assert triples(store) == set()

    def test_line_refused_by_the_server_is_named(self, target, file):
        path = file([*LINES[:20], "nonsense", WRONG_NUMBER, *LINES[20:]])
        store = target()
        report = store.load([path], on_error="skip")
        assert (report.added, report.malformed) == (50, 2)
        assert (report.examples[1].line, "abc" in report.examples[1].message) == (22, True)
        with pytest.raises(QueryRejected, match=r"data\.nt, line 1: .*on_error=.skip.*Load the same files again"):
            target().load([file([WRONG_NUMBER, *LINES])])


class TestPermissions:
    @pytest.mark.parametrize("writable, error, message", [
        (None, LoadError, "open for reading only. Name the graph"),
        ("no iri", InvalidTerm, "is not an absolute IRI"),
        ("http://www.openlinksw.com/schemas/virtrdf#", LoadError, "is a system graph"),
    ])  # fmt: skip
    def test_store_without_writable_graph(self, target, file, writable, error, message):
        with pytest.raises(error, match=message):
            target(writable=writable).load([file(LINES)])

    @pytest.mark.parametrize("access", [Access(), Access("kgqa", "wrong"), Access("nobody", "x")])
    def test_wrong_password(self, target, file, access):
        store = target(access=access)
        with pytest.raises(StoreUnavailable, match="refuses access.*endpoint.user.*KGQA_ENDPOINT_PASSWORD") as caught:
            store.load([file(LINES)])
        assert "wrong" not in str(caught.value)

    def test_files_are_checked_before_the_server(self, tmp_path):
        with pytest.raises(LoadError, match=r"missing\.nt cannot be read"):
            EndpointStore("http://127.0.0.1:1/sparql", writable="urn:g").load([tmp_path / "missing.nt"])
        with pytest.raises(LoadError, match="No file to load"):
            EndpointStore("http://127.0.0.1:1/sparql", writable="urn:g").load([])


class TestInterrupted:
    def test_ctrl_c(self, target, file, monkeypatch):
        def stop(progress):
            if progress.stage == "loading" and progress.file == "more.nt":
                raise KeyboardInterrupt

        store = target()
        with pytest.raises(
            KeyboardInterrupt,
            match=r"so far: all up to line 2 of more\.nt\. Load the same files again",
        ):
            store.load(
                [file(LINES), file(["<urn:a> <urn:b> <urn:c> .", "<urn:a> <urn:b> <urn:d> ."], "more.nt")],
                progress=stop,
            )
        assert len(triples(store)) == 52

    def test_lost_connection(self, target, file, virtuoso_server, monkeypatch):
        monkeypatch.setattr(upload, "BATCH_TRIPLES", 10)
        with DroppingProxy(virtuoso_server.url, updates=4) as proxy:
            store = target(proxy.url)
            with pytest.raises(
                StoreUnavailable, match=r"so far: all up to line 30 of data\.nt\. Load the same files again"
            ):
                store.load([file(LINES)])
        direct = target(writable=store.writable)
        assert 0 < len(triples(direct)) < 50
        assert direct.load([file(LINES)]).triples == 50


class DroppingProxy:
    """A proxy that drops connections after a number of updates."""

    def __init__(self, url: str, *, updates: int) -> None:
        parts = urlsplit(url)
        left = [updates]

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path.startswith("/sparql-auth") and "Authorization" in self.headers:
                    left[0] -= 1
                    if left[0] < 0:
                        self.close_connection = True
                        return
                inner = HTTPConnection(parts.hostname, parts.port)
                inner.request(self.command, self.path, body or None, dict(self.headers))
                response = inner.getresponse()
                data = response.read()
                self.send_response(response.status)
                for name, value in response.getheaders():
                    if name.lower() not in ("content-length", "connection", "transfer-encoding", "keep-alive"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = forward

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}{parts.path}"

    def __enter__(self) -> DroppingProxy:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class OxigraphServer(DroppingProxy):
    """A server of another kind: the embedded engine behind the SPARQL protocol with basic authentication."""

    def __init__(self) -> None:
        data = ox.Store()
        login = "Basic " + base64.b64encode(b"me:secret").decode()

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                fields = parse_qs(body or urlsplit(self.path).query)
                if "update" in fields and self.headers.get("Authorization") != login:
                    self.send_response(401)
                    self.send_header("WWW-Authenticate", 'Basic realm="x"')
                    self.end_headers()
                    return
                if "update" in fields:
                    data.update(fields["update"][0])
                    self.send_response(204)
                    self.end_headers()
                    return
                result = data.query(fields["query"][0]).serialize(format=ox.QueryResultsFormat.JSON)
                self.send_response(200)
                self.send_header("Content-Type", "application/sparql-results+json")
                self.end_headers()
                self.wfile.write(result)

            do_GET = do_POST = answer

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/query"


def test_load_into_oxigraph(tmp_path, target, new_store):
    path = files_of_each_format(tmp_path)[0]
    with OxigraphServer() as server:
        store = target(server.url, access=Access("me", "secret"))
        assert store.load([path]).added == len(triples(store))
        assert triples(store) == set(new_store(path).select(ALL))
        assert choose_target_graph(store) == store.writable
        with pytest.raises(StoreUnavailable, match="refuses access"):
            target(server.url, access=Access("me", "wrong")).load([path])


class TestGraphChoice:
    def test_only_or_default_graph_is_used_or_the_graph_must_be_named(self, file, tmp_path):
        with OxigraphServer() as server:
            store = EndpointStore(server.url, writable="urn:one", access=Access("me", "secret"))
            assert choose_target_graph(store) == DEFAULT_GRAPH
            store.load([file(LINES)])
            assert choose_target_graph(store) == "urn:one"
            store.writable = "urn:two"
            store.load([file(LINES)])
            with pytest.raises(LoadError, match="several graphs.*graph_iri=.IRI.. Graphs: urn:one, urn:two"):
                choose_target_graph(store)
