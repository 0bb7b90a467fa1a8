"""HTTP to a SPARQL endpoint: SPARQLWrapper words the requests, urllib3 keeps the connections, and what is between them
waits, tries again and gives up in time.

SPARQLWrapper by itself opens a connection a request and knows neither 429 nor a limit on the whole of a request.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from kgqa import __version__
from kgqa.errors import PartialResult, StoreTimeout, StoreUnavailable
from kgqa.graph.profiles import Profile
from kgqa.graph.verdict import judge
from kgqa.words import clean

PART_BYTES = 1 << 16
MAX_ERROR_BYTES = 1 << 16
LONGEST_GET = 1_500
"""Characters of a URL; servers refuse longer ones in misleading ways from about 4,000 on."""
LOOPBACK = ("localhost", "::1")
RETRIED = (429, 502, 503)
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 2.0


@dataclass(frozen=True)
class Access:
    """How an endpoint is spoken to. `patience`: seconds to keep trying where nothing answers."""

    user: str = ""
    password: str = field(default="", repr=False)
    contact: str = ""
    concurrency: int | None = None
    rate: float | None = None
    connect_seconds: float = 5.0
    patience: float = 10.0


class Gate:
    """The limits of one endpoint, shared by all stores of this process that speak to it."""

    _gates: dict[str, Gate] = {}
    _guard = threading.Lock()

    def __init__(self, concurrency: int, rate: float) -> None:
        self._slots = threading.BoundedSemaphore(concurrency)
        self._pause = 1.0 / rate if rate else 0.0
        self._lock = threading.Lock()
        self._next = 0.0

    @classmethod
    def of(cls, url: str, concurrency: int, rate: float) -> Gate:
        with cls._guard:
            return cls._gates.setdefault(f"{url} {concurrency} {rate}", cls(concurrency, rate))

    def hold_off(self, seconds: float) -> None:
        """Nobody sends anything for so long: the server asked for it."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)

    @contextmanager
    def passing(self, deadline: float) -> Iterator[None]:
        """Wait for a place, at most until `deadline` (time.monotonic). Raises StoreTimeout."""
        if not self._slots.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise StoreTimeout("All places at the server were taken for as long as this query may take.")
        try:
            with self._lock:
                turn = max(self._next, now := time.monotonic())
                if turn < deadline:
                    self._next = max(self._next, turn + self._pause)
            if turn >= deadline:
                raise StoreTimeout("The server asked to be left alone for longer than this query may take.")
            if turn > now:
                time.sleep(turn - now)
            yield
        finally:
            self._slots.release()


@dataclass
class Reply:
    """What came back, its body still to be read through `parts`."""

    status: int
    headers: dict[str, str]
    parts: Iterator[bytes]


