"""A managed server: start, status, SQL, queries, security and stop."""

from __future__ import annotations

import json
import os
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kgqa.errors import ServerError, SqlError
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.schema import bundled_schema
from kgqa.virtuoso.graph_loading import index_graph
from kgqa.virtuoso.isql import Session
from kgqa.virtuoso.process import free_port, is_running, lock_owner
from kgqa.virtuoso.server import Server
from tests.virtuoso.conftest import write_triples
from tests.virtuoso_server import needs_virtuoso, running_server

pytestmark = pytest.mark.server


def fetch(url: str, query: str = "", *, opener=None) -> bytes:
    """Send a GET request, or POST a query as a form and ask for JSON."""
    data = urllib.parse.urlencode({"query": query}).encode() if query else None
    request = urllib.request.Request(url, data, {"Accept": "application/sparql-results+json"} if query else {})
    with (opener or urllib.request.build_opener()).open(request, timeout=30) as response:
        return response.read()


def digest_opener(server: Server, user: str, password: str):
    digest = urllib.request.HTTPDigestAuthHandler()
    digest.add_password("SPARQL", server.url + "-auth", user, password)
    return urllib.request.build_opener(digest)


def values(server: Server, query: str) -> list[str]:
    rows = json.loads(fetch(server.url, query))["results"]["bindings"]
    return [next(iter(row.values()))["value"] for row in rows]


@contextmanager
def watched_programs() -> Iterator[set[bytes]]:
    """Yield the command lines and environments of all Virtuoso programs that run meanwhile."""
    seen, stopped = set(), threading.Event()

    def watch() -> None:
        while not stopped.wait(0.003):
            for folder in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):  # it has ended
                    line = (folder / "cmdline").read_bytes()
                    if b"virtuoso-t" in line or b"isql" in line:
                        seen.update((line, (folder / "environ").read_bytes()))

    with ThreadPoolExecutor(1) as pool:
        pool.submit(watch)
        try:
            yield seen
        finally:
            stopped.set()


@pytest.mark.slow
def test_passwords_are_never_exposed(tmp_path, monkeypatch):
    needs_virtuoso()
    monkeypatch.setenv("KGQA_LLM_KEY", "key-of-the-user")
    messages = []
    with watched_programs() as watched, running_server(tmp_path / "new", notify=messages.append) as server:
        password = server.folder.password()
        update_file = server.allow_updates("writer")
        write_triples(server.import_folder / "a.nt", 0, 1000)
        server.load([server.import_folder / "a.nt"], "http://a")
        server.stop()
    seen = b"\0".join(watched)
    assert b"+configfile" in seen and b"VERBOSE=OFF" in seen
    for secret in (password, update_file.read_text().strip()):
        assert len(secret) >= 32 and secret.encode() not in seen
        files = [
            path for path in server.folder.path.rglob("*") if path.is_file() and path.suffix not in (".db", ".trx")
        ]
        assert [p.name for p in files if secret.encode() in p.read_bytes()] in (["password"], ["password-writer"])
    assert b"key-of-the-user" not in seen
    assert messages == ["Creating a new database ..."]
    for path, mode in ((server.folder.path, 0o700), (server.folder.password_file, 0o600), (update_file, 0o600)):
        assert path.stat().st_mode & 0o777 == mode


def test_default_passwords_are_changed(virtuoso_server):
    with pytest.raises(SqlError, match="refuses the password"):
        Session(virtuoso_server.folder, "dba").sql("select 1")
    with pytest.raises((urllib.error.HTTPError, ValueError)) as caught:
        fetch(virtuoso_server.url + "-auth", "ASK {}", opener=digest_opener(virtuoso_server, "dba", "dba"))
    assert "401" in str(caught.value)
    virtuoso_server.sql("select 1")  # the failed attempts did not lock us out


