"""Sends queries and updates to a SPARQL endpoint: what SPARQL servers need beyond `HttpClient`."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from typing import Literal as OneOf
from urllib.parse import urlencode, urlsplit

from kgqa.errors import StoreError, StoreUnavailable
from kgqa.graph.endpoint.access import Access, Login
from kgqa.graph.endpoint.profiles import UNKNOWN, Profile, ServerLimits, limit_in_error, profile_of, read_limits
from kgqa.graph.endpoint.reply_errors import is_transient, reply_error, update_error
from kgqa.graph.query.templates import render
from kgqa.net.client import HttpClient, Request, Verdict, read_up_to
from kgqa.net.limits import QueueTimeout, RequestDeadline
from kgqa.net.servers import is_loopback
from kgqa.text.words import clean
from kgqa.version import __version__

BUSY_STATUSES = (429, 502, 503)
UPDATE_BUSY_STATUSES = (429, 503)
"""Statuses which mean that an update was not started. After status 502, the update may have been carried out."""
FOREIGN_STATUSES = (401, 403, 404, 429)
"""Statuses that may come from a proxy in front of the server, in addition to statuses of 500 and above."""
MAX_ERROR_BYTES = 1 << 16
MAX_GET_CHARS = 1_500
"""The longest query sent by GET, in characters. Escaping may triple the length, and servers refuse URLs of a few
thousand characters with misleading errors."""
Kind = OneOf["SELECT", "ASK", "UPDATE"]


@dataclass
class Reply:
    """The reply to a request: status, headers by lower-case name, and the body, to be read from `chunks`."""

    status: int
    headers: dict[str, str]
    chunks: Iterator[bytes]


class Transport:
    """Sends queries and updates to one endpoint. Thread-safe.

    Args:
        profile: the kind of server. detects: whether to detect the kind of server from the first reply instead.

    Attributes:
        profile: the kind of server, as far as known.
    """

    def __init__(self, url: str, access: Access, profile: Profile, *, detects: bool = False) -> None:
        self.url = url
        self.access = access
        self.profile = profile
        self._client = HttpClient(url, patience=access.patience)
        about = f" ({clean(access.contact)[:200]})" if access.contact else ""
        self._headers = {
            "Accept": "application/sparql-results+json, application/json;q=0.9",
            "User-Agent": f"kgqa/{__version__}{about}".encode("ascii", "replace").decode(),
            # on the same machine, compression takes more time than it saves
            **({} if is_loopback(url) else {"Accept-Encoding": "gzip"}),
        }
        self._login = Login(url, access.user, access.password)
        self._detects = detects
        self._detecting = threading.Lock()
        self._limits: tuple[int, ServerLimits] | None = None

    @property
    def concurrency(self) -> int:
        """The largest number of concurrent requests."""
        return self.access.concurrency or self.profile.concurrency

    @property
    def rate(self) -> float:
        """Requests per second; 0 for no limit."""
        return self.profile.rate if self.access.rate is None else self.access.rate

    @property
    def has_free_slot(self) -> bool:
        """Whether a request would be sent without waiting for others."""
        return self._client.limiter.has_free_slot(self.concurrency)

    @property
    def limits(self) -> ServerLimits:
        """The server's own limits, as far as known.

        After a failed connection they are unknown: a restarted server may have shorter limits than those that we send,
        and then silently truncate results.
        """
        return self._limits[1] if self._limits and self._limits[0] == self._client.failures else UNKNOWN

    @property
    def _detected(self) -> bool:
        return not self._detects and self._limits is not None and self._limits[0] == self._client.failures

    def close(self) -> None:
        """Cut active requests; their callers get StoreUnavailable."""
        self._client.close()

    def detect(self, seconds: float) -> None:
        """Detect the kind of server and its limits, unless they are known. Raises the same errors as `reply`."""
        if self._detected:
            return
        if not self._detecting.acquire(timeout=seconds):
            raise QueueTimeout(f"{self.url} did not answer the first query in time. Check what keeps the server busy.")
        try:
            with self.slot(time.monotonic() + seconds) as deadline:
                if not self._detected and self._detects:
                    with self.reply(render("any_triple", view=()), kind="ASK", deadline=deadline) as reply:
                        profile = profile_of(self.url, reply.headers.get("server", ""))
                        if profile.name != "generic" or (reply.status < 500 and reply.status not in FOREIGN_STATUSES):
                            self.profile, self._detects = profile, False
                if not self._detected and not self._detects:
                    limits = UNKNOWN
                    if self.profile.limits_query:
                        query = render(self.profile.limits_query)
                        with self.reply(query, kind="SELECT", deadline=deadline) as reply:
                            if reply.status == 200:  # some servers reject this query
                                limits = read_limits(b"".join(reply.chunks))
                    self._limits = (self._client.failures, limits)
        finally:
            self._detecting.release()

    @contextmanager
    def slot(self, at: float) -> Iterator[RequestDeadline]:
        """Wait until a further concurrent request is allowed; requests sent in the block end at the deadline `at`.

        Raises:
            QueueTimeout, StoreTimeout, StoreUnavailable.
        """
        with self._client.deadline(at) as deadline, self._client.limiter.slot(self.concurrency, deadline):
            yield deadline

    def update(self, text: str, *, seconds: float) -> None:
        """Send an update. It is not sent again after a lost connection, because the server may have carried it out.

        Raises:
            StoreTimeout, StoreUnavailable, QueryRejected.
        """
        at = time.monotonic() + seconds
        self.detect(seconds)
        with self.slot(at) as deadline, self.reply(text, kind="UPDATE", deadline=deadline) as reply:
            body = b"".join(reply.chunks).decode("utf-8", "replace")
        if error := update_error(reply.status, reply.headers, body, self.profile, self._update_url, query=text):
            raise error

    @property
    def _update_url(self) -> str:
        parts, path = urlsplit(self.url), self.profile.update_path
        return parts._replace(path=parts.path.rpartition("/")[0] + path).geturl() if path else self.url

    def responds(self, seconds: float) -> bool:
        """Return whether the server sent any reply in the last `seconds`, or now replies to a small query.

        The small query is sent once, without waiting for a slot.
        """
        if self._client.limiter.is_paused or (self.concurrency == 1 and not self.has_free_slot):
            return True  # the server asked for a pause, or the request in the only slot will show if it responds
        query = render("any_triple", view=())
        return self._client.responds(self._request(query, "ASK", None), seconds)

    def _request(self, text: str, kind: Kind, limit: float | None) -> Request:
        """Build a request (SPARQL 1.1 Protocol, sections 2.1, 2.2): GET for a short query, else POST with a form.

        Virtuoso hangs if the body of a POST request is the query itself.

        Args:
            limit: the time limit to send, in seconds; None to send no limit.
        """
        profile, headers = self.profile, dict(self._headers)
        if kind == "UPDATE":
            url, form = self._update_url, {"update": text}
        else:
            url, form = self.url, {"query": profile.prepared(text)}
            if limit is not None and profile.timeout_parameter:
                form[profile.timeout_parameter] = profile.time_limit(limit)
            if limit is not None and profile.timeout_header:
                headers[profile.timeout_header] = profile.time_limit(limit)
            if len(form["query"]) <= MAX_GET_CHARS and text.isascii():
                return Request("GET", f"{url}{'&' if '?' in url else '?'}{urlencode(form)}", headers)
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        return Request("POST", url, headers, urlencode(form).encode())

    @contextmanager
    def reply(self, text: str, *, kind: Kind, deadline: RequestDeadline) -> Iterator[Reply]:
        """Send a query or an update inside the block of `slot`, and yield the final reply, whatever its status.

        Logs in, waits while the server is busy, and sends no longer time limit than the server allows. Read the reply
        inside the block.

        Raises:
            StoreTimeout, StoreUnavailable; ConnectionLost and DamagedResult while reading.
        """
        is_update = kind == "UPDATE"
        busy_statuses = UPDATE_BUSY_STATUSES if is_update else BUSY_STATUSES
        logged_in, body = False, b""

        def build() -> Request:
            limit = deadline.left if self.limits.permit(deadline.left, self.profile) else None
            built = self._request(text, kind, limit)
            return replace(built, headers={**built.headers, **self._login.headers(built)})

        def judge(response: Any) -> Verdict:
            nonlocal logged_in, body
            if response.status == 200 and not is_update:
                return "final"
            body = b""
            with suppress(StoreError):
                body = read_up_to(self._client.chunks(response, deadline), MAX_ERROR_BYTES)
            response.close()
            if response.status == 401 and not logged_in:
                logged_in = self._login.accept(response.headers.getlist("WWW-Authenticate"))
                if logged_in:
                    return "again"
            seconds = limit_in_error(self.profile, response.status, body)
            if seconds is not None and seconds != self.limits.seconds:
                self._limits = (self._client.failures, ServerLimits(seconds, self.limits.rows))
                return "again"
            words = body.decode("utf-8", "replace")
            transient = not is_update and is_transient(words, self.profile, query=text)
            if response.status not in busy_statuses and not transient:
                return "final"
            error = reply_error(response.status, _lower(response), words, self.profile, self.url, query=text)
            if transient and error:
                return error
            if not isinstance(error, StoreUnavailable):
                return "final"  # QLever uses status 429 for a query that ran out of time
            what = "received too many requests" if response.status == 429 else "cannot answer now"
            return StoreUnavailable(
                f"{self.url} {what} (HTTP {response.status}).",
                "Try again later, or lower endpoint.concurrency or endpoint.rate.",
            )

        response = self._client.request(build, judge, deadline=deadline, rate=self.rate, is_update=is_update)
        try:
            is_result = response.status == 200 and not is_update
            chunks = self._client.chunks(response, deadline) if is_result else iter([body])
            yield Reply(response.status, _lower(response), chunks)
        finally:
            response.close()  # otherwise the unread part would precede the next reply on this connection


def _lower(response: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}