class Transport:
    """Sends queries to one endpoint. Thread-safe.

    Raises:
        StoreUnavailable: nobody answers there, or only with something that is not SPARQL.
    """

    def __init__(self, url: str, access: Access, profile: Profile) -> None:
        self.url = url
        self.access = access
        self.profile = profile
        self._pool = _pool(url, access, self.concurrency)
        self._local = threading.local()
        self._host = urlsplit(url).hostname or ""
        self._headers = {"User-Agent": _agent(access.contact)}
        if not (self._host in LOOPBACK or self._host.startswith("127.")):
            self._headers["Accept-Encoding"] = "gzip"  # on one machine packing costs more than it saves

    @property
    def concurrency(self) -> int:
        return self.access.concurrency or self.profile.concurrency

    @property
    def gate(self) -> Gate:
        rate = self.profile.rate if self.access.rate is None else self.access.rate
        return Gate.of(self.url, self.concurrency, rate)

    def close(self) -> None:
        self._pool.clear()

    @contextmanager
    def query(self, text: str, *, asks: bool, seconds: float) -> Iterator[Reply]:
        """Send a SELECT or ASK query; the reply has to be read inside.

        Args:
            seconds: for all of it: waiting for a place, connecting, trying again, reading.

        Raises:
            StoreTimeout, StoreUnavailable, PartialResult (the connection broke off while reading).
        """
        from urllib3.util import is_fp_closed

        deadline = time.monotonic() + seconds
        wrapper = self._wrapper()
        wrapper.say(text, asks, self.profile, seconds)
        with self.gate.passing(deadline):
            response = self._answered(wrapper.request(), deadline)
            try:
                yield Reply(
                    response.status, {k.lower(): v for k, v in response.headers.items()}, _parts(response, deadline)
                )
            except BaseException:
                response.close()  # what has not been read would be taken for the next reply
                raise
            if not is_fp_closed(response):
                response.close()

    def update(self, text: str, profile: Profile, seconds: float) -> None:
        """Send an update, once: whether one that broke off was carried out is not known.

        Raises:
            StoreTimeout, StoreUnavailable, QueryRejected.
        """
        from urllib.error import HTTPError, URLError
        from urllib.request import (
            HTTPBasicAuthHandler,
            HTTPDigestAuthHandler,
            HTTPPasswordMgrWithDefaultRealm,
            build_opener,
        )

        address = self.url
        if profile.update_path:
            address = urlsplit(self.url)._replace(path=profile.update_path).geturl()
        wrapper = _wrapper_class()(self.url, Access(), self._headers["User-Agent"])
        wrapper.say_update(text, address)
        passwords = HTTPPasswordMgrWithDefaultRealm()
        passwords.add_password(None, address, self.access.user, self.access.password)
        login = HTTPDigestAuthHandler if profile.update_login == "digest" else HTTPBasicAuthHandler
        try:
            with self.gate.passing(time.monotonic() + seconds):
                with build_opener(login(passwords)).open(wrapper.request(), timeout=seconds) as response:
                    response.read(MAX_ERROR_BYTES)
        except HTTPError as error:
            body = error.read(MAX_ERROR_BYTES).decode("utf-8", "replace")
            headers = {name.lower(): value for name, value in error.headers.items()}
            raise judge(error.code, headers, body, profile, address) or StoreUnavailable(str(error)) from error
        except TimeoutError as error:
            raise StoreTimeout(f"The server did not finish the update in {seconds:g} s.") from error
        except (URLError, OSError) as error:
            if isinstance(getattr(error, "reason", None), TimeoutError):
                raise StoreTimeout(f"The server did not finish the update in {seconds:g} s.") from error
            raise StoreUnavailable(
                f"The update did not reach the end at {address} ({type(error).__name__}). Look at the graph before you "
                "send it again."
            ) from error
        except ValueError as error:  # the library's word for a way of logging in that it does not know
            raise StoreUnavailable(
                f"{address} asks for another way of logging in than {profile.update_login}."
            ) from error

    def _wrapper(self) -> Any:
        """One a thread: SPARQLWrapper keeps the query in itself."""
        wrapper = getattr(self._local, "wrapper", None)
        if wrapper is None:
            wrapper = self._local.wrapper = _wrapper_class()(self.url, self.access, self._headers["User-Agent"])
        return wrapper

    def _answered(self, request: Any, deadline: float) -> Any:
        """The response, after as many tries as patience allows."""
        from urllib3.exceptions import HTTPError

        give_up = min(deadline, time.monotonic() + self.access.patience)
        pause = FIRST_PAUSE
        while True:
            try:
                response = self._once(request, deadline)
            except HTTPError as error:
                if isinstance(error, _read_timeouts()) or time.monotonic() >= deadline:
                    raise StoreTimeout(f"The server at {self.url} did not answer in time.") from error
                failure, wait = self._unreachable(error), 0.0
                if not _passing(error):
                    raise failure from error
            else:
                if response.status not in RETRIED:
                    return response
                failure, wait = self._turned_away(response)
                response.close()
            now = time.monotonic()
            if wait:
                self.gate.hold_off(wait)
                give_up = max(give_up, min(deadline, now + wait + FIRST_PAUSE))
            pause_now = wait or pause * random.uniform(0.7, 1.3)
            if now + pause_now >= give_up:
                raise failure
            time.sleep(pause_now)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _once(self, request: Any, deadline: float) -> Any:
        from urllib3 import Timeout

        left = max(0.001, deadline - time.monotonic())
        return self._pool.request(
            request.get_method(),
            request.full_url,
            body=request.data,
            headers={**request.headers, **self._headers},
            timeout=Timeout(connect=min(left, self.access.connect_seconds), read=left),
            retries=False,
            redirect=False,
            preload_content=False,
        )

    def _unreachable(self, error: Exception) -> StoreUnavailable:
        from urllib3.exceptions import SSLError

        if isinstance(error, SSLError):
            return StoreUnavailable(
                f"The certificate of {self.url} is not accepted ({clean(str(error))[:200]}). "
                "If it is your own server, name its authority in SSL_CERT_FILE."
            )
        return StoreUnavailable(
            f"Nothing answers at {self.url}. Is the server running (make virtuoso-status), and is this its SPARQL address?"
        )

    def _turned_away(self, response: Any) -> tuple[StoreUnavailable, float]:
        wait = _retry_after(response.headers.get("Retry-After", ""))
        what = "too many requests" if response.status == 429 else "it cannot answer now"
        after = f" It asks to be left alone for {wait:.0f} s." if wait else ""
        return StoreUnavailable(
            f"{self.url} says {what} (HTTP {response.status}).{after} "
            "Try again later, or with less at once: endpoint.concurrency, endpoint.rate."
        ), wait


