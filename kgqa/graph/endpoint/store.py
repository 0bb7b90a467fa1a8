"""A graph behind a SPARQL 1.1 endpoint: Virtuoso, QLever, Blazegraph, Wikidata's public service, any other."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from kgqa.errors import DamagedResult, PartialResult, QueryRejected, SettingsError, StoreTimeout, StoreUnavailable
from kgqa.graph.endpoint.fingerprint import RemoteFingerprint
from kgqa.graph.endpoint.limits import ServerLimits
from kgqa.graph.endpoint.loading import load_by_updates
from kgqa.graph.endpoint.profiles import Profile, profile_named, profile_of
from kgqa.graph.endpoint.replies.json_results import decode_boolean, decode_rows
from kgqa.graph.endpoint.replies.verdict import broken_result, check_whole, judge
from kgqa.graph.endpoint.requests.gate import NoPlace
from kgqa.graph.endpoint.requests.transport import MOST_BROKEN, Access, BrokenOff, Transport
from kgqa.graph.endpoint.requests.watch import Watch
from kgqa.graph.endpoint.result_cache import GraphResults, Overheard, ResultCache
from kgqa.graph.query.tokens import prepare_for_server
from kgqa.graph.query.update_guard import check_update
from kgqa.graph.store import DEFAULT_MAX_ROWS, DEFAULT_TIMEOUT, LoadReport, OnError, Progress, Rows

T = TypeVar("T")
Reader = Callable[[Iterable[bytes], Mapping[str, str]], T]
PASSWORD_VARIABLE = "KGQA_ENDPOINT_PASSWORD"
MAX_RESULT_BYTES = 2 << 30
MAX_QUERY_CHARS = 1 << 20
MAX_REMEMBERED = 10_000
LONGEST_SECONDS = 1e7
MUCH_MORE = 1.5
"""How much more time than it had a query that ran out of it has to be given to be asked again."""


class EndpointStore:
    """A SPARQL endpoint as a `Store`. Nothing is sent before the first question.

    Args:
        url: the address that takes queries, such as http://127.0.0.1:8890/sparql.
        graphs: the graphs that are looked at, for the fingerprint; queries name theirs themselves.
        writable: the one graph that `update` and `load` may write to; none without.
        profile: name of a profile in endpoints.toml; `auto` to tell by host or Server header.
        cache: where results and counts are kept between runs; None keeps nothing.
        timeout: seconds a query may take, where the call does not say.
        row_cap: rows at which the server is known to cut its results, on top of what the profile knows.

    Raises:
        SettingsError: the address is none, or holds a password.
    """

    def __init__(
        self,
        url: str,
        *,
        graphs: Iterable[str] = (),
        writable: str | None = None,
        access: Access | None = None,
        profile: str = "auto",
        cache: ResultCache | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        row_cap: int | None = None,
    ) -> None:
        self.url = check_address(url)
        self.location = self.url
        self.graphs = tuple(graphs)
        self.writable = writable
        self.timeout = timeout
        access = access or Access()
        self._user = access.user
        kind = profile_of(self.url) if profile == "auto" else profile_named(profile)
        detects = profile == "auto" and kind.name == "generic"
        self._transport = Transport(self.url, access, kind, detects=detects)
        self._caps = (row_cap,) if row_cap else ()
        self._cache = cache
        self._lock = threading.Lock()
        self._late: dict[bytes, float] = {}
        self._updates = 0
        self._closed = False
        self._identity = RemoteFingerprint(self)
        self._results: GraphResults | None = None

    # --- the Store protocol

    @property
    def fingerprint(self) -> str:
        return self._identity.text

    @property
    def triples(self) -> int | None:
        """How many triples its graphs have, None where counting them took too long."""
        return self._identity.triples

    @property
    def large(self) -> bool:
        """Whether its triples are too many to be counted: single predicates have many millions of them."""
        return self._identity.large

    @property
    def version(self) -> str:
        return str(self._updates)

    @property
    def concurrency(self) -> int:
        """Requests at once: `endpoint.concurrency`, else what its kind of server takes."""
        return self._transport.concurrency

    @property
    def has_place(self) -> bool:
        """Whether one more request would not have to wait for others."""
        return self._transport.has_place

    def select(
        self, query: str, *, timeout: float | None = None, max_rows: int | None = None, fresh: bool = False
    ) -> Rows:
        most = DEFAULT_MAX_ROWS if max_rows is None else max_rows

        def read(parts: Iterable[bytes], headers: Mapping[str, str]) -> Rows:
            rows = decode_rows(_bounded(parts), max_rows=most)
            check_whole(rows, query, self._transport.profile, self._caps, headers)
            return rows

        return self._answered(query, read, asks=False, timeout=timeout, fresh=fresh)

    def ask(self, query: str, *, timeout: float | None = None, fresh: bool = False) -> bool:
        def read(parts: Iterable[bytes], headers: Mapping[str, str]) -> bool:
            return decode_boolean(b"".join(_bounded(parts)))

        return self._answered(query, read, asks=True, timeout=timeout, fresh=fresh)

    def update(self, update: str, *, timeout: float | None = None) -> None:
        """Run a SPARQL update that writes to the writable graph and to nothing else. Raises as `select` does."""
        self._refuse_closed()
        if not self.writable:
            raise QueryRejected(f"{self.url} is open for reading only: name the graph that may be written to.")
        update = prepare_for_server(update)
        check_update(update, self.writable)
        try:
            self._transport.update(update, seconds=self.timeout if timeout is None else timeout)
        finally:
            self.forget()

    def load(
        self,
        files: Iterable[str | Path],
        *,
        on_error: OnError = "fail",
        progress: Callable[[Progress], None] | None = None,
        format: str | None = None,
    ) -> LoadReport:
        return load_by_updates(self, files, on_error=on_error, progress=progress, format=format)

    def notice(self) -> str | None:
        return None

    def close(self) -> None:
        """End what is under way; who waits for it gets StoreUnavailable."""
        self._closed = True
        self._transport.close()
        if self._cache:
            self._cache.close()

    def __enter__(self) -> EndpointStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what only endpoints have

    @property
    def profile(self) -> Profile:
        """What kind of server it is; asks it once where that is not known by its address."""
        self._transport.meet(self.timeout)
        return self._transport.profile

    @property
    def limits(self) -> ServerLimits:
        """What the server says of its own limits; asks it once where its kind says such things."""
        self._transport.meet(self.timeout)
        return self._transport.limits

    def responds(self, seconds: float) -> bool:
        """Whether the server sends any reply within so many seconds."""
        return self._transport.responds(seconds)

    def looking_at(self, graphs: Iterable[str]) -> None:
        """Say which graphs are looked at, once that is known."""
        self.graphs = tuple(graphs)
        with self._lock:
            self._start_over()

    def forget(self) -> None:
        """Forget the fingerprint and what it led to: the graph has changed."""
        if self._cache:
            # what others know of it, who look at more graphs or are other users, is of before
            self._cache.put_fact(self._changed_key, repr(time.time()))
        with self._lock:
            self._late.clear()
            self._updates += 1
            self._start_over()

    def _start_over(self) -> None:
        self._identity = RemoteFingerprint(self)
        self._results = None

    def kept_fact(self, name: str, *, younger: float) -> str | None:
        """A short text kept about this view of this endpoint, if it is younger than so many seconds."""
        if self._cache is None:
            return None
        changed = self._cache.fact(self._changed_key, younger=younger)
        if changed is not None:
            younger = min(younger, time.time() - float(changed))
        return self._cache.fact(self._fact_key(name), younger=younger)

    def keep_fact(self, name: str, text: str | None) -> None:
        """Keep a short text about this view of this endpoint; None forgets it."""
        if self._cache:
            self._cache.put_fact(self._fact_key(name), text)

    @property
    def _changed_key(self) -> bytes:
        return hashlib.blake2b(f"changed\n{self.url}".encode(), digest_size=16).digest()

    @property
    def identity(self) -> str:
        """Eight hex digits of the address and the user, for what is kept of what this server says to this user."""
        return "-" + hashlib.sha256(f"{self.url}\n{self._user}".encode()).hexdigest()[:8]

    def _fact_key(self, name: str) -> bytes:
        parts = (name, self.url, self._user, *self.graphs)
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).digest()

    def headers(self, query: str, *, timeout: float | None = None) -> dict[str, str]:
        """The headers of a reply, whatever its verdict: for those who look at the server rather than the graph."""
        with self._transport.query(query, asks=False, seconds=timeout or self.timeout) as reply:
            for _ in _bounded(reply.parts):
                pass
            return reply.headers

    # --- inside

    def _answered(self, query: str, read: Reader[T], *, asks: bool, timeout: float | None, fresh: bool) -> T:
        self._refuse_closed()
        if len(query) > MAX_QUERY_CHARS:
            raise QueryRejected(f"The query is longer than {MAX_QUERY_CHARS:,} characters. Ask about less at once.")
        query = prepare_for_server(query, reads="ASK" if asks else "SELECT")
        limit = min(self.timeout if timeout is None else timeout, LONGEST_SECONDS)
        # the first query measures what the graph is now, which is not to cost it its own time
        kept, updates = None if fresh else self._kept_results(limit), self._updates
        if kept and (body := kept.get(query)) is not None:
            return read([body], {})
        deadline = time.monotonic() + limit
        key = hashlib.blake2b(query.encode("utf-8"), digest_size=16).digest()
        if limit < MUCH_MORE * self._late.get(key, 0.0):
            raise StoreTimeout(
                f"This query ran out of time before ({self._late[key]:.1f} s) and is not tried again. Give it more: "
                "graph.timeout."
            )
        self._transport.meet(limit)
        with self._transport.place(deadline) as watch:
            try:
                result, body = self._asked(query, read, asks=asks, watch=watch, keeps=kept is not None)
            except NoPlace:
                raise
            except StoreTimeout:
                self._remember(key, watch.given)
                raise
        if kept and body is not None and updates == self._updates:  # else it may be of the graph as it is now
            kept.put(query, body)
        return result

    def _asked(self, query: str, read: Reader[T], *, asks: bool, watch: Watch, keeps: bool) -> tuple[T, bytes | None]:
        """The result, and its body where that may be kept. Where the connection breaks or the answer is damaged, the query
        is sent once more.
        """
        while True:
            with self._transport.reply(query, asks=asks, watch=watch) as reply:
                profile = self._transport.profile
                said = b"" if reply.status == 200 else b"".join(reply.parts)
                error = judge(
                    reply.status, reply.headers, said.decode("utf-8", "replace"), profile, self.url, query=query
                )
                if error:
                    raise error
                heard = Overheard(reply.parts, keeps=keeps)
                try:
                    return read(heard, reply.headers), heard.body
                except (PartialResult, StoreUnavailable) as problem:
                    found = broken_result(problem, heard.tail, profile)
                    if found is not problem:
                        raise found from problem
                    watch.broken += isinstance(problem, DamagedResult)
                    if watch.broken >= MOST_BROKEN or not isinstance(problem, (BrokenOff, DamagedResult)):
                        raise

    def _kept_results(self, limit: float) -> GraphResults | None:
        """The cached results of the graph as it is now; None without a cache or where its state is not known."""
        if self._cache is None:
            return None
        with self._lock:
            results, identity = self._results, self._identity
        if results is None:
            fingerprint = identity.text_within(limit)
            results = GraphResults(self._cache, self.url, fingerprint, user=self._user) if fingerprint else None
            with self._lock:
                if identity is self._identity:  # else the graph has changed meanwhile
                    self._results = results
        return results

    def _remember(self, key: bytes, limit: float) -> None:
        with self._lock:
            if len(self._late) < MAX_REMEMBERED:
                self._late[key] = max(limit, self._late.get(key, 0.0))

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"The connection to {self.url} has been closed.")


def check_address(url: str) -> str:
    """The address without blanks around it.

    Raises:
        SettingsError: not http or https, no host, or a user and password in it.
    """
    url = url.strip()
    if "@" in url:
        raise SettingsError(
            f"An address must not hold a password: set endpoint.user and put the password into {PASSWORD_VARIABLE}."
        )
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or set(url) & set(' <>"\\'):
        raise SettingsError(f"{url[:100]!r} is no address of a SPARQL endpoint, such as http://127.0.0.1:8890/sparql.")
    if parts.query or parts.fragment:
        raise SettingsError("The address of a SPARQL endpoint has no ? and no #: graphs are named by --graph-iri.")
    return url


def _bounded(parts: Iterable[bytes]) -> Iterable[bytes]:
    total = 0
    for part in parts:
        total += len(part)
        if total > MAX_RESULT_BYTES:
            raise PartialResult(f"The result is larger than {MAX_RESULT_BYTES:,} bytes. Ask for less.")
        yield part
