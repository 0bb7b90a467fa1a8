"""The scripted SPARQL server: framings, recording of requests, pauses and closing."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import time

import pytest
import urllib3

from kgqa.model import Entity, Literal
from kgqa.testing import sparql_faults as faults
from kgqa.testing.sparql_server import SparqlReply, SparqlServer, table, truth
from tests.conftest import ROOT


def get(server, **fields):
    return urllib3.PoolManager(retries=False, timeout=5).request("GET", server.url, fields=fields)


def test_example_of_the_docs_runs():
    text = (ROOT / "docs" / "endpoints.md").read_text(encoding="utf-8")
    code = textwrap.dedent(text[text.rindex("    from kgqa.graph.endpoint.store") :])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_body_in_every_framing(framing):
    body = b"x" * 100_000
    sent = SparqlReply(body=body) if framing == "length" else faults.pieces(body[:10], 0.01, body[10:], framing=framing)
    with SparqlServer(sent) as server:
        assert get(server).data == body


def test_requests_are_recorded():
    with SparqlServer([truth(True), table(["x"], [[Literal("1"), None], [Entity("_:b")]])]) as server:
        pool = urllib3.PoolManager(retries=False)
        assert pool.request("GET", server.url, fields={"query": "ASK {}"}).json() == {"head": {}, "boolean": True}
        reply = pool.request("POST", server.url, fields={"query": "SELECT ä"}, encode_multipart=False)
        assert reply.json()["results"]["bindings"][1]["x"] == {"type": "bnode", "value": "b"}
        assert server.queries == ["ASK {}", "SELECT ä"] and server.connections == 1
        assert get(server, update="x").status == 599 and server.requests[2].update == "x"
        assert [request.method for request in server.requests] == ["GET", "POST", "GET"]


@pytest.mark.parametrize(
    "sent",
    [
        SparqlReply(body=b"x", missing=5),
        faults.dropped(),
        SparqlReply(body=lambda: iter([b"x"]), framing="chunked", missing=1),
    ],
)
def test_missing_bytes_are_an_error_for_clients(sent):
    with SparqlServer(sent) as server, pytest.raises(urllib3.exceptions.HTTPError):
        get(server)


def test_pauses():
    with SparqlServer(
        [faults.trickling(b"abc", seconds=0.1), SparqlReply(seconds=0.2), SparqlReply(head_pause=0.005)]
    ) as server:
        for least in (0.2, 0.2, 0.2):
            started = time.monotonic()
            assert get(server).status == 200
            assert time.monotonic() - started >= least


def test_close_drops_waiting_clients():
    import threading

    server = SparqlServer(SparqlReply(seconds=60))
    threading.Timer(0.2, server.close).start()
    started = time.monotonic()
    with pytest.raises(urllib3.exceptions.HTTPError):
        get(server)
    assert time.monotonic() - started < 30


def test_table_of_the_docs_names_every_key():
    from dataclasses import fields

    from kgqa.graph.endpoint.options import Profile

    text = (ROOT / "docs" / "endpoints.md").read_text(encoding="utf-8")
    named = {
        name
        for line in text.split("\n")
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert {field.name for field in fields(Profile)} - {"name", "title"} <= named
