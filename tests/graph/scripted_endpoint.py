"""Fixtures for tests on the scripted SPARQL server; a test file assigns those it uses to names of its own."""

from __future__ import annotations

import contextlib
import re
import time
from importlib.resources import files

import pytest

from kgqa.graph.endpoint.fingerprint import ResultCache
from kgqa.graph.endpoint.options import Access, profile_named
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.endpoint.transport import Transport
from kgqa.model import Entity, Literal
from kgqa.testing.sparql_server import SparqlReply, SparqlServer, table

QUERY = "SELECT ?x WHERE { ?x <http://e/p> ?o }"
ASK = "ASK { ?s ?p ?o }"
TABLE = table(["x"], [[Entity(f"http://e/{index}")] for index in range(50)])

VARIABLES = sorted(
    {
        name
        for file in files("kgqa.queries").iterdir()
        if file.name.endswith(".rq")
        for name in re.findall(r"\?(\w+)", file.read_text("utf-8"))
    }
    - {"triples", "names"}
)
"""The variables of all queries, for replies that leave them unbound."""


def count_reply(value: int, **options) -> SparqlReply:
    """Return the reply to a count; `options` are those of `SparqlReply`."""
    number = Literal(str(value), "http://www.w3.org/2001/XMLSchema#integer")
    return table(["triples", "names", "n", "x", *VARIABLES], [[number] * 4], **options)


def counting_script(answers: dict[str, SparqlReply]):
    """Return a script that replies by the part of the query in `answers`, with 7 to other counts."""

    def script(request) -> SparqlReply:
        for part, sent in answers.items():
            if part in request.query:
                return sent
        return count_reply(7) if "COUNT" in request.query else TABLE

    return script


def queries_without_counts(server: SparqlServer) -> list[str]:
    """Return the received queries except those of the fingerprint."""
    return [query for query in server.queries if "COUNT(" not in query]


def insert(store: EndpointStore, graph: str = "http://e/g", *, value: int = 1, **options) -> None:
    """Send an update that adds one triple to a graph."""
    triple = Entity("http://e/s"), Entity("http://e/p"), Literal(str(value), "http://www.w3.org/2001/XMLSchema#integer")
    store.update("insert_triples", graph=graph, triples=[triple], **options)


def url_of(server) -> str:
    return server.url if isinstance(server, SparqlServer) else server


@pytest.fixture
def serve():
    """Return `serve(script, ...) -> SparqlServer`; the servers are closed after the test."""
    with contextlib.ExitStack() as opened:
        yield lambda *args, **options: opened.enter_context(SparqlServer(*args, **options))


@pytest.fixture
def connect():
    """Return `connect(server or URL, ...) -> Transport`; the transports are closed after the test."""
    with contextlib.ExitStack() as opened:

        def connect(server, *, profile="generic", detects=False, **access) -> Transport:
            transport = Transport(url_of(server), Access(**access), profile_named(profile), detects=detects)
            opened.callback(transport.close)
            return transport

        yield connect


def send_query(transport, query="SELECT ?x WHERE { ?x ?p ?o }", *, seconds=5.0) -> bytes:
    """Return the body of the reply to a query."""
    with transport.slot(seconds) as deadline:
        return transport.send(query, "SELECT", deadline, lambda body, headers: bytes(body))[0]


def seconds_of(call, *args, **options) -> float:
    """Return the seconds that a call takes, whether or not it raises."""
    started = time.monotonic()
    with contextlib.suppress(Exception):
        call(*args, **options)
    return time.monotonic() - started


@pytest.fixture
def store_of():
    """Return `store_of(server or URL, ...) -> EndpointStore`; the stores are closed after the test."""
    with contextlib.ExitStack() as opened:

        def store_of(server, *, access=None, **options) -> EndpointStore:
            options = {"profile": "generic", "timeout": 5.0, **options}
            return opened.enter_context(EndpointStore(url_of(server), access=access or Access(patience=0.3), **options))

        yield store_of


@pytest.fixture
def cache(tmp_path):
    """Return `cache() -> ResultCache`, which opens the same file at each call."""
    with contextlib.ExitStack() as opened:
        yield lambda: opened.enter_context(contextlib.closing(ResultCache(tmp_path / "results" / "results.sqlite")))