def test_status_and_second_start(virtuoso_server):
    status = virtuoso_server.status(count=True)
    assert (status.state, status.url, status.message) == ("running", virtuoso_server.url, "")
    assert status.pid == lock_owner(virtuoso_server.folder.lock)
    assert status.version.startswith("07.") and status.triples is not None
    assert status.disk_bytes > 40_000_000
    assert virtuoso_server.start(http_port=free_port()) is False
    assert virtuoso_server.status() == virtuoso_server.status(count=False)
    # Ctrl-C does not reach the server, and a crash leaves no core file
    assert os.getsid(status.pid) == status.pid != os.getsid(0)
    limits = Path(f"/proc/{status.pid}/limits").read_text().splitlines()
    assert [line.split()[4] for line in limits if line.startswith("Max core file size")] == ["0"]


@pytest.mark.slow
def test_options_persist_and_concurrent_starts_start_once(stopped_server):
    ports = {"http_port": free_port(), "sql_port": free_port()}
    query = "SELECT ?s FROM <http://www.openlinksw.com/schemas/virtrdf#> { ?s ?p ?o }"
    with running_server(stopped_server.folder.path, row_cap=7, query_seconds=33, **ports):
        assert len(values(stopped_server, query)) == 7
        pid = stopped_server.status().pid
        assert stopped_server.stop() is True
        assert not is_running(pid) and not stopped_server.folder.lock.exists()
        assert stopped_server.status().state == "stopped"
        with ThreadPoolExecutor(3) as pool:
            started_by = list(pool.map(lambda _: Server.at(stopped_server.folder.path).start(), range(3)))
        assert sorted(started_by) == [False, False, True]
        assert stopped_server.url == f"http://127.0.0.1:{ports['http_port']}/sparql"
        assert len(values(stopped_server, query)) == 7
    assert stopped_server.stop() is False


def test_server_for_url(virtuoso_server, tmp_path, monkeypatch):
    port = virtuoso_server.folder.options().http_port
    monkeypatch.setenv("KGQA_VIRTUOSO_FOLDER", str(tmp_path / "nothing"))
    assert Server.for_url(virtuoso_server.url) is None
    monkeypatch.setenv("KGQA_VIRTUOSO_FOLDER", str(virtuoso_server.folder.path))
    for url in (virtuoso_server.url, f"http://localhost:{port}/sparql", f"http://127.0.0.1:{port}/sparql-auth"):
        assert Server.for_url(url).folder.path == virtuoso_server.folder.path
    for url in (f"http://127.0.0.1:{port + 1}/sparql", f"http://example.org:{port}/sparql", "http://[", "mygraph/"):
        assert Server.for_url(url) is None


def test_only_sparql_is_served(virtuoso_server):
    base = virtuoso_server.url.removesuffix("/sparql")
    assert fetch(f"{base}/sparql?query=ASK%20%7B%7D")
    for path in "/ /password /virtuoso.ini /../password /conductor/ /proxy /sparql-graph-crud /SOAP/".split():
        with pytest.raises(urllib.error.HTTPError) as caught:
            fetch(base + path)
        assert caught.value.code in (400, 404), path


def test_endpoint_refuses_files_updates_and_federation(virtuoso_server):
    secret = virtuoso_server.folder.password_file
    attempts = [
        f'SELECT (bif:file_to_string("{secret}") AS ?x) {{}}',
        'SELECT (bif:system("touch /tmp/x") AS ?x) {}',
        f"LOAD <file://{secret}> INTO GRAPH <http://stolen>",
        "INSERT DATA { GRAPH <http://stolen> { <http://a> <http://b> <http://c> } }",
        f"SELECT * {{ SERVICE <{virtuoso_server.url}> {{ ?s ?p ?o }} }}",
    ]
    for query in attempts:
        with pytest.raises(urllib.error.HTTPError) as caught:
            fetch(virtuoso_server.url, query)
        assert secret.read_text().strip() not in caught.value.read().decode()
    assert values(virtuoso_server, "SELECT ?s FROM <http://stolen> { ?s ?p ?o }") == []
    # an update with a password
    password = virtuoso_server.allow_updates("editor").read_text().strip()
    insert = "INSERT DATA { GRAPH <http://edited> { <http://a> <http://b> <http://c> } }"
    fetch(virtuoso_server.url + "-auth", insert, opener=digest_opener(virtuoso_server, "editor", password))
    assert values(virtuoso_server, "SELECT ?o FROM <http://edited> { <http://a> ?p ?o }") == ["http://c"]
    assert virtuoso_server.allow_updates("editor").read_text().strip() == password


