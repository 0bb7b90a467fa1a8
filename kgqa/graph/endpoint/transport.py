"""Sends queries and updates to a SPARQL endpoint: what SPARQL servers need beyond `HttpClient`.

The password is sent only after the endpoint itself has asked for a login.
"""

from __future__ import annotations

import base64
import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import AbstractDigestAuthHandler, HTTPPasswordMgr, parse_http_list, parse_keqv_list
from urllib.request import Request as UrllibRequest

from kgqa.errors import (
    DamagedResult,
    PartialResult,
    SettingsError,
    StoreError,
    StoreTimeout,
    StoreUnavailable,
)
from kgqa.graph.endpoint.options import FIXED_ORDER_MARK, Access, Profile, profile_of
from kgqa.graph.endpoint.replies import Kind, ResultReader, T, decode_rows, error_text, has_sign, reply_error
from kgqa.graph.query.text import render
from kgqa.net.client import HttpClient, Request, Verdict, read_up_to
from kgqa.net.limits import MAX_FAILURES, ConnectionLost, QueueTimeout, RequestDeadline
from kgqa.net.servers import is_loopback
from kgqa.text.words import clean
from kgqa.version import __version__

BUSY_STATUSES = (429, 502, 503)
UPDATE_BUSY_STATUSES = (429, 503)
"""Statuses which mean that an update was not started. After status 502, the update may have been carried out."""
MAX_ERROR_BYTES = 1 << 16
MAX_RESULT_BYTES = 512 << 20
TAIL_BYTES = 16 << 10
"""The end of a broken reply in which a server may say why it ends."""
MAX_GET_CHARS = 1_500
"""The longest query sent by GET, in characters. Escaping may triple the length, and servers refuse URLs of a few
thousand characters with misleading errors."""
_HASHES = {"md5": hashlib.md5, "sha-256": hashlib.sha256}


