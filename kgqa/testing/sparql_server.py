"""A scripted SPARQL server on the loopback: real HTTP, any reply, and all the ways in which servers fail.

with SparqlServer([table(["x"], [[Entity("http://e/1")]]), SparqlReply(503, headers=(("Retry-After", "1"),))]) as server:
    EndpointStore(server.url, profile="generic").select("SELECT ?x WHERE { ?x ?p ?o }")
    assert server.requests[0].query.startswith("SELECT")
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from typing import Literal as OneOf
from urllib.parse import parse_qs, urlsplit

from kgqa.model import XSD_STRING, Entity, Value

RESULTS = "application/sparql-results+json"
_POLL = 0.02
Pieces = Callable[[], Iterator[bytes | float]]


@dataclass(frozen=True, slots=True)
class SparqlReply:
    """What is sent.

    Attributes:
        status: HTTP status; 0 closes the connection without a reply.
        body: bytes, or a function whose pieces are sent one by one; a number among them is a pause in seconds.
        headers: more of them, in order.
        framing: how the end of the body is told: its length, chunks, or the end of the connection.
        missing: bytes that are announced and never come (`length`), or, if not 0, the last chunk that does not.
        seconds: waited before anything is sent. head_pause: waited after every byte of status line and headers.
    """

    status: int = 200
    body: bytes | Pieces = b""
    content_type: str = RESULTS
    headers: tuple[tuple[str, str], ...] = ()
    framing: OneOf["length", "chunked", "close"] = "length"
    missing: int = 0
    seconds: float = 0.0
    head_pause: float = 0.0


@dataclass(frozen=True)
class SparqlRequest:
    """What came in. `headers` by lower-case name; `fields` of the address and the form; `connection` counts from 1."""

    method: str
    path: str
    headers: dict[str, str]
    fields: dict[str, str]
    arrived: float
    connection: int

    @property
    def query(self) -> str:
        return self.fields.get("query", "")

    @property
    def update(self) -> str:
        return self.fields.get("update", "")


def table(variables: Sequence[str], rows: Iterable[Sequence[Value | None]], **options: Any) -> SparqlReply:
    """A reply to a SELECT. `options` are those of `SparqlReply`."""
    return SparqlReply(body=table_bytes(variables, rows), **options)


def truth(value: bool, **options: Any) -> SparqlReply:
    """A reply to an ASK. `options` are those of `SparqlReply`."""
    return SparqlReply(body=json.dumps({"head": {}, "boolean": value}).encode(), **options)


def table_bytes(variables: Sequence[str], rows: Iterable[Sequence[Value | None]]) -> bytes:
    """A table in SPARQL 1.1 Query Results JSON."""
    bindings = [{name: term(value) for name, value in zip(variables, row) if value is not None} for row in rows]
    return json.dumps(
        {"head": {"vars": list(variables)}, "results": {"bindings": bindings}}, ensure_ascii=False
    ).encode()


def term(value: Value) -> dict[str, str]:
    """A term as such a table has it."""
    if isinstance(value, Entity):
        blank = value.iri.startswith("_:")
        return {"type": "bnode", "value": value.iri[2:]} if blank else {"type": "uri", "value": value.iri}
    found = {"type": "literal", "value": value.value}
    if value.language:
        found["xml:lang"] = value.language
    elif value.datatype != XSD_STRING:
        found["datatype"] = value.datatype
    return found


Scripted = SparqlReply | Callable[[SparqlRequest], SparqlReply]


class SparqlServer:
    """Runs from when it is made, on a free port of 127.0.0.1. A thread for each connection; connections are kept.

    Args:
        script: what is sent for any request, a function of the request, or replies that are used up one after another;
            when none is left the status is 599.
        port: 0 for a free one. server: what it calls itself.
        certificate: files with a certificate and its key, for TLS.

    Attributes:
        url: ends in /sparql, but every path is answered.
        requests: in the order they came in. connections: how many were opened. cut: how many the client ended early.
        most_at_once: requests that were under way at the same time, at most.
    """

    def __init__(
        self,
        script: Scripted | Iterable[Scripted],
        *,
        port: int = 0,
        server: str = "scripted",
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        self._always = script if isinstance(script, SparqlReply) or callable(script) else None
        self._queue: deque[Scripted] = deque(() if self._always else script)  # type: ignore[arg-type]
        self.requests: list[SparqlRequest] = []
        self.connections = self.cut = self.most_at_once = 0
        self._under_way = 0
        self._lock = threading.Lock()
        self.closing = threading.Event()
        self._http = _Http(("127.0.0.1", port), _handler(self, server), certificate)
        self.port: int = self._http.server_address[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}/sparql"
        threading.Thread(target=self._http.serve_forever, args=(_POLL,), daemon=True, name="sparql-server").start()

    @property
    def queries(self) -> list[str]:
        """The queries that came in."""
        return [request.query for request in self.requests if request.query]

    def enqueue(self, *script: Scripted) -> None:
        """These are used up before anything else."""
        with self._lock:
            self._queue.extend(script)

    def close(self) -> None:
        """Drops all connections, waiting ones too. May be called again."""
        if not self.closing.is_set():
            self.closing.set()
            self._http.shutdown()
            self._http.server_close()
            self._http.drop_connections()

    def __enter__(self) -> SparqlServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reply_to(self, request: SparqlRequest) -> SparqlReply:
        """What is next in the script."""
        with self._lock:
            self.requests.append(request)
            found = self._queue.popleft() if self._queue else self._always
        if found is None:
            return SparqlReply(599, b"The script has no reply left.", "text/plain")
        return found if isinstance(found, SparqlReply) else found(request)

    @contextmanager
    def counted(self) -> Iterator[None]:
        with self._lock:
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def opened(self) -> int:
        """The number of a connection that was opened just now."""
        with self._lock:
            self.connections += 1
            return self.connections

    def was_cut(self) -> None:
        with self._lock:
            self.cut += 1


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], handler: type, certificate: tuple[Path, Path] | None) -> None:
        self._tls: ssl.SSLContext | None = None
        if certificate:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(*certificate)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        if self._tls:  # the handshake is left to the thread of the connection
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        with self._lock:
            self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            try:
                socket.socket.shutdown(connection, socket.SHUT_RDWR)  # its thread wakes up and closes it
            except OSError:
                pass  # gone already

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing is printed of a client that went away, or does not trust our certificate."""


