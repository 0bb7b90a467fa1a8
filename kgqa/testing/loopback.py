"""An HTTP server on the loopback interface; a Python function returns its responses, which may be broken."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from typing import Literal as OneOf

_POLL = 0.02
"""Maximum number of seconds for closing the server."""
Pieces = Callable[[], Iterator[bytes | float]]
Framing = OneOf["length", "chunked", "close"]
Self = TypeVar("Self", bound="LoopbackServer")


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response, possibly a broken one.

    Attributes:
        status: HTTP status; 0 closes the connection without a response.
        body: bytes, sent unchanged, or a function that yields pieces of the body; a float among the pieces is a pause
            in seconds.
        headers: additional headers, in order.
        dropped: close the connection without sending anything.
        raw: bytes that violate HTTP, sent instead of status, headers and body; the connection is closed afterwards.
        framing: how the end of the body is marked (by its length, by chunks, or by closing the connection).
        missing: with framing `length`, number of bytes that Content-Length counts but that are not sent; with
            `chunked`, a value other than 0 omits the last chunk. The connection is closed instead.
        seconds: delay before the scripted servers send the response.
        head_pause: delay in seconds after every byte of the status line and headers.
    """

    status: int = 200
    body: bytes | Pieces = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    dropped: bool = False
    raw: bytes = b""
    framing: Framing = "length"
    missing: int = 0
    seconds: float = 0.0
    head_pause: float = 0.0


Answer = Callable[[str, str, dict[str, str], bytes], Response]
"""A function that returns a response, given method, path with query, headers with lower-case names, and body."""


class LoopbackServer:
    """An HTTP/1.1 server with one thread per connection. It runs as soon as it is created.

    Args:
        answer: the function that returns the responses; called in the thread of the connection.
        port: port number; 0 for a free port.
        name: value of the Server header.
        certificate: files with a certificate and its key, for TLS.

    Attributes:
        port: the server's port.
        requests: the requests that `counted` recorded, in order of arrival.
        most_at_once: maximum number of concurrent requests in `counted`.
        cut: number of connections that the client closed before the end of a response.
    """

    def __init__(
        self, answer: Answer, *, port: int = 0, name: str = "scripted", certificate: tuple[Path, Path] | None = None
    ) -> None:
        self.requests: list[Any] = []
        self.most_at_once = self.cut = self._under_way = 0
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", port), _handler(self, answer, name), certificate)
        self.port: int = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(_POLL,), daemon=True, name="scripted-server").start()

    def wait(self, seconds: float) -> None:
        """Wait for some seconds, or until the server is closed."""
        if seconds > 0:
            self.closing.wait(seconds)

    @contextmanager
    def counted(self, request: Any) -> Iterator[None]:
        """Record a request, and count it as concurrent until the `with` block ends."""
        with self._lock:
            self.requests.append(request)
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def close(self) -> None:
        """Stop the server and close all connections, also those that wait for a response; may be called again."""
        if not self.closing.is_set():
            self.closing.set()
            self._http.shutdown()
            self._http.server_close()
            self._http.drop_connections()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # with the default of 5, a burst of connections waits for TCP retries

    def __init__(self, address: tuple[str, int], handler: type, certificate: tuple[Path, Path] | None) -> None:
        self._tls: ssl.SSLContext | None = None
        if certificate:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(*certificate)
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        if self._tls:  # the thread of the connection does the handshake
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        with self._lock:
            self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with suppress(OSError):  # already closed
                socket.socket.shutdown(connection, socket.SHUT_RDWR)  # wakes up the thread that closes it

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about clients that disconnected or do not trust the certificate."""


def _handler(server: LoopbackServer, answer: Answer, name: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # sends header and body without waiting 50 ms between them

        def _handle(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            content = self.rfile.read(int(headers.get("content-length") or 0))
            response = answer(self.command, self.path, headers, content)
            if response.dropped or response.raw or response.status == 0 or server.closing.is_set():
                self.wfile.write(response.raw)
                self.close_connection = True
                return
            try:
                self._send(response)
            except OSError:
                server.cut += 1
                self.close_connection = True

        def _send(self, sent: Response) -> None:
            head = [f"HTTP/1.1 {sent.status} Scripted", f"Server: {name}", f"Content-Type: {sent.content_type}"]
            if sent.framing == "chunked":
                head.append("Transfer-Encoding: chunked")
            elif sent.framing == "length" and not isinstance(sent.body, bytes):
                raise ValueError("the length of pieces is unknown; choose another framing")
            elif sent.framing == "length":
                head.append(f"Content-Length: {len(sent.body) + sent.missing}")  # type: ignore[arg-type]
            if sent.framing == "close" or sent.missing:
                self.close_connection = True
            head += [f"{key}: {value}" for key, value in sent.headers]
            text = ("\r\n".join(head) + "\r\n\r\n").encode("latin-1")
            width = 1 if sent.head_pause else len(text)
            for start in range(0, len(text), width):
                self.wfile.write(text[start : start + width])
                server.wait(sent.head_pause)
            for piece in [sent.body] if isinstance(sent.body, bytes) else sent.body():
                if server.closing.is_set():
                    self.close_connection = True
                    return
                if isinstance(piece, float):
                    server.wait(piece)
                elif sent.framing == "chunked":
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" if piece else b"")
                else:
                    self.wfile.write(piece)
            if sent.framing == "chunked" and not sent.missing:
                self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815  names required by http.server

        def log_message(self, *_: object) -> None:
            pass

    return Handler