class Transport:
    """Sends queries and updates to one endpoint. Thread-safe.

    Args:
        profile: the kind of server. detects: whether to detect the kind of server from the first reply instead.

    Attributes:
        profile: the kind of server, as far as known.
        software: the Server header of the last reply.
    """

    def __init__(self, url: str, access: Access, profile: Profile, *, detects: bool = False) -> None:
        self.url = url
        self.access = access
        self.profile = profile
        self.software = ""
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
        self._limit: float | None = None
        self._detected_at = -1
        """The number of failed connections when the server was detected."""

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
    def time_limit(self) -> float | None:
        """The server's own time limit of a query in seconds; infinity for none, None if it is not known.

        After a failed connection it is unknown: a restarted server may have a shorter limit than those that we send,
        and then silently truncate results.
        """
        return self._limit if self._is_detected else None

    @property
    def _is_detected(self) -> bool:
        return self._detected_at == self._client.failures

    def close(self) -> None:
        """Cut active requests; their callers get StoreUnavailable."""
        self._client.close()

    def detect(self, seconds: float) -> None:
        """Detect the kind of server and its time limit, unless they are known. Raises the same errors as `send`."""
        if self._is_detected:
            return
        if not self._detecting.acquire(timeout=seconds):
            raise QueueTimeout(f"{self.url} did not answer the first query in time. Check what keeps the server busy.")
        try:
            with (
                self._client.deadline(time.monotonic() + seconds) as deadline,
                self._client.limiter.slot(self.concurrency, deadline),
            ):
                if self._is_detected:
                    return
                answers: bool | None = True
                if self._detects:
                    answers = self._probe(render("any_triple", view=()), "ASK", deadline, lambda body, headers: True)
                    profile = profile_of(self.url, self.software)
                    self.profile = self.profile if profile.name == "generic" else profile
                limit = None
                if self.profile.limits_query:
                    limit = self._probe(render(self.profile.limits_query), "SELECT", deadline, _read_limit)
                if answers or self.profile.name != "generic":  # otherwise, perhaps a proxy has refused the query
                    self._limit, self._detected_at = limit, self._client.failures
        finally:
            self._detecting.release()

    def _probe(self, query: str, kind: Kind, deadline: RequestDeadline, read: ResultReader[T]) -> T | None:
        """Send a query that some servers refuse; return None then. Raises the errors of `send` if no reply arrives."""
        failures = self._client.failures
        try:
            return self.send(query, kind, deadline, read)[0]
        except StoreError as error:
            deadline.check(error)
            if isinstance(error, ConnectionLost) or self._client.failures > failures:
                raise
            return None

    @contextmanager
    def slot(self, seconds: float) -> Iterator[RequestDeadline]:
        """Detect the kind of server, and wait until a further concurrent request is allowed.

        All this, and the requests sent in the block, take at most `seconds`.

        Raises:
            QueueTimeout, StoreTimeout, StoreUnavailable.
        """
        at = time.monotonic() + seconds
        self.detect(seconds)
        with self._client.deadline(at) as deadline, self._client.limiter.slot(self.concurrency, deadline):
            yield deadline

    def responds(self, seconds: float) -> bool:
        """Return whether the server sent any reply in the last `seconds`, or now replies to a small query.

        The small query is sent once, without waiting for a slot.
        """
        if self._client.limiter.is_paused or (self.concurrency == 1 and not self.has_free_slot):
            return True  # the server asked for a pause, or the request in the only slot will show if it responds
        return self._client.responds(self._request(render("any_triple", view=()), "ASK", seconds), seconds)

    def send(
        self, text: str, kind: Kind, deadline: RequestDeadline, read: ResultReader[T]
    ) -> tuple[T, bytes | bytearray]:
        """Send a query or an update inside the block of `slot`; send a query once more if its reply is damaged.

        An update is not sent again after a lost connection, because the server may have carried it out.

        Args:
            read: reads the result of a query.

        Returns:
            The result, and the body of the reply.

        Raises:
            StoreTimeout, PartialResult, QueryRejected, StoreUnavailable, and the errors of `read`.
        """
        while True:
            response, error = self._reply(text, kind, deadline)
            body = bytearray()
            try:
                if error:
                    raise error
                for chunk in () if kind == "UPDATE" else self._client.chunks(response, deadline):
                    body += chunk
                    if len(body) > MAX_RESULT_BYTES:
                        raise PartialResult(
                            f"The result is larger than {MAX_RESULT_BYTES:,} bytes.", "Narrow the query."
                        )
                return read(body, response.headers), body
            except (PartialResult, StoreUnavailable) as problem:
                if has_sign(body[-TAIL_BYTES:].decode("utf-8", "replace"), self.profile, "timeout_texts"):
                    raise StoreTimeout(
                        "The server ran out of time while sending the result, which is not used.", "Narrow the query."
                    ) from problem
                deadline.failures += isinstance(problem, DamagedResult)
                if deadline.failures >= MAX_FAILURES or not isinstance(problem, (ConnectionLost, DamagedResult)):
                    raise
            finally:
                response.close()  # otherwise the unread part would precede the next reply on this connection

    def _reply(self, text: str, kind: Kind, deadline: RequestDeadline) -> tuple[Any, StoreError | None]:
        """Send a query or an update, and return the final reply with its error; the body of a result is not read.

        Logs in, waits while the server is busy, and sends no longer time limit than the server allows.
        """
        is_update = kind == "UPDATE"
        url = self._update_url if is_update else self.url
        error: StoreError | None = None
        logged_in = False

        def build() -> Request:
            request = self._request(text, kind, deadline.left)
            return replace(request, headers={**request.headers, **self._login.headers(request)})

        def judge(response: Any) -> Verdict:
            nonlocal error, logged_in
            body, profile = b"", self.profile
            self.software = response.headers.get("server", "")
            if is_update or response.status != 200:
                with suppress(StoreError):
                    body = read_up_to(self._client.chunks(response, deadline), MAX_ERROR_BYTES)
                response.close()
            if response.status == 401 and not logged_in:
                logged_in = self._login.accept(response.headers.getlist("WWW-Authenticate"))
                if logged_in:
                    return "again"
            words = body.decode("utf-8", "replace")
            refused = profile.limit_error and response.status >= 400 and re.search(profile.limit_error, words)
            if refused and (seconds := float(refused["seconds"])) != self.time_limit:
                self._limit, self._detected_at = seconds, self._client.failures
                return "again"
            error = reply_error(response.status, response.headers, words, profile, url, query=text, is_update=is_update)
            if not is_update and error and has_sign(error_text(words, text), profile, "retry_texts"):
                return error  # a conflict with another transaction
            # QLever uses status 429 for a query that ran out of time
            is_busy = response.status in (UPDATE_BUSY_STATUSES if is_update else BUSY_STATUSES)
            return error if is_busy and isinstance(error, StoreUnavailable) else "final"

        return self._client.request(build, judge, deadline=deadline, rate=self.rate, is_update=is_update), error

    def _request(self, text: str, kind: Kind, seconds: float) -> Request:
        """Build a request (SPARQL 1.1 Protocol, sections 2.1, 2.2): GET for a short query, else POST with a form.

        Virtuoso hangs if the body of a POST request is the query itself.
        """
        profile, headers, url = self.profile, dict(self._headers), self.url
        if kind == "UPDATE":
            url, form = self._update_url, {"update": text}
        else:
            fixed = profile.fixed_order if text.startswith(FIXED_ORDER_MARK) else ""
            form = {"query": f"{fixed}\n{text}" if fixed else text}
            limit = profile.time_limit(seconds, self.time_limit)
            form |= {profile.timeout_parameter: limit} if limit and profile.timeout_parameter else {}
            headers |= {profile.timeout_header: limit} if limit and profile.timeout_header else {}
            if len(form["query"]) <= MAX_GET_CHARS and text.isascii():
                return Request("GET", f"{url}{'&' if '?' in url else '?'}{urlencode(form)}", headers)
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        return Request("POST", url, headers, urlencode(form).encode())

    @property
    def _update_url(self) -> str:
        parts, path = urlsplit(self.url), self.profile.update_path
        return parts._replace(path=parts.path.rpartition("/")[0] + path).geturl() if path else self.url


