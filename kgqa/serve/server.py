"""Runs the web application in uvicorn, with limits on slow clients, until it is told to end."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kgqa.errors import SettingsError
from kgqa.serve import limits
from kgqa.serve.service import Service

MAX_CONNECTIONS = 1000
ADDRESS_CONNECTIONS = 500
"""Maximum connections from one address, unless the address of a client is what a proxy says."""
HEADER_BYTES = 32 << 10
UNREAD = 3
"""How many times `limits.READ_SECONDS` a client may take to read 64 KB of a reply."""
REPLY_SECONDS = 5
"""How long the replies to stopped questions may take at the end of the service."""
_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n"
    b'{"error": {"message": "The headers did not arrive in time.", "hint": ""}}'
)


class PromptProtocol(H11Protocol):
    """HTTP/1.1 that ends a connection whose headers do not arrive in time, or that reads no reply."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.access_log = False  # it would contain query strings; see RequestLog
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # asyncio does so only for sockets of a named protocol; without it, a reply in two parts takes 40 ms more
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self.config.proxy_headers and self._from_same_address() > ADDRESS_CONNECTIONS:
            transport.abort()
            return
        self._watch()

    def _from_same_address(self) -> int:
        address = self.client and self.client[0]
        return sum(isinstance(each, H11Protocol) and (each.client or ("",))[0] == address for each in self.connections)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._abort_later()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._read_on()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._abort_later()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._abort_later()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._read_on()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Start the time for headers that are not complete, or for a body that nobody reads; end it afterwards."""
        if not self._is_waiting:
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(limits.READ_SECONDS, self._give_up)

    @property
    def _is_waiting(self) -> bool:
        return self.conn.their_state is h11.IDLE or (self.cycle is not None and self.cycle.response_complete)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _abort_later(self) -> None:
        """End the connection if what is written is not read in time; closing it would wait for the client."""
        self._read_on()
        self._unread = self.loop.call_later(UNREAD * limits.READ_SECONDS, self.transport.abort)

    def _read_on(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _give_up(self) -> None:
        self._deadline = None
        if self._is_waiting and not self.transport.is_closing():
            if self.conn.their_state is h11.IDLE:
                self.transport.write(_TOO_SLOW)
            self.transport.close()
            self._abort_later()


class Server(uvicorn.Server):
    """A uvicorn server that remembers the signal that ended it, and stops questions that take too long then."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.ended_by = 0
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        seconds = self._service.settings.serve.shutdown_seconds
        stopping = asyncio.get_running_loop().call_later(seconds, self._service.stop_all)
        closing = [asyncio.create_task(close()) for close in self._service.closing]
        try:
            await super().shutdown(sockets)
        finally:
            stopping.cancel()
            for task in closing:
                task.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.ended_by = self.ended_by or sig
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        with super().capture_signals():
            yield
            self._captured_signals.clear()  # the caller decides about the exit code


def open_socket(host: str, port: int, *, port_option: str = "--port ") -> socket.socket:
    """Return a socket that listens at an address.

    Args:
        port_option: What the number of another port is appended to in the hint of the error.

    Raises:
        SettingsError: the address cannot be used.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        code = error.errno or 0
        reason = os.strerror(code) if code > 0 else error.strerror
        port_taken = code in (errno.EADDRINUSE, errno.EACCES)
        raise SettingsError(
            f"The service cannot listen at {host}, port {port}: {reason}.",
            f"Choose another port: {port_option}{port % 65535 + 1}"
            if port_taken
            else "Choose another address: --host 127.0.0.1",
        ) from error


def make_server(app: Any, service: Service) -> Server:
    """Return a server for the application, with the limits in the settings of the service."""
    settings = service.settings
    config = uvicorn.Config(
        app,
        http=PromptProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.serve.proxy),
        forwarded_allow_ips=settings.serve.proxy or "",
        h11_max_incomplete_event_size=HEADER_BYTES,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=round(settings.serve.shutdown_seconds) + REPLY_SECONDS,
    )
    return Server(config, service)


def run_server(server: Server, listening: socket.socket, *, started: Callable[[], None]) -> bool:
    """Serve until SIGINT, SIGTERM or `server.should_exit`; then accept nothing more and finish what is in flight.

    Args:
        listening: the socket of `open_socket`.
        started: called when requests are accepted.

    Returns:
        Whether Ctrl-C (SIGINT) ended the server.
    """

    async def serve() -> None:
        serving = asyncio.ensure_future(server.serve([listening]))
        while not (server.started or serving.done()):
            await asyncio.sleep(0.01)
        started()
        await serving

    asyncio.run(serve())
    return server.ended_by == signal.SIGINT