def test_names_are_found_without_accents(virtuoso_server):
    """Names that are loaded before or after the index is made."""
    schema, graph = bundled_schema("rdfs"), "http://names-without-accents"
    file = virtuoso_server.import_folder / "names.nt"
    with EndpointStore(virtuoso_server.url) as store:
        for number, name in enumerate(("Malm\\u00F6 stad", "Łódź")):
            lines = f'<http://e/{number}> <{schema.label[0]}> "{name}"@en .\n'
            file.write_text(lines + f'<http://e/{number}> <http://e/comment> "Malmö {number}" .\n', encoding="utf-8")
            virtuoso_server.load([file], graph)
            assert index_graph(virtuoso_server, store, schema, graph) == number + 1

    def found(word: str) -> list[str]:
        return values(virtuoso_server, f"SELECT ?s FROM <{graph}> {{ ?s ?p ?o . ?o bif:contains \"'{word}'\" }}")

    assert found("malmo") == found("Malmö") == found("malm*") == found("stad") == ["http://e/0"]


def test_not_installed(stopped_server, monkeypatch, tmp_path):
    other = tmp_path / "isql"  # unixODBC has a program with this name
    other.write_text("#!/bin/sh\nexit 0\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerError, match=r"isql-vt\) is not installed.*kgqa virtuoso install.*VIRTUOSO_T="):
        stopped_server.start()


# ---- SQL ----

HOSTILE = [
    "'; shutdown; --",
    "';\nshutdown;\n",
    "\\'; shutdown; --",
    "!touch /tmp/x\n",
    "$U{x} $ARGV[1] $+ 1 2",
    "a;b%3Bc%FFC3",
    'x","y"',
    "{ [ (",
    "EXIT;\nload /etc/passwd;",
    "Malmö \u2028 😀 \x85 \x01\x7f",
    " leading and trailing ",
    "",
    "x;ö" * 1000,
]
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=40)


@settings(max_examples=60)
@given(st.lists(texts, min_size=1, max_size=6))
@example(HOSTILE)
def test_text_round_trip(virtuoso_server, values):
    assert virtuoso_server.sql("select " + ", ".join("?" for _ in values), values) == [tuple(values)]


def test_rows_numbers_and_null(virtuoso_server):
    assert virtuoso_server.sql("select ?, ?, ?", (None, -3, 2.5)) == [("", "-3", "2.5")]
    assert virtuoso_server.sql("select 1 from DB.DBA.SYS_USERS where 1 = 0") == []
    assert ("dba", "1") in virtuoso_server.sql("select U_NAME, U_SQL_ENABLE from DB.DBA.SYS_USERS")


def test_truncated_and_late_values_are_errors(virtuoso_server):
    with pytest.raises(ServerError, match="SQL client reports"):
        virtuoso_server.sql("select repeat('ab;', 30000)")
    with pytest.raises(ServerError, match="within 0.3 s"):
        virtuoso_server.sql("delay(20)", timeout=0.3)


def test_errors_have_the_message_of_the_server(virtuoso_server):
    with pytest.raises(SqlError, match="SR185: Undefined procedure DB.DBA.no_such") as caught:
        virtuoso_server.sql("no_such(?)", ["sesame"])
    assert "sesame" not in str(caught.value)
    with pytest.raises(SqlError, match="rejected an SQL statement: it failed at 100%; é") as caught:
        virtuoso_server.sql("signal('22023', ?)", ["it failed\nat 100%; é"])
    assert caught.value.state == "22023"
