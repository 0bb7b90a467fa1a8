"""HTTP to one server: proxies, limits, retries, deadlines, redirects within the server, and errors in plain words."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from http.client import HTTPException
from typing import Any
from typing import Literal as OneOf
from urllib.parse import urljoin, urlsplit

from urllib3 import Retry, Timeout
from urllib3.exceptions import (
    ConnectTimeoutError,
    DecodeError,
    HTTPError,
    InvalidHeader,
    LocationValueError,
    NewConnectionError,
    ProxyError,
    SSLError,
)

from kgqa.errors import DamagedResult, StoreError, StoreUnavailable
from kgqa.net.connections import open_manager, proxy_for, without_login
from kgqa.net.limits import MAX_FAILURES, ConnectionLost, RequestDeadline, RequestLimiter
from kgqa.net.threads import CHECK_SECONDS
from kgqa.text.words import clean

CHUNK_BYTES = 1 << 16
CONNECT_SECONDS = 10.0
PATIENCE = 10.0
"""Seconds during which a request is repeated while the server does not answer."""
FIRST_CONTACT_SECONDS = 2.0
"""Seconds during which requests to a server that has never answered are repeated; its address is probably wrong."""
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.2, 2.0
GATEWAY_STATUSES = (502, 503, 504)
"""Statuses that a proxy sends when it cannot reach the server."""
REDIRECTS = (301, 302, 307, 308)
MAX_REDIRECTS = 5
NO_REPLY = (HTTPError, HTTPException, OSError)
"""What `HttpClient.send` raises when a request gets no reply."""
NEVER_SENT = (NewConnectionError, ConnectTimeoutError, ProxyError)
"""Errors after which no part of a request has reached the server."""
Verdict = StoreError | OneOf["final", "again"]
"""Use a reply, repeat its request at once, or repeat it after a pause and at last raise an error."""


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request to a full URL."""

    method: str
    url: str
    headers: Mapping[str, Any]
    body: bytes | None = None


