"""A real service on the loopback interface, in threads of the test process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from kgqa.serve.app import create_app
from kgqa.serve.server import Server, make_server, open_socket, run_server
from kgqa.serve.service import Service


@dataclass(frozen=True)
class Running:
    """A running service. `client`: sends requests to it, without a token."""

    service: Service
    server: Server
    port: int
    client: httpx.Client

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def running(
    *, tokens: Sequence[str] = (), writable: bool = False, mcp: bool = False, **given: Any
) -> Iterator[Running]:
    """Serve a graph until the context ends. `given`: settings by key, with an underscore in place of the dot."""
    given = {"serve_folder": "none", **given}
    service = Service(given, writable=writable)
    started = threading.Event()
    server = make_server(create_app(service, hosts=["localhost"], tokens=tokens, mcp=mcp), service)
    with open_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        thread = threading.Thread(target=run_server, args=(server, listening), kwargs={"started": started.set})
        thread.start()
        try:
            assert started.wait(10)
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
                yield Running(service, server, port, client)
        finally:
            server.should_exit = server.force_exit = True
            thread.join(30)
            service.close()
