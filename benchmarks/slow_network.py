"""Simulates a slow network on the loopback interface: a proxy with TLS and a delay in front of a server."""

from __future__ import annotations

import contextlib
import queue
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Create a self-signed certificate for 127.0.0.1, and its key, with openssl."""
    files = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run(command, check=True, capture_output=True)
    return files


class Relay:
    """Forwards connections from a free loopback port to a port of `host`, in both directions.

    Args:
        delay: delay of every piece of data in each direction, in seconds; pieces are delayed independently.
        wrap: function that is applied to each accepted connection, for example to add TLS.
    """

    def __init__(
        self,
        port: int,
        *,
        delay: float = 0.0,
        wrap: Callable[[socket.socket], socket.socket] | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self._target = (host, port)
        self._delay = delay
        self._wrap = wrap or (lambda connection: connection)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            client = self._wrap(connection)
            server = socket.create_connection(self._target)
        except OSError:
            connection.close()
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, target in ((client, server), (server, client)):
            pieces: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            threading.Thread(target=self._read, args=(source, pieces), daemon=True).start()
            threading.Thread(target=self._write, args=(target, pieces), daemon=True).start()

    def _read(self, source: socket.socket, pieces: queue.SimpleQueue) -> None:
        while True:
            try:
                data = source.recv(1 << 16)
            except OSError:
                data = b""
            pieces.put((time.monotonic() + self._delay, data))
            if not data:
                return

    def _write(self, target: socket.socket, pieces: queue.SimpleQueue) -> None:
        while True:
            due, data = pieces.get()
            time.sleep(max(0.0, due - time.monotonic()))
            with contextlib.suppress(OSError):
                if data:
                    target.sendall(data)
                    continue
                target.shutdown(socket.SHUT_WR)
            return


@contextlib.contextmanager
def far_away(port: int, certificate: tuple[Path, Path], *, latency: float):
    """Yield an address at which the server on this port is reached through TLS, with `latency` seconds each way.

    The TCP handshake is not delayed, so a new connection costs less than over a real network.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    tls = Relay(port, wrap=lambda connection: context.wrap_socket(connection, server_side=True))
    wire = Relay(tls.port, delay=latency)
    try:
        yield f"https://127.0.0.1:{wire.port}"
    finally:
        wire.close()
        tls.close()
