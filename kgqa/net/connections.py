"""Connections to one server through urllib3, with the proxy that the environment names for it."""

from __future__ import annotations

import socket
import ssl
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from urllib3 import PoolManager, ProxyManager
from urllib3.util import make_headers

from kgqa.errors import SettingsError
from kgqa.net.limits import current_deadline
from kgqa.net.servers import is_loopback
from kgqa.text.words import clean

MAX_IDLE = 32
SOCKS_SCHEMES = ("socks4", "socks4a", "socks5", "socks5h")
# Virtuoso sends each part of a result of 45 kB or more only after the previous part was acknowledged. Linux delays
# acknowledgements by 40 ms unless this option is set.
_QUICK_ACKNOWLEDGE: int | None = getattr(socket, "TCP_QUICKACK", None)


def proxy_for(url: str) -> str:
    """Return the URL of the proxy for a server: that of the environment, unless the server needs none.

    A server on this machine needs none, nor does a server in `no_proxy`.

    Raises:
        SettingsError: the proxy has no scheme or one that is not supported, or a SOCKS proxy lacks its library.
    """
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or is_loopback(url) or proxy_bypass(parts.netloc):
        return ""
    scheme, mark, _ = proxy.partition("://")
    if not mark or scheme not in ("http", "https", *SOCKS_SCHEMES):
        raise SettingsError(
            f"The proxy address {without_login(proxy)} must start with http://, https:// or socks5://.",
            f"Correct the environment variable {parts.scheme}_proxy or all_proxy, or add the server to no_proxy.",
        )
    if scheme in SOCKS_SCHEMES and find_spec("socks") is None:
        raise SettingsError(
            f"The proxy {without_login(proxy)} needs the library PySocks.", "Install it: pip install 'urllib3[socks]'"
        )
    return proxy


def without_login(proxy: str) -> str:
    """Return the URL of a proxy for messages, without its login."""
    scheme, mark, rest = proxy.rpartition("://")
    return clean(scheme + mark + rest.rpartition("@")[2])[:100]


def open_manager(url: str, proxy: str) -> PoolManager:
    """Open the connection pools for a server, whose connections are cut at the deadline of their request."""
    options: dict[str, Any] = {"maxsize": MAX_IDLE, "block": False}
    if url.startswith("https:"):
        options["ssl_context"] = ssl.create_default_context()  # otherwise each connection loads all certificates
    manager: PoolManager
    if proxy.startswith("socks"):
        from urllib3.contrib.socks import SOCKSProxyManager

        manager = SOCKSProxyManager(proxy, **options)
    elif proxy:
        login = urlsplit(proxy)
        pair = f"{unquote(login.username or '')}:{unquote(login.password or '')}"
        headers = make_headers(proxy_basic_auth=pair) if login.username else None
        manager = ProxyManager(proxy, proxy_headers=headers, **options)
    else:
        manager = PoolManager(**options)
    manager.pool_classes_by_scheme = {
        scheme: _watched(pool_class) for scheme, pool_class in manager.pool_classes_by_scheme.items()
    }
    return manager


def _watched(pool_class: Any) -> Any:
    """Return a class of pools whose connections tell the deadline of a request on which socket the reply arrives."""

    class Connection(pool_class.ConnectionCls):  # type: ignore[misc]
        def getresponse(self) -> Any:
            # with TLS inside the TLS of a proxy, `sock` is a wrapper around the socket
            connection: Any = getattr(self.sock, "socket", self.sock)
            if deadline := current_deadline.get():
                deadline.connection = connection
            if _QUICK_ACKNOWLEDGE is not None:
                connection.setsockopt(socket.IPPROTO_TCP, _QUICK_ACKNOWLEDGE, 1)
            return super().getresponse()

    return type(pool_class.__name__, (pool_class,), {"ConnectionCls": Connection})
