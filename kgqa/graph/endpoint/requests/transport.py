"""HTTP to a SPARQL endpoint: SPARQLWrapper words the requests, urllib3 keeps the connections, and what is between them
waits, logs in, tries again and gives up in time.

SPARQLWrapper by itself opens a connection a request and knows neither 429 nor a limit on the whole of a request.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from kgqa.errors import DamagedResult, StoreTimeout, StoreUnavailable
from kgqa.graph.endpoint.profiles import Profile, profile_of
from kgqa.graph.endpoint.replies.reply_errors import judge, judge_update, may_pass
from kgqa.graph.endpoint.requests.connection_errors import failure_of, never_sent, turned_away, worth_another_try
from kgqa.graph.endpoint.requests.deadlines import Watch, watched_pools, watching
from kgqa.graph.endpoint.requests.limiter import Gate, NoPlace
from kgqa.graph.endpoint.requests.login import Login
from kgqa.graph.endpoint.requests.request_builder import Request, Requests
from kgqa.graph.endpoint.server_limits import UNKNOWN, ServerLimits, read_limits, refused_limit
from kgqa.graph.query.templates import render

PART_BYTES = 1 << 16
MAX_ERROR_BYTES = 1 << 16
IDLE_CONNECTIONS = 32
LOOPBACK = ("localhost", "::1")
BUSY = (429, 502, 503)
BUSY_BEFORE_WORK = (429, 503)
GONE = (502, 503, 504)
"""Replies of something in front of a server that is not there."""
NOT_ITSELF = (401, 403, 404, 429)
"""Replies that may come from something in front of the server, as those of 500 and more may."""
MOST_BROKEN = 2
"""Times a query is sent whose connection breaks or whose answer is damaged: it may be the query that takes the server
down."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 2.0
FIRST_CONTACT_SECONDS = 2.0
"""Patience with a server that has not answered yet: its address is more likely wrong than the server away."""


