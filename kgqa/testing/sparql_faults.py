"""Faulty replies of SPARQL servers, as `SparqlReply` objects for the scripted server.

The replies of Virtuoso were recorded from version 7.2.5.1. The replies of QLever and Blazegraph are based on their
source code and issue trackers.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import datetime
from itertools import chain, repeat

from kgqa.testing.faults import retry_after_header
from kgqa.testing.loopback import Framing
from kgqa.testing.sparql_server import SparqlReply, SparqlRequest

PLAIN = "text/plain"


def virtuoso_timeout(body: bytes) -> SparqlReply:
    """Return the partial result that Virtuoso sends when its "anytime" timeout interrupts an aggregation."""
    message = "RC...: Returning incomplete results, query interrupted by result timeout."
    return SparqlReply(body=body, headers=(("X-SQL-State", "S1TAT"), ("X-SQL-Message", message)))


def virtuoso_timeout_while_sending(body: bytes) -> SparqlReply:
    """Return a 500 with the beginning of a result, followed by an error."""
    error = b"\n\nVirtuoso S1TAT Error Returning incomplete results, query interrupted by result timeout.\n"
    return SparqlReply(500, body[: len(body) * 2 // 3] + error, PLAIN)


def virtuoso_row_cap(body: bytes, cap: int) -> SparqlReply:
    """Return a result that was cut at the row cap."""
    return SparqlReply(body=body, headers=(("X-SPARQL-MaxRows", str(cap)),))


def virtuoso_error(state: str, message: str, *, status: int = 500) -> Callable[[SparqlRequest], SparqlReply]:
    """Return a Virtuoso error, with the query repeated after the message."""
    return lambda request: SparqlReply(
        status, f"Virtuoso {state} Error {message}\n\nSPARQL query:\n{request.query}".encode(), PLAIN
    )


def qlever_timeout(request: SparqlRequest) -> SparqlReply:
    """Return QLever's 429 for a timeout."""
    body = {"query": request.query, "status": "ERROR", "resultsize": 0, "time": {"total": 30_012}}
    body["exception"] = "Operation timed out. Last operation: Sort"
    return SparqlReply(429, json.dumps(body).encode(), "application/json")


def qlever_timeout_while_sending(body: bytes) -> SparqlReply:
    """Return a 200 with an error after the first rows."""
    error = (
        b"\n !!!!>># An error has occurred while exporting the query result. Unfortunately due to limitations in the "
        b"HTTP 1.1 protocol, there is no better way to report this than to append it to the incomplete result. "
        b"The error message was:\nOperation timed out."
    )
    return pieces(body[: len(body) * 2 // 3], error)


def qlever_limit(seconds: int) -> SparqlReply:
    """Return QLever's 403 for a request with a time limit above the server's maximum."""
    text = (
        f"User submitted timeout was higher than what is currently allowed by this instance ({seconds}s). Please use a "
        "valid-access token to override this server configuration."
    )
    return SparqlReply(403, text.encode(), PLAIN)


_TRACE = (
    "java.util.concurrent.TimeoutException\n\tat java.util.concurrent.FutureTask.get(FutureTask.java:205)\n"
    "\tat com.bigdata.rdf.sail.webapp.BigdataServlet.submitApiTask(BigdataServlet.java:292)\n" * 20
)


def blazegraph_timeout(request: SparqlRequest) -> SparqlReply:
    """Return a 500 with the query and a stack trace."""
    return SparqlReply(500, f"SPARQL-QUERY: queryStr={request.query}\n{_TRACE}".encode(), PLAIN)


def blazegraph_timeout_while_sending(body: bytes) -> Callable[[SparqlRequest], SparqlReply]:
    """Return a 200 with the query and a stack trace in the middle of a row."""
    return lambda request: pieces(
        body[: len(body) * 2 // 3], f"SPARQL-QUERY: queryStr={request.query}\n{_TRACE}".encode()
    )


def pieces(*parts: bytes | float, framing: Framing = "chunked") -> SparqlReply:
    """Return a reply that sends its body in pieces; numbers are pauses in seconds."""
    return SparqlReply(body=lambda: iter(parts), framing=framing)


def trickling(body: bytes, *, seconds: float = 1.0, framing: Framing = "chunked") -> SparqlReply:
    """Return a reply that sends its body byte by byte, with a pause after each byte."""
    return pieces(*(part for place in range(len(body)) for part in (body[place : place + 1], seconds)), framing=framing)


def endless_rows() -> SparqlReply:
    """Return a reply with a table that never ends."""
    start = b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "http://e/0"}}'
    return _endless(start, b', {"x": {"type": "uri", "value": "http://e/1"}}' * 1000)


def endless_value() -> SparqlReply:
    """Return a reply with a value that never ends."""
    start = b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "literal", "value": "'
    return _endless(start, b"x" * 100_000)


def _endless(start: bytes, block: bytes) -> SparqlReply:
    return SparqlReply(body=lambda: chain([start], repeat(block)), framing="chunked")


def zipped(body: bytes, *, missing: int = 0) -> SparqlReply:
    """Return a gzip reply that lacks the last `missing` bytes of its body; Content-Length does not count them."""
    packed = gzip.compress(body)
    return SparqlReply(body=packed[: len(packed) - missing], headers=(("Content-Encoding", "gzip"),))


def busy(status: int = 429, *, retry_after: float | str | datetime | None = None) -> SparqlReply:
    """Return a 429. `retry_after`: seconds, a date, or any text; None sends no Retry-After header."""
    return SparqlReply(status, b"Please slow down.", PLAIN, headers=retry_after_header(retry_after))


def web_page(status: int = 200) -> SparqlReply:
    """Return a web page instead of a result."""
    return SparqlReply(status, b"<!DOCTYPE html><html><body><h1>Welcome</h1></body></html>", "text/html; charset=utf-8")


def moved(place: str, status: int = 301) -> SparqlReply:
    """Return a redirect."""
    return SparqlReply(status, b"", "text/html", headers=(("Location", place),))


def dropped() -> SparqlReply:
    """Return a reply that closes the connection without sending anything."""
    return SparqlReply(0)
