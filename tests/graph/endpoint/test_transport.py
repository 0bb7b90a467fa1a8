"""Requests over real connections: reuse, limits, retries and deadlines."""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgqa import __version__
from kgqa.errors import StoreUnavailable
from kgqa.model import Entity, Literal
from kgqa.testing.sparql_faults import moved, qlever_limit, trickling
from kgqa.testing.sparql_server import SparqlReply, table
from tests.graph import scripted_endpoint
from tests.graph.scripted_endpoint import seconds_of, send_query

QUERY = "SELECT ?x WHERE { ?x ?p ?o }"
serve, connect = scripted_endpoint.serve, scripted_endpoint.connect
TABLE = table(["x"], [[Entity("http://e/1")]])


def test_close_ends_running_requests(serve, connect):
    server = serve(SparqlReply(body=TABLE.body, seconds=30))
    transport = connect(server, concurrency=2)
    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(send_query, transport, seconds=30) for _ in range(4)]  # two wait for a slot
        while len(server.requests) < 2:
            time.sleep(0.01)
        started = time.monotonic()
        transport.close()
        for each in waiting:
            with pytest.raises(StoreUnavailable, match="has been closed"):
                each.result()
    assert time.monotonic() - started < 20
    with pytest.raises(StoreUnavailable, match="has been closed"):
        send_query(transport)


@pytest.mark.parametrize(
    ("query", "method"), [(QUERY, "GET"), (f"{QUERY} # {'x' * 1500}", "POST"), ("ASK { ?s ?p 'Köln 漢字 😀' }", "POST")]
)
def test_long_and_non_ascii_queries_are_forms(serve, connect, query, method):
    server = serve(TABLE)
    send_query(connect(server, contact="a@e.org"), query)
    (request,) = server.requests
    assert (request.method, request.fields) == (method, {"query": query})
    assert request.headers["user-agent"] == f"kgqa/{__version__} (a@e.org)"
    assert request.headers["accept"].startswith("application/sparql-results+json")


@pytest.mark.parametrize(
    ("profile", "field", "header"),
    [("qlever", "5s", None), ("blazegraph", None, "5000"), ("wikidata", None, "5000"), ("generic", None, None)],
)
def test_time_limit_of_the_profile(serve, connect, profile, field, header):
    server = serve(TABLE)
    send_query(connect(server, profile=profile), seconds=5)
    (request,) = server.requests
    assert request.fields.get("timeout") == field
    limit = request.headers.get("x-bigdata-max-query-millis")
    assert (limit is None) == (header is None) and (not limit or 4000 < int(limit) <= 5000)


def test_limit_refused_by_qlever_is_not_sent(serve, connect):
    def script(request):
        return qlever_limit(30) if request.fields.get("timeout", "1s") not in ("1s", "20s") else TABLE

    server = serve(script)
    transport = connect(server, profile="qlever")
    assert send_query(transport, seconds=60) == TABLE.body
    assert send_query(transport, seconds=60) == TABLE.body
    assert send_query(transport, seconds=20) == TABLE.body
    assert [request.fields.get("timeout") for request in server.requests] == ["60s", None, None, "20s"]


@pytest.mark.parametrize(("own", "sent_limit"), [("10", None), ("30", "20000"), (None, None)])
def test_limit_is_sent_to_virtuoso_only_below_its_own(serve, connect, own, sent_limit):
    def script(request):
        if "MaxQueryExecutionTime" not in request.query:
            return TABLE
        return SparqlReply(500, b"No permission", "text/plain") if own is None else table(["seconds"], [[Literal(own)]])

    server = serve(script, server="Virtuoso/07.20.3229 (Linux)")
    transport = connect(server, detects=True)
    send_query(transport, seconds=20)
    assert transport.profile.name == "virtuoso"
    found = server.requests[-1].fields.get("timeout")
    assert found == sent_limit or (sent_limit and int(sent_limit) - 1000 < int(found) <= int(sent_limit))
    send_query(transport, seconds=20)
    assert len(server.requests) == 4  # its kind and its limits are requested once


@pytest.mark.parametrize(
    "refusal",
    [
        SparqlReply(500, b"<html>no</html>", "text/html"),
        SparqlReply(404, b"no", "text/plain"),
        SparqlReply(200, b"<sparql/>", "application/sparql-results+xml"),
        SparqlReply(500, b"Virtuoso S1T00 Error SR171: Transaction timed out", "text/plain"),
        SparqlReply(200, b'{"head": {}}'),
        SparqlReply(200, b'{"head": {"vars": []}, "results": {"bindings": [{}]}}'),
    ],
)
@pytest.mark.parametrize("software", ["Virtuoso/07.20.3229 (Linux)", "other"])
def test_refused_detection_is_not_an_error(serve, connect, refusal, software):
    transport = connect(
        serve(lambda request: TABLE if request.query == QUERY else refusal, server=software), detects=True
    )
    assert send_query(transport) == TABLE.body
    assert (transport.profile.name == "virtuoso") == software.startswith("Virtuoso")


def test_credentials_are_not_sent_elsewhere(serve, connect):
    elsewhere = serve(TABLE)
    server = serve(lambda request: moved(elsewhere.url, 307), server="x")
    for status in (301, 302, 303, 307, 308):
        server.enqueue(moved(elsewhere.url, status))
        with pytest.raises(StoreUnavailable, match="has moved"):
            send_query(connect(server, user="u", password="geheim"))
    assert elsewhere.requests == []


BASIC, DIGEST = 'Basic realm="r"', 'Digest realm="r", nonce="n{}", qop="auth"'


@pytest.mark.parametrize("challenge", [BASIC, DIGEST.format(1)])
def test_login_follows_the_first_challenge_and_is_kept(serve, connect, challenge):
    def script(request):
        if "authorization" in request.headers:
            return TABLE
        return SparqlReply(401, b"", "text/plain", headers=(("WWW-Authenticate", challenge),))

    server = serve(script)
    transport = connect(server, user="u", password="geheim")
    assert [send_query(transport) for _ in range(3)] == [TABLE.body] * 3
    assert ["authorization" in request.headers for request in server.requests] == [False, True, True, True]
    assert all("geheim" not in str(request) for request in server.requests)


def test_certificate_of_the_server(serve, connect, tmp_path, monkeypatch):
    certificate = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate[0]), "-keyout", str(certificate[1])]
    subprocess.run(command, check=True, capture_output=True)
    server = serve(TABLE, certificate=certificate)
    with pytest.raises(StoreUnavailable, match="certificate.*SSL_CERT_FILE"):
        send_query(connect(server, user="u", password="geheim"))
    assert server.requests == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    server = serve(TABLE, certificate=certificate)
    transport = connect(server)
    assert [send_query(transport) for _ in range(5)] == [TABLE.body] * 5 and server.connections == 1
    server.enqueue(trickling(TABLE.body, seconds=0.1))
    assert 0.4 < seconds_of(send_query, transport, seconds=0.5) < 1.5  # the TLS connection is cut
    assert send_query(transport) == TABLE.body