@dataclass(frozen=True)
class Access:
    """How an endpoint is spoken to.

    `contact` goes into User-Agent. `concurrency` and `rate`: requests at once and a second, None for what its profile
    says. `connect_seconds` may pass until it takes a connection; `patience` are the seconds to keep trying where nothing
    answers.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    contact: str = ""
    concurrency: int | None = None
    rate: float | None = None
    connect_seconds: float = 5.0
    patience: float = 10.0


@dataclass
class Reply:
    """What came back: headers by lower-case name, and the body, still to be read through `parts`."""

    status: int
    headers: dict[str, str]
    parts: Iterator[bytes]


class BrokenOff(StoreUnavailable):
    """The connection ended in the middle of an answer. Neither query nor graph is to blame for that, so it must not be
    taken for a result that is too large: another try may bring all of it.
    """


class Transport:
    """Sends queries and updates to one endpoint. Thread-safe.

    Args:
        profile: what kind of server it is. detects: whether its first reply may say that it is of another kind.

    Attributes:
        profile: what kind of server it is taken for by now. limits: what it said of its own limits.
    """

    def __init__(self, url: str, access: Access, profile: Profile, *, detects: bool = False) -> None:
        self.url = url
        self.access = access
        self.profile = profile
        self.limits: ServerLimits = UNKNOWN
        host = urlsplit(url).hostname or ""
        local = host in LOOPBACK or host.startswith("127.")
        # on one machine packing costs more than it saves
        self._requests = Requests(url, contact=access.contact, packed=not local)
        self._pool, self._proxied = _pool(url, local=local)
        self._login = Login(url, access.user, access.password)
        self._gate = Gate.of(url)
        self._detects = detects
        self._meeting = threading.Lock()
        self._met = self._answers = False
        self._replied = 0.0
        self._closed = threading.Event()
        self._watches: set[Watch] = set()

    @property
    def concurrency(self) -> int:
        return self.access.concurrency or self.profile.concurrency

    @property
    def has_place(self) -> bool:
        return self._gate.has_place(self.concurrency)

    @property
    def rate(self) -> float:
        return self.profile.rate if self.access.rate is None else self.access.rate

    def close(self) -> None:
        """End what is under way: whoever waits gets StoreUnavailable."""
        self._closed.set()
        self._gate.wake()
        for watch in list(self._watches):
            watch.end()
        self._pool.clear() if self._proxied else self._pool.close()

    def meet(self, seconds: float) -> None:
        """Find out what kind of server it is and what limits it has, unless that is known. Raises as `query` does."""
        if self._met:
            return
        if not self._meeting.acquire(timeout=seconds):
            raise NoPlace(f"{self.url} did not say in time what it is. See what keeps it busy.")
        deadline = time.monotonic() + seconds
        try:
            if not self._met and self._detects:
                with self._asked(render("any_triple", view=()), asks=True, deadline=deadline) as reply:
                    found = profile_of(self.url, reply.headers.get("server", ""))
                    if found.name != "generic" or (reply.status < 500 and reply.status not in NOT_ITSELF):
                        self.profile, self._detects = found, False
            if not self._met and self.profile.limits_query:
                with self._asked(render(self.profile.limits_query), asks=False, deadline=deadline) as reply:
                    if reply.status == 200:  # otherwise it does not tell everybody
                        self.limits = read_limits(reply.parts)
            self._met = not self._detects
        finally:
            self._meeting.release()

    @contextmanager
    def query(self, text: str, *, asks: bool, seconds: float) -> Iterator[Reply]:
        """Send a SELECT or ASK query and give the reply, whatever it says; it has to be read inside.

        Args:
            seconds: for all of it: waiting for a place, connecting, trying again, reading.

        Raises:
            StoreTimeout, StoreUnavailable; BrokenOff and DamagedResult while reading.
        """
        deadline = time.monotonic() + seconds
        self.meet(seconds)
        with self._asked(text, asks=asks, deadline=deadline) as reply:
            yield reply

    @contextmanager
    def _asked(self, text: str, *, asks: bool, deadline: float) -> Iterator[Reply]:
        with self.place(deadline) as watch, self.reply(text, asks=asks, watch=watch) as reply:
            yield reply

    @contextmanager
    def place(self, deadline: float) -> Iterator[Watch]:
        """Wait for a place among the requests that may be under way; what is sent in the block is ended at `deadline`.

        Raises:
            NoPlace, StoreUnavailable.
        """
        with self._gate.place(self.concurrency, deadline, self._closed), watching(deadline) as watch:
            self._watches.add(watch)
            try:
                yield watch
            finally:
                self._watches.discard(watch)

    @contextmanager
    def reply(self, text: str, *, asks: bool, watch: Watch) -> Iterator[Reply]:
        """Send a query from a place, as `query` does."""

        def worded() -> Request:
            left = watch.deadline - time.monotonic()
            limit = left if self.limits.may_be_told(left, self.profile) else None
            return self._requests.query(text, asks=asks, profile=self.profile, limit=limit)

        response, said = self._answered(worded, watch, text)
        try:
            parts = self._parts(response, watch) if response.status == 200 else iter([said])
            yield Reply(response.status, _lower(response.headers), parts)
        finally:
            if not response.closed:
                response.close()  # what has not been read would be taken for the next reply

    def update(self, text: str, *, seconds: float) -> None:
        """Send an update. One that breaks off is not sent again: whether it was carried out is not known.

        Raises:
            StoreTimeout, StoreUnavailable, QueryRejected.
        """
        deadline = time.monotonic() + seconds
        self.meet(seconds)
        url = self.url
        if self.profile.update_path:
            parts = urlsplit(url)
            url = parts._replace(path=parts.path.rpartition("/")[0] + self.profile.update_path).geturl()
        with self.place(deadline) as watch:
            response, said = self._answered(lambda: self._requests.update(text, url=url), watch, text, is_update=True)
            response.close()
        error = judge_update(response.status, _lower(response.headers), _text(said), self.profile, url, query=text)
        if error:
            raise error

    def responds(self, seconds: float) -> bool:
        """Whether the server has replied to anything in the last `seconds`, or does so now to a small query: one try,
        beside the places of queries. One that answers one query after the other may have no time for it.
        """
        from http.client import HTTPException

        from urllib3.exceptions import HTTPError

        if self._gate.held or (self.concurrency == 1 and not self.has_place):
            return True  # it wants to be left alone, or takes one request at a time and has one: that one will tell
        started = time.monotonic()
        if self._replied > started - seconds:
            return True
        with watching(started + seconds) as watch:
            text = render("any_triple", view=())
            try:
                response = self._sent(self._requests.query(text, asks=True, profile=self.profile, limit=None), watch)
            except (HTTPError, HTTPException, OSError):
                return self._replied > started
            response.close()
            return response.status not in GONE

    # --- one request, as often as it takes

    def _answered(
        self, worded: Callable[[], Request], watch: Watch, text: str, *, is_update: bool = False
    ) -> tuple[Any, bytes]:
        """The response, after as many tries as patience allows, and the beginning of what it says if that is no result."""
        from http.client import HTTPException

        from urllib3.exceptions import HTTPError

        busy = BUSY_BEFORE_WORK if is_update else BUSY
        give_up, pause, logged_in = 0.0, FIRST_PAUSE, False
        while True:
            self._gate.turn(self.rate, watch.deadline, self._closed)
            try:
                response = self._sent(worded(), watch)
            except (HTTPError, HTTPException, OSError) as error:
                self._refuse_ended(watch, error)
                # it may come back with other limits, and told a longer one than its own it would cut results
                self.limits, self._met = UNKNOWN, False
                failure = failure_of(error, self.url, is_update=is_update)
                watch.broken += not never_sent(error)
                if watch.broken >= MOST_BROKEN or not worth_another_try(error, is_update=is_update):
                    raise failure from error
            else:
                self._answers = True
                if response.status not in GONE:
                    self._replied = time.monotonic()
                said = b"" if response.status == 200 and not is_update else _beginning(response)
                if response.status == 401 and not logged_in:
                    logged_in = self._login.take(response.headers.getlist("WWW-Authenticate"))
                    if logged_in:
                        continue
                seconds = refused_limit(self.profile, response.status, said)
                if seconds is not None and seconds != self.limits.seconds:
                    self.limits = ServerLimits(seconds, self.limits.rows)
                    continue
                passes = not is_update and may_pass(_text(said), self.profile, query=text)
                if response.status not in busy and not passes:
                    return response, said
                verdict = judge(
                    response.status, _lower(response.headers), _text(said), self.profile, self.url, query=text
                )
                if not isinstance(verdict, StoreUnavailable) and not passes:
                    return response, said  # QLever says 429 of a query that ran out of time
                wait = _retry_after(response.headers)
                failure = verdict if passes and verdict else turned_away(response.status, self.url)
                if wait:
                    self._gate.hold_off(wait)  # for all that speak to this server, and so for us
                    continue
            now = time.monotonic()
            patience = self.access.patience if self._answers else min(self.access.patience, FIRST_CONTACT_SECONDS)
            give_up = give_up or now + patience
            pause_now = pause * random.uniform(0.7, 1.3)
            if now + pause_now >= min(give_up, watch.deadline):
                raise failure
            self._closed.wait(pause_now)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _sent(self, request: Request, watch: Watch) -> Any:
        from urllib3 import Timeout

        login = self._login.header(request.method, request.target)
        left = max(0.001, watch.deadline - time.monotonic())
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

    def _parts(self, response: Any, watch: Watch) -> Iterator[bytes]:
        """The body as it comes. What arrives after the deadline is not trusted even if it looks whole: a server that
        was told the deadline may have cut it.
        """
        from urllib3.exceptions import DecodeError, HTTPError

        try:
            while True:
                part = response.read1(PART_BYTES)
                self._refuse_ended(watch)
                if not part:
                    return
                yield part
        except DecodeError as error:
            raise DamagedResult("The server's answer cannot be unpacked: it is damaged. Try again.") from error
        except HTTPError as error:
            self._refuse_ended(watch, error)
            watch.broken += 1
            raise BrokenOff(
                f"The connection to {self.url} broke off in the middle of an answer. Nothing of it is used. Try again."
            ) from error

    def _refuse_ended(self, watch: Watch, error: Exception | None = None) -> None:
        """Where it is we who end a connection, say so."""
        from urllib3.exceptions import ReadTimeoutError

        if self._closed.is_set():
            raise StoreUnavailable(f"The connection to {self.url} has been closed.") from error
        if watch.late or isinstance(error, ReadTimeoutError):
            raise StoreTimeout(
                f"The server at {self.url} did not answer in time. Ask for less, or give it more: graph.timeout."
            ) from error


def _pool(url: str, *, local: bool) -> tuple[Any, bool]:
    """The pool of connections, or what stands for it where a proxy is on the way, and whether that is so."""
    from urllib.request import getproxies, proxy_bypass

    from urllib3 import PoolManager, ProxyManager

    parts = urlsplit(url)
    options = {"maxsize": IDLE_CONNECTIONS, "block": False}
    proxy = None if local or proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)
    manager = ProxyManager(proxy, proxy_headers=_proxy_login(proxy), **options) if proxy else PoolManager(**options)
    manager.pool_classes_by_scheme = watched_pools()
    return (manager, True) if proxy else (manager.connection_from_url(url), False)


def _proxy_login(proxy: str) -> dict[str, str]:
    from urllib3.util import make_headers

    parts = urlsplit(proxy)
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return make_headers(proxy_basic_auth=pair) if parts.username else {}


def _beginning(response: Any) -> bytes:
    """As much of the body as comes, at most MAX_ERROR_BYTES: it is there to be quoted."""
    from urllib3.exceptions import HTTPError

    data = b""
    try:
        while len(data) < MAX_ERROR_BYTES and (part := response.read1(PART_BYTES)):
            data += part
    except HTTPError:
        pass
    if not response.closed:
        response.close()
    return data[:MAX_ERROR_BYTES]


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")


def _retry_after(headers: Any) -> float:
    """Seconds, from a number or a date (RFC 9110, section 10.2.3); 0 where there is none that is understood."""
    from email.utils import parsedate_to_datetime

    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]+", value):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0