class HttpClient:
    """Sends requests to one server. Thread-safe. A reply is a response of urllib3 whose body has not been read.

    Args:
        patience: seconds during which a request is repeated while the server does not answer.

    Attributes:
        limiter: the limits of the server, which all clients of this process share.
        failures: how many connections failed or broke; the server may have been restarted since then.
        last_reply: time of the last reply from the server itself, not from a proxy, in seconds of `time.monotonic`.

    Raises:
        SettingsError: the environment names a proxy that cannot be used.
    """

    def __init__(self, url: str, *, patience: float = PATIENCE) -> None:
        self.url = url
        self.limiter = RequestLimiter.for_url(url)
        self.failures = 0
        self.last_reply = 0.0
        self._patience = patience
        self._has_answered = False
        self._closed = threading.Event()
        self._proxy = proxy_for(url)
        self._manager = open_manager(url, self._proxy)
        # without a proxy, the pool of the server itself saves 0.1 ms per request
        self._pool = None if self._proxy else self._manager.connection_from_url(url)
        self._origin = urljoin(url, "/")

    def close(self) -> None:
        """Cut all active requests; their callers get StoreUnavailable."""
        self._closed.set()
        self._manager.clear()

    def deadline(self, at: float) -> RequestDeadline:
        """Return a deadline whose `with` block ends requests at `at`, in seconds of `time.monotonic`."""
        return RequestDeadline(at, self.url, self._closed)

    def request(
        self,
        build: Callable[[], Request],
        judge: Callable[[Any], Verdict],
        *,
        deadline: RequestDeadline,
        rate: float = 0.0,
        is_update: bool = False,
    ) -> Any:
        """Send a request, and repeat it until its reply is final or the patience is over.

        Args:
            build: builds the request, for each attempt.
            judge: decides about a reply.
            rate: most requests per second to this server; 0 for no limit.
            is_update: whether the request is not repeated once the server may have carried it out.

        Raises:
            StoreTimeout, StoreUnavailable; the error of `judge`.
        """
        give_up_at, pause = 0.0, FIRST_PAUSE_SECONDS
        while True:
            self.limiter.wait_for_turn(rate, deadline)
            try:
                response = self.send(build(), deadline)
            except NO_REPLY as problem:
                deadline.check(problem)
                self.failures += 1
                error: StoreError = self.error_of(problem, is_update=is_update)
                sent = not isinstance(problem, NEVER_SENT)
                deadline.failures += sent
                hopeless = isinstance(problem, LocationValueError) or "CERTIFICATE_VERIFY_FAILED" in str(problem)
                if hopeless or deadline.failures >= MAX_FAILURES or (is_update and sent):
                    raise error from problem
            else:
                self._has_answered = True
                verdict = judge(response)
                if verdict == "final":
                    return response
                if isinstance(verdict, str):
                    continue
                error = verdict
                if wait := retry_after(response.headers):
                    self.limiter.pause(wait)
                    continue
            patience = self._patience if self._has_answered else min(self._patience, FIRST_CONTACT_SECONDS)
            now, seconds = time.monotonic(), pause * random.uniform(0.7, 1.3)
            give_up_at = give_up_at or now + patience
            if now + seconds >= min(give_up_at, deadline.at):
                raise error
            deadline.sleep(seconds)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)

    def send(self, request: Request, deadline: RequestDeadline, *, read_seconds: float = float("inf")) -> Any:
        """Send a request once, and again where the server redirects to another address of its own.

        Args:
            read_seconds: seconds within which the next part of the reply has to arrive.

        Raises:
            One of NO_REPLY.
        """
        for _ in range(MAX_REDIRECTS):
            left, target = deadline.left, request.url
            urlopen: Callable[..., Any] = self._manager.urlopen
            if self._pool and target.startswith(self._origin):
                urlopen, target = self._pool.urlopen, target[len(self._origin) - 1 :]
            response = urlopen(
                request.method,
                target,
                body=request.body,
                headers=request.headers,
                # at the deadline, the connection is cut
                timeout=Timeout(
                    connect=min(left, read_seconds, CONNECT_SECONDS), read=min(left + CHECK_SECONDS, read_seconds)
                ),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            if response.status not in GATEWAY_STATUSES:
                self.last_reply = time.monotonic()
            target = response.headers.get("location", "")
            if response.status not in REDIRECTS or not is_same_server(request.url, target):
                break
            response.close()
            request = replace(request, url=urljoin(request.url, target))
        return response

    def chunks(self, response: Any, deadline: RequestDeadline) -> Iterator[bytes]:
        """Yield the chunks of a body as they arrive.

        A reply that arrives after the deadline is refused even if it looks complete, because a server that knew the
        deadline may have truncated the reply.

        Raises:
            ConnectionLost, DamagedResult, StoreTimeout, StoreUnavailable.
        """
        try:
            while True:
                chunk = response.read1(CHUNK_BYTES)
                if response.connection is None:  # from here on another request may use it
                    deadline.connection = None
                deadline.check()
                if not chunk:
                    return
                yield chunk
        except DecodeError as error:
            raise DamagedResult("The server's reply is damaged: it cannot be decompressed.", "Try again.") from error
        except NO_REPLY as error:
            deadline.check(error)
            deadline.failures += 1
            raise ConnectionLost(
                f"The connection to {self.url} was lost in the middle of a reply, which is not used.", "Try again."
            ) from error

    def responds(self, request: Request, seconds: float) -> bool:
        """Return whether the server sent any reply in the last `seconds`, or now replies to this request.

        Earlier replies count, because a server that handles one request at a time may not reply to a second request.
        """
        started = time.monotonic()
        if self.last_reply > started - seconds:
            return True
        with self.deadline(started + seconds) as deadline:
            try:
                response = self.send(request, deadline)
            except NO_REPLY:
                return self.last_reply > started
            response.close()
            return response.status not in GATEWAY_STATUSES

    def error_of(self, problem: Exception, *, is_update: bool = False) -> StoreUnavailable:
        """Convert an error of NO_REPLY to an error with a message for users."""
        url = clean(self.url)[:200]
        if isinstance(problem, LocationValueError):
            return StoreUnavailable(f"{url} is not the address of a server.", "Check the address.")
        if isinstance(problem, SSLError):
            return StoreUnavailable(
                f"No secure connection to {url} ({clean(str(problem))[:200]}).",
                "If the server is your own, set the environment variable SSL_CERT_FILE to the certificate of its "
                "authority.",
            )
        if isinstance(problem, NEVER_SENT) and self._proxy:
            return StoreUnavailable(
                f"The proxy {without_login(self._proxy)} for {url} does not answer.",
                "Check the environment variables http_proxy, https_proxy, all_proxy and no_proxy.",
            )
        if isinstance(problem, NEVER_SENT):
            return StoreUnavailable(
                f"Nothing answers at {url}.",
                "Check the address, and whether the server is running (for a server started by kgqa: kgqa virtuoso "
                "status).",
            )
        if is_update:
            return StoreUnavailable(
                f"The connection to {url} was lost during an update, which may have been carried out.",
                "Check the graph before you send the update again.",
            )
        return StoreUnavailable(
            f"The connection to {url} was lost during a query.",
            "Check whether the server is running and whether this query crashes it.",
        )


def is_same_server(url: str, target: str) -> bool:
    """Return whether a redirect from `url` stays on its server: the same host and port, or from http to https."""
    try:
        old, new = _origin(url), _origin(urljoin(url, target))
    except ValueError:
        return False
    host = old[1]
    return bool(target) and (old == new or (old, new) == (("http", host, 80), ("https", host, 443)))


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Return the scheme, the host and the port of a URL."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait from the header Retry-After (a number or an HTTP date); None if it is missing."""
    try:
        return Retry().parse_retry_after(headers.get("retry-after", ""))
    except InvalidHeader:
        return None


def read_up_to(chunks: Iterable[bytes], size: int) -> bytes:
    """Read chunks until they are longer than `size` bytes."""
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > size:
            break
    return bytes(body)
