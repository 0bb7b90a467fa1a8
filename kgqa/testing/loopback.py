"""An HTTP server on the loopback interface; a Python function returns its responses, which may be broken."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_POLL = 0.02
"""Maximum number of seconds for closing the server."""


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response, possibly a broken one.

    Attributes:
        status: HTTP status.
        body: the bytes of the body, sent unchanged.
        headers: additional headers, in order.
        dropped: close the connection without sending anything.
        missing: number of bytes that Content-Length counts but that are not sent; the connection is closed instead.
        raw: bytes that violate HTTP, sent instead of status, headers and body; the connection is closed afterwards.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    dropped: bool = False
    missing: int = 0
    raw: bytes = b""


Answer = Callable[[str, str, dict[str, str], bytes], Response]
"""A function that returns a response, given method, path with query, headers with lower-case names, and body."""


class LoopbackServer:
    """An HTTP/1.1 server on a free port, with one thread per connection. It runs as soon as it is created."""

    def __init__(self, answer: Answer) -> None:
        self._closing = threading.Event()
        self._http = _Http(("127.0.0.1", 0), _handler(answer, self._closing))
        self.port: int = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(_POLL,), daemon=True, name="scripted-server").start()

    def wait(self, seconds: float) -> None:
        """Wait for some seconds, or until the server is closed."""
        if seconds > 0:
            self._closing.wait(seconds)

    def close(self) -> None:
        """Stop the server and close all connections; further calls do nothing."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._http.drop_connections()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # with the default of 5, a burst of connections waits for TCP retries

    def __init__(self, *args: Any) -> None:
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with suppress(OSError):  # already closed
                connection.shutdown(socket.SHUT_RDWR)  # wakes up the thread of the connection, which closes it

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing, because clients may disconnect and see all other errors themselves."""


def _handler(answer: Answer, closing: threading.Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # sends header and body without waiting 50 ms between them

        def _handle(self) -> None:
            try:
                length = int(self.headers.get("Content-Length") or 0)
            except ValueError:
                length = 0
            headers = {name.lower(): value for name, value in self.headers.items()}
            response = answer(self.command, self.path, headers, self.rfile.read(length))
            if response.dropped or response.raw or closing.is_set():
                self.close_connection = True
                self.wfile.write(response.raw)
                return
            self.send_response(response.status)
            self.send_header("Content-Type", response.content_type)
            self.send_header("Content-Length", str(len(response.body) + response.missing))
            for name, value in response.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response.body)
            if response.missing:
                self.close_connection = True

        do_GET = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815  names required by http.server

        def log_message(self, *_: object) -> None:
            pass

    return Handler