def _read_limit(body: bytes | bytearray, _: Mapping[str, str]) -> float | None:
    """Read the reply to a profile's `limits_query`: one row with the seconds; unbound or 0 means no limit."""
    rows = decode_rows(body, max_rows=1, variables=("seconds",)).rows
    text = getattr(rows[0][0], "value", "0").strip() if rows else ""
    return (float(text) or float("inf")) if re.fullmatch(r"[0-9]{1,15}", text) else None


class Login:
    """A user and password for HTTP Basic (RFC 7617) or Digest (RFC 7616). Thread-safe.

    The first request is sent without a login; requests after the server's challenge contain the login.
    """

    def __init__(self, url: str, user: str, password: str) -> None:
        if not user.isprintable() or not password.isprintable() or '"' in user:
            raise SettingsError(
                "The endpoint's login contains control characters, or its user name a quotation mark.",
                "Correct the setting endpoint.user or the environment variable KGQA_ENDPOINT_PASSWORD.",
            )
        self._url, self._user, self._password = url, user, password
        self._lock = threading.Lock()
        self._digest = _Digest()
        self._challenge: dict[str, str] | None = None

    def accept(self, challenges: Sequence[str]) -> bool:
        """Choose a login scheme, Basic or Digest, from the server's WWW-Authenticate headers.

        Returns:
            Whether to repeat the request with a login: False if there is no user or no challenge.

        Raises:
            StoreUnavailable: the server offers neither Basic nor a Digest algorithm that kgqa supports.
        """
        offers = {scheme.lower(): details for scheme, _, details in (each.partition(" ") for each in challenges)}
        if not self._user or not offers:
            return False
        # a parameter without a value would be an error of `parse_keqv_list`
        details = [part for part in parse_http_list(offers.get("digest", "")) if "=" in part]
        digest = {name.lower(): value for name, value in parse_keqv_list(details).items()}
        digest |= {"qop": digest["qop"].replace(" ", "")} if "qop" in digest else {}
        supported = digest.get("algorithm", "MD5").lower() in _HASHES and {"realm", "nonce"} <= digest.keys()
        supported &= "auth" in digest.get("qop", "auth").split(",")
        if not supported and "basic" not in offers:
            raise StoreUnavailable(
                f"{self._url} asks for a kind of login that kgqa does not support.",
                "On the server, enable HTTP Basic, or Digest with MD5 or SHA-256.",
            )
        self._challenge = digest if supported else {}
        return True

    def headers(self, request: Request) -> dict[str, bytes]:
        """Return the header Authorization of a request, in UTF-8; nothing before the server's first challenge."""
        if self._challenge is None:
            return {}
        if not self._challenge:
            return {"Authorization": b"Basic " + base64.b64encode(f"{self._user}:{self._password}".encode())}
        with self._lock:  # the library counts the requests
            self._digest.passwd.add_password(self._challenge["realm"], request.url, self._user, self._password)
            sent = UrllibRequest(request.url, method=request.method)
            return {"Authorization": f"Digest {self._digest.get_authorization(sent, self._challenge)}".encode()}


class _Digest(AbstractDigestAuthHandler):
    """The library's computation, with names in UTF-8 and with SHA-256."""

    passwd: HTTPPasswordMgr

    def get_algorithm_impls(self, algorithm: str) -> tuple[Callable[[str], str], Callable[[str, str], str]]:
        def digest(text: str) -> str:
            return _HASHES[algorithm.lower()](text.encode()).hexdigest()

        return digest, lambda secret, data: digest(f"{secret}:{data}")
