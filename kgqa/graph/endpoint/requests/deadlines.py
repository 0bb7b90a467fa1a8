"""Ends requests that take too long, by cutting their connection.

A socket's timeout counts the silence between two packets: a server that sends a byte a second never reaches it. So a
thread looks after all requests that are under way and shuts the connections of those whose time is up. The thread that
reads from one then sees it end.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

LOOK_SECONDS = 0.1
# at once, for as long as the system likes: Virtuoso sends the next part of a result of 45 kB or more when what it sent
# has been acknowledged, which systems put off for 40 ms
_ACKNOWLEDGE: int | None = getattr(socket, "TCP_QUICKACK", None)
_mine = threading.local()


class Watch:
    """A request that is under way. `deadline` is in seconds of `time.monotonic`; `given` are the seconds it had."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.given = deadline - time.monotonic()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._ended = False
        self.broken = 0
        """How often a connection broke that the request had been sent on, or an answer came damaged."""

    @property
    def late(self) -> bool:
        return time.monotonic() >= self.deadline

    def hold(self, connection: socket.socket | None) -> None:
        """This is the connection that the reply comes on."""
        with self._lock:
            self._socket = connection
            if self._ended:
                self._cut()

    def end(self) -> None:
        """Cut the connection, now or as soon as there is one. May be called from any thread."""
        with self._lock:
            self._ended = True
            self._cut()

    def _cut(self) -> None:
        if self._socket is not None:
            try:
                # not its own method: that of a TLS socket takes the encryption away under the reader's hands
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                pass  # ended by itself


class _Watchman:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watches: set[Watch] = set()
        self._started = False

    def add(self, watch: Watch) -> None:
        with self._changed:
            self._watches.add(watch)
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, daemon=True, name="kgqa-watch").start()
            elif len(self._watches) == 1:
                self._changed.notify()

    def remove(self, watch: Watch) -> None:
        with self._changed:
            self._watches.discard(watch)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._watches:
                    self._changed.wait()
                late = [watch for watch in self._watches if watch.late]
            for watch in late:
                watch.end()
            time.sleep(LOOK_SECONDS)


_watchman = _Watchman()


@contextmanager
def watching(deadline: float) -> Iterator[Watch]:
    """Watch what this thread asks until the end of the block. `deadline`: seconds of `time.monotonic`."""
    watch = _mine.watch = Watch(deadline)
    _watchman.add(watch)
    try:
        yield watch
    finally:
        _mine.watch = None
        _watchman.remove(watch)


@lru_cache(maxsize=1)
def watched_pools() -> dict[str, Any]:
    """Pools of connections for urllib3, by scheme, whose connections are watched while a reply is awaited."""
    from urllib3.connection import HTTPConnection, HTTPSConnection
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

    class Watched(HTTPConnection):
        def getresponse(self) -> Any:
            watch: Watch | None = getattr(_mine, "watch", None)
            # urllib3's TLS within TLS, of a proxy, wraps the socket
            connection = getattr(self.sock, "socket", self.sock)
            if watch is not None:
                watch.hold(connection)
            if _ACKNOWLEDGE is not None:
                connection.setsockopt(socket.IPPROTO_TCP, _ACKNOWLEDGE, 1)
            return super().getresponse()

    class WatchedTls(Watched, HTTPSConnection):
        pass

    class LettingGo:
        def _put_conn(self, connection: Any) -> None:
            # somebody else's from here on
            watch: Watch | None = getattr(_mine, "watch", None)
            if watch is not None:
                watch.hold(None)
            super()._put_conn(connection)  # type: ignore[misc]

    class Pool(LettingGo, HTTPConnectionPool):
        ConnectionCls = Watched

    class TlsPool(LettingGo, HTTPSConnectionPool):
        ConnectionCls = WatchedTls

    return {"http": Pool, "https": TlsPool}
