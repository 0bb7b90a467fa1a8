"""HTTP on the loopback: hands each request to a function and sends what it returns, well or badly."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_POLL = 0.02
"""Seconds that closing may take."""


@dataclass(frozen=True, slots=True)
class Response:
    """What is sent.

    Attributes:
        status: HTTP status.
        body: sent as it is.
        headers: more of them, in order.
        dropped: the connection is closed and nothing is sent.
        missing: bytes of the body that are announced and never come; the connection is closed instead.
        raw: sent in place of all this, for what is no HTTP; the connection is closed afterwards.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    dropped: bool = False
    missing: int = 0
    raw: bytes = b""


Answer = Callable[[str, str, dict[str, str], bytes], Response]
"""Method, path with query, headers with names in lower case, body."""


class LoopbackServer:
    """Listens on a free port from when it is made; a thread for each connection. HTTP/1.1 with kept connections."""

    def __init__(self, answer: Answer) -> None:
        self._closing = threading.Event()
        self._http = _Http(("127.0.0.1", 0), _handler(answer, self._closing))
        self.port: int = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(_POLL,), daemon=True, name="scripted-server").start()

    def wait(self, seconds: float) -> None:
        """Returns after so long, or at once when it is closed."""
        if seconds > 0:
            self._closing.wait(seconds)

    def close(self) -> None:
        """Drops all connections, waiting ones too. May be called again."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._http.drop_connections()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # with the usual 5 a burst of connections waits for a second try of the kernel's

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
            try:
                connection.shutdown(socket.SHUT_RDWR)  # its thread wakes up and closes it
            except OSError:
                pass  # gone already

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing is printed of a client that went away; anything else it was is seen by the client as well."""


def _handler(answer: Answer, closing: threading.Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two packets; 50 ms a call otherwise

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

        do_GET = do_POST = do_PUT = do_DELETE = _handle

        def log_message(self, *_: object) -> None:
            pass

    return Handler
