"""urllib3 connection pools for an endpoint, with a proxy if one is set. Connections are cut at deadlines."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from urllib3 import PoolManager, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError
from urllib3.util import make_headers

from kgqa.graph.endpoint.requests.deadlines import current_deadline

MAX_IDLE = 32
CHUNK_BYTES = 1 << 16
MAX_ERROR_BYTES = 1 << 16
# Virtuoso sends each part of a result of 45 kB or more only after the previous part was acknowledged. Linux delays
# acknowledgements by 40 ms unless this option is set.
_QUICK_ACKNOWLEDGE: int | None = getattr(socket, "TCP_QUICKACK", None)


def open_pool(url: str, *, local: bool) -> tuple[Any, bool]:
    """Open the connection pool for an address.

    Args:
        local: whether the server is on this machine; then no proxy is used.

    Returns:
        The pool, and whether it uses a proxy. A pool with a proxy is a `ProxyManager`, which needs the full URL of a
        request.
    """
    parts = urlsplit(url)
    options: dict[str, Any] = {"maxsize": MAX_IDLE, "block": False}
    proxy = None if local or proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)
    login = urlsplit(proxy or "")
    if login.username:
        pair = f"{unquote(login.username)}:{unquote(login.password or '')}"
        options["proxy_headers"] = make_headers(proxy_basic_auth=pair)
    manager = ProxyManager(proxy, **options) if proxy else PoolManager(**options)
    manager.pool_classes_by_scheme = POOL_CLASSES
    return (manager, True) if proxy else (manager.connection_from_url(url), False)


def read_error_body(response: Any) -> bytes:
    """Read at most MAX_ERROR_BYTES of a body, to quote them in an error, and close the response."""
    data = b""
    with suppress(HTTPError):
        while len(data) < MAX_ERROR_BYTES and (chunk := response.read1(CHUNK_BYTES)):
            data += chunk
    response.close()
    return data[:MAX_ERROR_BYTES]


class _Connection(HTTPConnection):
    """A connection that is attached to the deadline of its current request."""

    def getresponse(self) -> Any:
        deadline = current_deadline()
        # with TLS inside the TLS of a proxy, `sock` is a wrapper around the socket
        connection: Any = getattr(self.sock, "socket", self.sock)
        if deadline is not None:
            deadline.attach(connection)
        if _QUICK_ACKNOWLEDGE is not None:
            connection.setsockopt(socket.IPPROTO_TCP, _QUICK_ACKNOWLEDGE, 1)
        return super().getresponse()


class _TlsConnection(_Connection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection

    def _put_conn(self, connection: Any) -> None:
        # from here on another request may use the connection
        deadline = current_deadline()
        if deadline is not None:
            deadline.attach(None)
        super()._put_conn(connection)


class _TlsPool(_Pool, HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


POOL_CLASSES = {"http": _Pool, "https": _TlsPool}
"""The class of connection pools for each URL scheme."""
