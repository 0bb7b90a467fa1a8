"""What SPARQL servers send in place of a whole result, as `SparqlReply` for the scripted server.

Virtuoso's are as they were recorded from 7.2.5.1; those of QLever and Blazegraph are made after their sources and after
replies in their issue trackers.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from email.utils import format_datetime

from kgqa.testing.sparql_server import SparqlReply, SparqlRequest

PLAIN = "text/plain"


def virtuoso_timeout(body: bytes) -> SparqlReply:
    """Rows so far, after the "anytime" timeout of a query that aggregates."""
    message = "RC...: Returning incomplete results, query interrupted by result timeout."
    return SparqlReply(body=body, headers=(("X-SQL-State", "S1TAT"), ("X-SQL-Message", message)))


def virtuoso_timeout_while_sending(body: bytes) -> SparqlReply:
    """500, the beginning of a result, and an error behind it."""
    error = b"\n\nVirtuoso S1TAT Error Returning incomplete results, query interrupted by result timeout.\n"
    return SparqlReply(500, body[: len(body) * 2 // 3] + error, PLAIN)


def virtuoso_row_cap(body: bytes, cap: int) -> SparqlReply:
    return SparqlReply(body=body, headers=(("X-SPARQL-MaxRows", str(cap)),))


def virtuoso_error(state: str, message: str, *, status: int = 500) -> Callable[[SparqlRequest], SparqlReply]:
    """An error with the query repeated behind it."""
    return lambda request: SparqlReply(
        status, f"Virtuoso {state} Error {message}\n\nSPARQL query:\n{request.query}".encode(), PLAIN
    )


def qlever_timeout(request: SparqlRequest) -> SparqlReply:
    """429 of a query that ran out of time."""
    told = {"query": request.query, "status": "ERROR", "resultsize": 0, "time": {"total": 30_012}}
    told["exception"] = "Operation timed out. Last operation: Sort"
    return SparqlReply(429, json.dumps(told).encode(), "application/json")


def qlever_timeout_while_sending(body: bytes) -> SparqlReply:
    """200, and an error behind the rows so far."""
    error = (
        b"\n !!!!>># An error has occurred while exporting the query result. Unfortunately due to limitations in the "
        b"HTTP 1.1 protocol, there is no better way to report this than to append it to the incomplete result. The error "
        b"message was:\nOperation timed out."
    )
    return pieces(body[: len(body) * 2 // 3], error)


def qlever_limit(seconds: int) -> SparqlReply:
    """403 for a time limit that is longer than the server's own."""
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
    """500 with the query, and a stack trace behind it."""
    return SparqlReply(500, f"SPARQL-QUERY: queryStr={request.query}\n{_TRACE}".encode(), PLAIN)


def blazegraph_timeout_while_sending(body: bytes) -> Callable[[SparqlRequest], SparqlReply]:
    """200, and query and stack trace in the middle of a row."""
    return lambda request: pieces(
        body[: len(body) * 2 // 3], f"SPARQL-QUERY: queryStr={request.query}\n{_TRACE}".encode()
    )


def pieces(*parts: bytes | float, framing: str = "chunked") -> SparqlReply:
    """A body that comes in pieces; numbers are pauses in seconds."""
    return SparqlReply(body=lambda: iter(parts), framing=framing)  # type: ignore[arg-type]


def trickling(body: bytes, *, seconds: float = 1.0, framing: str = "chunked") -> SparqlReply:
    """A byte at a time, with a pause after each."""

    def parts() -> Iterator[bytes | float]:
        for place in range(len(body)):
            yield body[place : place + 1]
            yield seconds

    return SparqlReply(body=parts, framing=framing)  # type: ignore[arg-type]


def endless_rows() -> SparqlReply:
    """A table that never ends."""

    def parts() -> Iterator[bytes | float]:
        yield b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "http://e/0"}}'
        block = b', {"x": {"type": "uri", "value": "http://e/1"}}' * 1000
        while True:
            yield block

    return SparqlReply(body=parts, framing="chunked")


def endless_value() -> SparqlReply:
    """A row that never ends."""

    def parts() -> Iterator[bytes | float]:
        yield b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "literal", "value": "'
        while True:
            yield b"x" * 100_000

    return SparqlReply(body=parts, framing="chunked")


def zipped(body: bytes, *, missing: int = 0) -> SparqlReply:
    """Packed with gzip; `missing` bytes of the packed body are left out, and not announced either."""
    packed = gzip.compress(body)
    return SparqlReply(body=packed[: len(packed) - missing], headers=(("Content-Encoding", "gzip"),))


def busy(status: int = 429, *, retry_after: float | str | datetime | None = None) -> SparqlReply:
    """`retry_after`: seconds, a date, or text that is sent as it is; None sends no such header."""
    if isinstance(retry_after, datetime):
        retry_after = format_datetime(retry_after, usegmt=True)
    headers = () if retry_after is None else (("Retry-After", str(retry_after)),)
    return SparqlReply(status, b"Please slow down.", PLAIN, headers=headers)


def web_page(status: int = 200) -> SparqlReply:
    return SparqlReply(status, b"<!DOCTYPE html><html><body><h1>Welcome</h1></body></html>", "text/html; charset=utf-8")


def moved(place: str, status: int = 301) -> SparqlReply:
    return SparqlReply(status, b"", "text/html", headers=(("Location", place),))


def dropped() -> SparqlReply:
    """The connection is closed without a reply."""
    return SparqlReply(0)