def _pool(url: str, access: Access, concurrency: int) -> Any:
    from urllib3 import PoolManager, ProxyManager

    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    options = {"maxsize": concurrency, "block": False, "num_pools": 2}
    if proxy and not proxy_bypass(parts.hostname or "") and not (parts.hostname or "").startswith("127."):
        return ProxyManager(proxy, **options)
    return PoolManager(**options)


def _agent(contact: str) -> str:
    about = f" ({clean(contact)[:200]})" if contact else ""
    return f"kgqa/{__version__}{about}".encode("ascii", "replace").decode()


def _wrapper_class() -> type:
    from SPARQLWrapper import BASIC, GET, JSON, POST, SPARQLWrapper

    class Wrapper(SPARQLWrapper):
        """SPARQLWrapper, told what kind of query it has instead of searching the text for it (most of its time)."""

        def __init__(self, url: str, access: Access, agent: str) -> None:
            super().__init__(url, returnFormat=JSON, agent=agent)
            self.setOnlyConneg(True)
            if access.user:
                self.setHTTPAuth(BASIC)
                self.setCredentials(access.user, access.password)

        def say(self, text: str, asks: bool, profile: Profile, seconds: float) -> None:
            self.queryString, self.queryType = text, "ASK" if asks else "SELECT"
            self.setMethod(GET if len(text) <= LONGEST_GET and text.isascii() else POST)
            if profile.timeout_parameter:
                self.parameters = {profile.timeout_parameter: [profile.time_limit(seconds)]}
            if profile.timeout_header:
                self.customHttpHeaders = {profile.timeout_header: profile.time_limit(seconds)}

        def say_update(self, text: str, address: str) -> None:
            self.queryString, self.queryType, self.updateEndpoint = text, "INSERT", address
            self.setMethod(POST)

        def request(self) -> Any:
            return self._createRequest()

    return Wrapper


def _parts(response: Any, deadline: float) -> Iterator[bytes]:
    """The body as it comes. A body that trickles is ended at the deadline, not at each silence."""
    from urllib3.exceptions import HTTPError

    try:
        while True:
            part = response.read1(PART_BYTES)
            if not part:
                if not response.closed and getattr(response, "length_remaining", 0):
                    raise PartialResult("The server's answer breaks off before its announced end. Try again.")
                return
            if time.monotonic() > deadline:
                raise StoreTimeout("The server was still sending when the time was up.")
            yield part
    except HTTPError as error:
        if isinstance(error, _read_timeouts()):
            raise StoreTimeout("The server stopped sending in the middle of its answer.") from error
        raise PartialResult(f"The connection broke off in the middle of an answer ({type(error).__name__}).") from error


def _read_timeouts() -> tuple[type, ...]:
    from urllib3.exceptions import ReadTimeoutError

    return (ReadTimeoutError,)


def _passing(error: Exception) -> bool:
    """Whether it may be different a moment later: a certificate or a malformed address will not be."""
    from urllib3.exceptions import LocationValueError, SSLError

    return not isinstance(error, (SSLError, LocationValueError))


def _retry_after(value: str) -> float:
    """Seconds, from a number or a date; 0 where there is none that is understood."""
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0
