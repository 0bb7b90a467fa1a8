"""Fixtures for tests of endpoints on the scripted server. A test file that uses one gives it a name: `serve = scripted.serve`."""

from __future__ import annotations

import contextlib
import time

import pytest

from kgqa.graph.endpoint.profiles import profile_named
from kgqa.graph.endpoint.requests.access import Access
from kgqa.graph.endpoint.requests.transport import Transport
from kgqa.graph.endpoint.result_cache import ResultCache
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.model import Entity, Literal
from kgqa.testing.sparql_server import SparqlReply, SparqlServer, table

QUERY = "SELECT ?x WHERE { ?x <http://e/p> ?o }"
ASK = "ASK { ?s ?p ?o }"
TABLE = table(["x"], [[Entity(f"http://e/{place}")] for place in range(50)])


def number(value: int, **options) -> SparqlReply:
    """A reply to a count. `options` are those of `SparqlReply`."""
    return table(["n"], [[Literal(str(value), "http://www.w3.org/2001/XMLSchema#integer")]], **options)


def counting(answers: dict[str, SparqlReply]):
    """The script of a graph: `answers` maps a part of a query to what is sent; counts are 7 unless it says otherwise."""

    def script(request) -> SparqlReply:
        for part, sent in answers.items():
            if part in request.query:
                return sent
        return number(7) if "COUNT" in request.query else TABLE

    return script


def asked_queries(server: SparqlServer) -> list[str]:
    """The queries that came in, but for those of the fingerprint."""
    return [query for query in server.queries if "COUNT(" not in query]


def url_of(server) -> str:
    return server.url if isinstance(server, SparqlServer) else server


@pytest.fixture
def serve():
    """`serve(script, ...) -> SparqlServer`; closed at the end of the test."""
    with contextlib.ExitStack() as opened:
        yield lambda *args, **options: opened.enter_context(SparqlServer(*args, **options))


@pytest.fixture
def to():
    """`to(server or address, ...) -> Transport`; closed at the end of the test. Other options are those of `Access`."""
    with contextlib.ExitStack() as opened:

        def to(server, *, profile="generic", detects=False, **access) -> Transport:
            transport = Transport(url_of(server), Access(**access), profile_named(profile), detects=detects)
            opened.callback(transport.close)
            return transport

        yield to


def asked(transport, query="SELECT ?x WHERE { ?x ?p ?o }", *, seconds=5.0) -> tuple[int, bytes]:
    """Status and body of the reply to a query."""
    with transport.query(query, is_ask=False, seconds=seconds) as reply:
        return reply.status, b"".join(reply.chunks)


def took(call, *args, **options) -> float:
    """Seconds of a call, which may raise."""
    started = time.monotonic()
    with contextlib.suppress(Exception):
        call(*args, **options)
    return time.monotonic() - started


@pytest.fixture
def store_of():
    """`store_of(server or address, ...) -> EndpointStore`; closed at the end of the test."""
    with contextlib.ExitStack() as opened:

        def store_of(server, *, access=None, **options) -> EndpointStore:
            options = {"profile": "generic", "timeout": 5.0, **options}
            return opened.enter_context(EndpointStore(url_of(server), access=access or Access(patience=0.3), **options))

        yield store_of


@pytest.fixture
def cache(tmp_path):
    """`cache() -> ResultCache`, each time opened anew in the same file."""
    with contextlib.ExitStack() as opened:
        yield lambda: opened.enter_context(contextlib.closing(ResultCache(tmp_path / "results" / "results.sqlite")))
