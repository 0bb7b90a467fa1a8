"""HTTP to a SPARQL endpoint, with rate limits, login, retries and deadlines.

SPARQLWrapper builds the requests and urllib3 holds the connections. Without urllib3, SPARQLWrapper opens a connection
per request, and supports neither HTTP 429 nor a limit on the total time of a request.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from urllib3 import Timeout
from urllib3.exceptions import DecodeError, HTTPError, ReadTimeoutError

from kgqa.errors import DamagedResult, StoreError, StoreTimeout, StoreUnavailable
from kgqa.graph.endpoint.profiles import Profile, profile_of
from kgqa.graph.endpoint.replies.reply_errors import is_transient, reply_error, update_error
from kgqa.graph.endpoint.requests.access import Access
from kgqa.graph.endpoint.requests.connection_errors import connection_error, is_retryable, never_sent, overload_error
from kgqa.graph.endpoint.requests.connections import CHUNK_BYTES, open_pool, read_error_body
from kgqa.graph.endpoint.requests.deadlines import RequestDeadline, enforced_deadline
from kgqa.graph.endpoint.requests.login import Login
from kgqa.graph.endpoint.requests.request_builder import Request, RequestBuilder
from kgqa.graph.endpoint.requests.retries import (
    BUSY_STATUSES,
    GATEWAY_STATUSES,
    MAX_FAILURES,
    UPDATE_BUSY_STATUSES,
    Backoff,
    ConnectionLost,
)
from kgqa.graph.endpoint.server_limits import UNKNOWN, ServerLimits, limit_in_error, read_limits
from kgqa.graph.query.templates import render
from kgqa.net.limiter import QueueTimeout, RequestLimiter
from kgqa.net.servers import retry_after

LOOPBACK = ("localhost", "::1")
FOREIGN_STATUSES = (401, 403, 404, 429)
"""Statuses that may come from a proxy in front of the server, in addition to statuses of 500 and above."""


@dataclass
class Reply:
    """The reply to a query: status, headers by lower-case name, and the body, to be read from `chunks`."""

    status: int
    headers: dict[str, str]
    chunks: Iterator[bytes]


class Transport:
    """Sends queries and updates to one endpoint. Thread-safe.

    Args:
        profile: the kind of server. detects: whether to detect the kind of server from the first reply instead.

    Attributes:
        profile: the kind of server, as far as known. limits: the server's own limits, as far as known.
    """

    def __init__(self, url: str, access: Access, profile: Profile, *, detects: bool = False) -> None:
        self.url = url
        self.access = access
        self.profile = profile
        self.limits: ServerLimits = UNKNOWN
        host = urlsplit(url).hostname or ""
        local = host in LOOPBACK or host.startswith("127.")
        # on the same machine, compression takes more time than it saves
        self._builder = RequestBuilder(url, contact=access.contact, compressed=not local)
        self._pool, self._proxied = open_pool(url, local=local)
        self._login = Login(url, access.user, access.password)
        self._limiter = RequestLimiter.for_url(url)
        self._detects = detects
        self._detecting = threading.Lock()
        self._detected = self._has_answered = False
        self._last_reply = 0.0
        self._closed = threading.Event()
        self._deadlines: set[RequestDeadline] = set()

    @property
    def concurrency(self) -> int:
        """The largest number of concurrent requests."""
        return self.access.concurrency or self.profile.concurrency

    @property
    def has_free_slot(self) -> bool:
        """Whether a request would be sent without waiting for others."""
        return self._limiter.has_free_slot(self.concurrency)

    @property
    def rate(self) -> float:
        """Requests per second; 0 for no limit."""
        return self.profile.rate if self.access.rate is None else self.access.rate

    def close(self) -> None:
        """Cancel active requests; their callers get StoreUnavailable."""
        self._closed.set()
        self._limiter.wake_waiting()
        for deadline in list(self._deadlines):
            deadline.cancel()
        close = self._pool.clear if self._proxied else self._pool.close
        close()

    def detect(self, seconds: float) -> None:
        """Detect the kind of server and its limits, unless they are known. Raises the same errors as `query`."""
        if self._detected:
            return
        if not self._detecting.acquire(timeout=seconds):
            raise QueueTimeout(f"{self.url} did not answer the first query in time. Check what keeps the server busy.")
        at = time.monotonic() + seconds
        try:
            if not self._detected and self._detects:
                with self._reply_by(render("any_triple", view=()), is_ask=True, at=at) as reply:
                    profile = profile_of(self.url, reply.headers.get("server", ""))
                    if profile.name != "generic" or (reply.status < 500 and reply.status not in FOREIGN_STATUSES):
                        self.profile, self._detects = profile, False
            if not self._detected and self.profile.limits_query:
                with self._reply_by(render(self.profile.limits_query), is_ask=False, at=at) as reply:
                    if reply.status == 200:  # some servers reject this query
                        self.limits = read_limits(reply.chunks)
            self._detected = not self._detects
        finally:
            self._detecting.release()

    @contextmanager
    def query(self, text: str, *, is_ask: bool, seconds: float) -> Iterator[Reply]:
        """Send a SELECT or ASK query and yield the reply, whatever its status. Read the reply inside the block.

        Args:
            is_ask: whether the query is an ASK query.
            seconds: time limit for waiting in the queue, connecting, retries and reading together.

        Raises:
            StoreTimeout, StoreUnavailable; ConnectionLost and DamagedResult while reading.
        """
        at = time.monotonic() + seconds
        self.detect(seconds)
        with self._reply_by(text, is_ask=is_ask, at=at) as reply:
            yield reply

    @contextmanager
    def _reply_by(self, text: str, *, is_ask: bool, at: float) -> Iterator[Reply]:
        with self.slot(at) as deadline, self.reply(text, is_ask=is_ask, deadline=deadline) as reply:
            yield reply

    @contextmanager
    def slot(self, at: float) -> Iterator[RequestDeadline]:
        """Wait until a further concurrent request is allowed; requests sent in the block end at the deadline `at`.

        Raises:
            QueueTimeout, StoreUnavailable.
        """
        with self._limiter.slot(self.concurrency, at, self._closed), enforced_deadline(at) as deadline:
            self._deadlines.add(deadline)
            try:
                yield deadline
            finally:
                self._deadlines.discard(deadline)

    @contextmanager
    def reply(self, text: str, *, is_ask: bool, deadline: RequestDeadline) -> Iterator[Reply]:
        """Send a query inside the block of `slot`. Raises the same errors as `query`."""

        def build() -> Request:
            left = deadline.at - time.monotonic()
            limit = left if self.limits.permit(left, self.profile) else None
            return self._builder.query(text, is_ask=is_ask, profile=self.profile, limit=limit)

        response, body = self._send_with_retries(build, deadline, text)
        try:
            chunks = self._chunks(response, deadline) if response.status == 200 else iter([body])
            yield Reply(response.status, _lower(response.headers), chunks)
        finally:
            response.close()  # otherwise the unread part would precede the next reply on this connection

    def update(self, text: str, *, seconds: float) -> None:
        """Send an update. It is not sent again after a lost connection, because the server may have carried it out.

        Raises:
            StoreTimeout, StoreUnavailable, QueryRejected.
        """
        at = time.monotonic() + seconds
        self.detect(seconds)
        url = self.url
        if self.profile.update_path:
            parts = urlsplit(url)
            url = parts._replace(path=parts.path.rpartition("/")[0] + self.profile.update_path).geturl()
        with self.slot(at) as deadline:
            response, body = self._send_with_retries(
                lambda: self._builder.update(text, url=url), deadline, text, is_update=True
            )
            response.close()
        error = update_error(response.status, _lower(response.headers), _text(body), self.profile, url, query=text)
        if error:
            raise error

    def responds(self, seconds: float) -> bool:
        """Return whether the server sent any reply in the last `seconds`, or now replies to a small query.

        The small query is sent once, without waiting for a slot.
        """
        if self._limiter.is_paused or (self.concurrency == 1 and not self.has_free_slot):
            return True  # the server asked for a pause, or the request in the only slot will show if it responds
        started = time.monotonic()
        if self._last_reply > started - seconds:
            return True
        with enforced_deadline(started + seconds) as deadline:
            request = self._builder.query(render("any_triple", view=()), is_ask=True, profile=self.profile, limit=None)
            try:
                response = self._send(request, deadline)
            except (HTTPError, HTTPException, OSError):
                return self._last_reply > started
            response.close()
            return response.status not in GATEWAY_STATUSES

    # --- one request and its retries

    def _send_with_retries(
        self, build: Callable[[], Request], deadline: RequestDeadline, text: str, *, is_update: bool = False
    ) -> tuple[Any, bytes]:
        """Send a request, and repeat it until the server answers or `Access.patience` is over.

        Returns:
            The response and the beginning of its body. This beginning is empty if the body is a result; the caller then
            reads the result.
        """
        busy_statuses = UPDATE_BUSY_STATUSES if is_update else BUSY_STATUSES
        backoff, logged_in = Backoff(deadline.at), False
        while True:
            self._limiter.wait_for_turn(self.rate, deadline.at, self._closed)
            error: StoreError
            try:
                response = self._send(build(), deadline)
            except (HTTPError, HTTPException, OSError) as problem:
                self._check_active(deadline, problem)
                # a restarted server may have shorter limits than those we send, and then silently truncate results
                self.limits, self._detected = UNKNOWN, False
                error = connection_error(problem, self.url, is_update=is_update)
                deadline.failures += not never_sent(problem)
                if deadline.failures >= MAX_FAILURES or not is_retryable(problem, is_update=is_update):
                    raise error from problem
            else:
                self._has_answered = True
                if response.status not in GATEWAY_STATUSES:
                    self._last_reply = time.monotonic()
                body = b"" if response.status == 200 and not is_update else read_error_body(response)
                if response.status == 401 and not logged_in:
                    logged_in = self._login.accept(response.headers.getlist("WWW-Authenticate"))
                    if logged_in:
                        continue
                seconds = limit_in_error(self.profile, response.status, body)
                if seconds is not None and seconds != self.limits.seconds:
                    self.limits = ServerLimits(seconds, self.limits.rows)
                    continue
                transient = not is_update and is_transient(_text(body), self.profile, query=text)
                if response.status not in busy_statuses and not transient:
                    return response, body
                found = reply_error(
                    response.status, _lower(response.headers), _text(body), self.profile, self.url, query=text
                )
                if not isinstance(found, StoreUnavailable) and not transient:
                    return response, body  # QLever uses status 429 for a query that ran out of time
                error = found if transient and found else overload_error(response.status, self.url)
                if wait := retry_after(_lower(response.headers)):
                    self._limiter.pause(wait)
                    continue
            pause = backoff.next_pause(self.access.patience, answered_before=self._has_answered)
            if pause is None:
                raise error
            self._closed.wait(pause)

    def _send(self, request: Request, deadline: RequestDeadline) -> Any:
        login = self._login.header(request.method, request.target)
        left = max(0.001, deadline.at - time.monotonic())
        return self._pool.urlopen(
            request.method,
            request.url if self._proxied else request.target,
            body=request.body,
            headers={**request.headers, "Authorization": login} if login else request.headers,
            timeout=Timeout(connect=min(left, self.access.connect_seconds), read=left),
            retries=False,
            redirect=False,
            preload_content=False,
        )

    def _chunks(self, response: Any, deadline: RequestDeadline) -> Iterator[bytes]:
        """Yield the chunks of the body as they arrive.

        A reply that arrives after the deadline is refused even if it looks complete, because a server that knew the
        deadline may have truncated the reply.
        """
        try:
            while True:
                chunk = response.read1(CHUNK_BYTES)
                self._check_active(deadline)
                if not chunk:
                    return
                yield chunk
        except DecodeError as error:
            raise DamagedResult("The server's reply is damaged: it cannot be decompressed.", "Try again.") from error
        except HTTPError as error:
            self._check_active(deadline, error)
            deadline.failures += 1
            raise ConnectionLost(
                f"The connection to {self.url} was lost in the middle of a reply, which is not used.", "Try again."
            ) from error

    def _check_active(self, deadline: RequestDeadline, error: Exception | None = None) -> None:
        """Raise an error if kgqa itself ended the connection, by closing the endpoint or at the deadline."""
        if self._closed.is_set():
            raise StoreUnavailable(f"The connection to {self.url} has been closed.", "Open it again.") from error
        if deadline.stopped:
            raise StoreTimeout("The query was stopped together with its question.") from error
        if deadline.passed or isinstance(error, ReadTimeoutError):
            raise StoreTimeout(
                f"The server at {self.url} did not answer in time.", "Narrow the query, or raise graph.timeout."
            ) from error


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")
