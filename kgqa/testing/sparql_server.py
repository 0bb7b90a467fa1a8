"""A scripted SPARQL server on the loopback interface; it speaks real HTTP and can send any reply and any fault.

busy = SparqlReply(503, headers=(("Retry-After", "1"),))
with SparqlServer([table(["x"], [[Entity("http://e/1")]]), busy]) as server:
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
from contextlib import contextmanager, suppress
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
Framing = OneOf["length", "chunked", "close"]


@dataclass(frozen=True, slots=True)
class SparqlReply:
    """A reply of the scripted SPARQL server.

    Attributes:
        status: HTTP status; 0 closes the connection without a reply.
        body: bytes, or a function that yields pieces of the body; a float among the pieces is a pause in seconds.
        headers: additional headers, in order.
        framing: how the end of the body is marked (by its length, by chunks, or by closing the connection).
        missing: with framing `length`, number of bytes that Content-Length counts but that are not sent; with
            `chunked`, a value other than 0 omits the last chunk.
        seconds: delay before the reply is sent.
        head_pause: delay in seconds after every byte of the status line and headers.
    """

    status: int = 200
    body: bytes | Pieces = b""
    content_type: str = RESULTS
    headers: tuple[tuple[str, str], ...] = ()
    framing: Framing = "length"
    missing: int = 0
    seconds: float = 0.0
    head_pause: float = 0.0


@dataclass(frozen=True)
class SparqlRequest:
    """A request to the scripted SPARQL server.

    `headers` have lower-case names. `fields` are the parameters in the URL and in the form. `connection` is the number
    of the connection, from 1.
    """

    method: str
    path: str
    headers: dict[str, str]
    fields: dict[str, str]
    arrived: float
    connection: int

    @property
    def query(self) -> str:
        """The SPARQL query; empty if the request has none."""
        return self.fields.get("query", "")

    @property
    def update(self) -> str:
        """The SPARQL update; empty if the request has none."""
        return self.fields.get("update", "")


def table(variables: Sequence[str], rows: Iterable[Sequence[Value | None]], **options: Any) -> SparqlReply:
    """Return a reply to a SELECT query. `options` are those of `SparqlReply`."""
    return SparqlReply(body=table_bytes(variables, rows), **options)


def truth(value: bool, **options: Any) -> SparqlReply:
    """Return a reply to an ASK query. `options` are those of `SparqlReply`."""
    return SparqlReply(body=json.dumps({"head": {}, "boolean": value}).encode(), **options)


def table_bytes(variables: Sequence[str], rows: Iterable[Sequence[Value | None]]) -> bytes:
    """Encode a table as SPARQL 1.1 Query Results JSON."""
    bindings = [{name: term(value) for name, value in zip(variables, row) if value is not None} for row in rows]
    return json.dumps(
        {"head": {"vars": list(variables)}, "results": {"bindings": bindings}}, ensure_ascii=False
    ).encode()


def term(value: Value) -> dict[str, str]:
    """Encode a term for SPARQL 1.1 Query Results JSON."""
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
    """A server on 127.0.0.1 with one thread per connection. It runs as soon as it is created.

    Args:
        script: a reply to all requests, a function from request to reply, or a sequence of replies that are used one
            by one. When all replies are used, further requests get the status 599.
        port: port number; 0 for a free port.
        server: value of the Server header.
        certificate: files with a certificate and its key, for TLS.

    Attributes:
        url: the server's URL; it ends in /sparql, but requests to any path are answered.
        requests: the requests, in order of arrival.
        connections: number of connections opened.
        cut: number of connections that the client closed before the end of a reply.
        most_at_once: maximum number of concurrent requests.
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
        self._queue: deque[Scripted] = deque(() if isinstance(script, SparqlReply) or callable(script) else script)
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
        """The queries received."""
        return [request.query for request in self.requests if request.query]

    def enqueue(self, *script: Scripted) -> None:
        """Add replies that are used before the remaining replies of the script."""
        with self._lock:
            self._queue.extend(script)

    def close(self) -> None:
        """Stop the server and close all connections; further calls do nothing."""
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
        """Record a request and return the next reply of the script."""
        with self._lock:
            self.requests.append(request)
            found = self._queue.popleft() if self._queue else self._always
        if found is None:
            return SparqlReply(599, b"The script has no reply left.", "text/plain")
        return found if isinstance(found, SparqlReply) else found(request)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a request as concurrent until the `with` block ends."""
        with self._lock:
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def next_connection(self) -> int:
        """Count a new connection and return its number."""
        with self._lock:
            self.connections += 1
            return self.connections

    def count_cut(self) -> None:
        """Count a connection that the client closed before the end of a reply."""
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
        if self._tls:  # the thread of the connection does the handshake
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
            with suppress(OSError):  # already closed
                socket.socket.shutdown(connection, socket.SHUT_RDWR)  # wakes up the thread that closes it

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about clients that disconnected or do not trust the certificate."""


def _handler(scripted: SparqlServer, name: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        _number = 0

        def _handle(self) -> None:
            arrived = time.monotonic()
            self._number = self._number or scripted.next_connection()
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
            # a request stops counting before its reply is sent, because the client may then send the next request
            if sent.status == 0 or scripted.closing.is_set():
                self.close_connection = True
                return
            try:
                self._send(sent)
            except OSError:
                scripted.count_cut()
                self.close_connection = True

        def _send(self, sent: SparqlReply) -> None:
            pieces = iter([sent.body]) if isinstance(sent.body, bytes) else sent.body()
            size = len(sent.body) if isinstance(sent.body, bytes) else None
            if sent.framing == "length" and size is None:
                raise ValueError("the length of pieces is unknown; choose another framing")
            head = [f"HTTP/1.1 {sent.status} Scripted", f"Server: {name}", f"Content-Type: {sent.content_type}"]
            if sent.framing == "length" and size is not None:
                head.append(f"Content-Length: {size + sent.missing}")
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

        do_GET = do_POST = _handle  # noqa: N815  names required by http.server

        def log_message(self, *_: object) -> None:
            pass

    return Handler