def _handler(scripted: SparqlServer, name: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        _number = 0

        def _handle(self) -> None:
            arrived = time.monotonic()
            self._number = self._number or scripted.opened()
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
            headers = {name.lower(): value for name, value in self.headers.items()}
            fields = parse_qs(urlsplit(self.path).query + "&" + content, keep_blank_values=True)
            request = SparqlRequest(
                self.command,
                self.path,
                headers,
                {key: values[0] for key, values in fields.items()},
                arrived,
                self._number,
            )
            with scripted.counted():
                sent = scripted.reply_to(request)
                scripted.closing.wait(sent.seconds)
            # what is sent is no longer under way: the next request may come before we know that this one has left
            if sent.status == 0 or scripted.closing.is_set():
                self.close_connection = True
                return
            try:
                self._send(sent)
            except OSError:
                scripted.was_cut()
                self.close_connection = True

        def _send(self, sent: SparqlReply) -> None:
            pieces = iter([sent.body]) if isinstance(sent.body, bytes) else sent.body()
            if sent.framing == "length" and not isinstance(sent.body, bytes):
                raise ValueError("the length of pieces is not known: choose another framing")
            head = [f"HTTP/1.1 {sent.status} Scripted", f"Server: {name}", f"Content-Type: {sent.content_type}"]
            if sent.framing == "length":
                head.append(f"Content-Length: {len(sent.body) + sent.missing}")  # type: ignore[arg-type]
            elif sent.framing == "chunked":
                head.append("Transfer-Encoding: chunked")
            if sent.framing == "close" or sent.missing:
                self.close_connection = True
            head += [f"{key}: {value}" for key, value in sent.headers]
            text = ("\r\n".join(head) + "\r\n\r\n").encode("latin-1")
            for start in range(0, len(text), 1 if sent.head_pause else len(text)):
                self.wfile.write(text[start : start + (1 if sent.head_pause else len(text))])
                scripted.closing.wait(sent.head_pause)
            for piece in pieces:
                if scripted.closing.is_set():
                    self.close_connection = True
                    return
                if isinstance(piece, float):
                    scripted.closing.wait(piece)
                elif sent.framing == "chunked":
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" if piece else b"")
                else:
                    self.wfile.write(piece)
            if sent.framing == "chunked" and not sent.missing:
                self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = _handle

        def log_message(self, *_: object) -> None:
            pass

    return Handler
