"""A graph behind a SPARQL 1.1 endpoint: Virtuoso, QLever, Blazegraph, Wikidata's public service, any other."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from kgqa.errors import PartialResult, QueryRejected, SettingsError, StoreTimeout, StoreUnavailable
from kgqa.graph.json_results import decode_boolean, decode_rows
from kgqa.graph.profiles import Profile, profile_named, profile_of
from kgqa.graph.queries import render
from kgqa.graph.remote_fingerprint import RemoteFingerprint
from kgqa.graph.result_cache import GraphResults, ResultCache, overheard
from kgqa.graph.sparql_text import check_remote
from kgqa.graph.store import DEFAULT_MAX_ROWS, DEFAULT_TIMEOUT, LoadReport, OnError, Progress, Rows
from kgqa.graph.transport import MAX_ERROR_BYTES, Access, Reply, Transport
from kgqa.graph.update_guard import check_update
from kgqa.graph.verdict import check_whole, judge
from kgqa.model import Entity

T = TypeVar("T")
PASSWORD_VARIABLE = "KGQA_ENDPOINT_PASSWORD"
MAX_RESULT_BYTES = 2 << 30
MAX_QUERY_BYTES = 1 << 20
MAX_REMEMBERED = 10_000


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
        self.place = self.url
        self.graphs = tuple(graphs)
        self.writable = writable
        self.timeout = timeout
        self._access = access or Access()
        self._known_profile = profile_named(profile) if profile != "auto" else None
        self._transport = Transport(self.url, self._access, self._known_profile or profile_of(self.url))
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
    def version(self) -> str:
        return str(self._updates)

    @property
    def profile(self) -> Profile:
        """What kind of server it is; asks it once where that is not known by its address."""
        if self._known_profile is None:
            self.ask(render("any_triple", view=tuple(map(Entity, self.graphs))), fresh=True)
        return self._known_profile or self._transport.profile

    def select(
        self, query: str, *, timeout: float | None = None, max_rows: int | None = None, fresh: bool = False
    ) -> Rows:
        most = DEFAULT_MAX_ROWS if max_rows is None else max_rows

        def read(reply: Reply) -> Rows:
            rows = decode_rows(_bounded(reply.parts), max_rows=most, named_blanks=self._transport.profile.named_blanks)
            check_whole(rows, query, self._transport.profile, self._caps)
            return rows

        return self._answered(query, read, asks=False, timeout=timeout, fresh=fresh)

    def ask(self, query: str, *, timeout: float | None = None, fresh: bool = False) -> bool:
        def read(reply: Reply) -> bool:
            return decode_boolean(b"".join(_bounded(reply.parts)))

        return self._answered(query, read, asks=True, timeout=timeout, fresh=fresh)

    def update(self, update: str, *, timeout: float | None = None) -> None:
        """Run a SPARQL update that writes to the writable graph and to nothing else. Raises as `select` does."""
        if not self.writable:
            raise QueryRejected(f"{self.url} is open for reading only: name the graph that may be written to.")
        update = check_remote(update)
        check_update(update, self.writable)
        try:
            self._transport.update(update, self.profile, self.timeout if timeout is None else timeout)
        finally:
            self._updates += 1
            self.forget()

    def load(
        self,
        files: Iterable[str | Path],
        *,
        on_error: OnError = "fail",
        progress: Callable[[Progress], None] | None = None,
        format: str | None = None,
    ) -> LoadReport:
        from kgqa.graph.remote_load import load_by_updates

        return load_by_updates(self, files, on_error=on_error, progress=progress, format=format)

    def notice(self) -> str | None:
        return None

    def close(self) -> None:
        self._closed = True
        self._transport.close()
        if self._cache:
            self._cache.close()

    def __enter__(self) -> EndpointStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what only endpoints have

    def looking_at(self, graphs: Iterable[str]) -> None:
        """Say which graphs are looked at, once that is known."""
        self.graphs = tuple(graphs)
        self._start_over()

    def forget(self) -> None:
        """Forget the fingerprint and what it led to: the graph has changed."""
        self.keep_fact("counts", None)
        self._start_over()

    def _start_over(self) -> None:
        with self._lock:
            self._identity = RemoteFingerprint(self)
            self._results = None

    def kept_fact(self, name: str, *, younger: float) -> str | None:
        """A short text kept about this view of this endpoint, if it is younger than so many seconds."""
        return self._cache.fact(self._fact_key(name), younger=younger) if self._cache else None

    def keep_fact(self, name: str, text: str | None) -> None:
        """Keep a short text about this view of this endpoint; None forgets it."""
        if self._cache:
            self._cache.put_fact(self._fact_key(name), text)

    def _fact_key(self, name: str) -> bytes:
        return hashlib.blake2b("\n".join([name, self.url, *self.graphs]).encode(), digest_size=16).digest()

    def headers(self, query: str, *, timeout: float | None = None) -> dict[str, str]:
        """The headers of a reply, whatever its verdict: for those who look at the server rather than the graph."""
        with self._transport.query(query, asks=False, seconds=timeout or self.timeout) as reply:
            for _ in _bounded(reply.parts):
                pass
            return reply.headers

    # --- inside

    def _answered(self, query: str, read: Callable[[Reply], T], *, asks: bool, timeout: float | None, fresh: bool) -> T:
        if self._closed:
            raise StoreUnavailable(f"The connection to {self.url} has been closed.")
        if len(query) > MAX_QUERY_BYTES:
            raise QueryRejected(f"The query is longer than {MAX_QUERY_BYTES:,} characters.")
        query = check_remote(query, reads="ASK" if asks else "SELECT")
        limit = self.timeout if timeout is None else timeout
        kept = None if fresh else self._kept_results()
        if kept and (body := kept.get(query)) is not None:
            return read(Reply(200, {}, iter([body])))
        key = hashlib.blake2b(query.encode("utf-8"), digest_size=16).digest()
        if limit <= self._late.get(key, 0.0):
            raise StoreTimeout(f"This query ran out of time before ({self._late[key]:g} s) and is not tried again.")
        heard: list[bytes] = []
        try:
            with self._transport.query(query, asks=asks, seconds=limit) as reply:
                self._learn(reply.headers)
                self._judge(reply)
                result = read(replace(reply, parts=overheard(reply.parts, heard)) if kept else reply)
        except StoreTimeout:
            self._remember(key, limit)
            raise
        if kept:
            kept.put(query, heard)
        return result

    def _kept_results(self) -> GraphResults | None:
        """The cached results of the graph as it is now; None without a cache or where its state is not known."""
        if self._cache is None:
            return None
        if self._results is None:
            fingerprint = self._identity.text
            self._results = GraphResults(self._cache, self.url, fingerprint) if fingerprint else None
        return self._results

    def _judge(self, reply: Reply) -> None:
        body = ""
        if reply.status != 200:
            body = _beginning(reply.parts).decode("utf-8", "replace")
        error = judge(reply.status, reply.headers, body, self._transport.profile, self.url)
        if error:
            raise error

    def _learn(self, headers: dict[str, str]) -> None:
        if self._known_profile is None:
            self._known_profile = self._transport.profile = profile_of(self.url, headers.get("server", ""))

    def _remember(self, key: bytes, limit: float) -> None:
        with self._lock:
            if len(self._late) < MAX_REMEMBERED:
                self._late[key] = max(limit, self._late.get(key, 0.0))


def check_address(url: str) -> str:
    """The address without blanks around it.

    Raises:
        SettingsError: not http or https, no host, or a user and password in it.
    """
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(f"{url[:100]!r} is no address of a SPARQL endpoint, such as http://127.0.0.1:8890/sparql.")
    if parts.username or parts.password:
        raise SettingsError(
            f"An address must not hold a password: set endpoint.user and put the password into {PASSWORD_VARIABLE}."
        )
    if parts.query or parts.fragment:
        raise SettingsError("The address of a SPARQL endpoint has no ? and no #: graphs are named by --graph-iri.")
    return url.strip()


def _bounded(parts: Iterable[bytes]) -> Iterable[bytes]:
    total = 0
    for part in parts:
        total += len(part)
        if total > MAX_RESULT_BYTES:
            raise PartialResult(f"The result is larger than {MAX_RESULT_BYTES:,} bytes. Ask for less.")
        yield part


def _beginning(parts: Iterable[bytes]) -> bytes:
    data = b""
    for part in parts:
        data += part
        if len(data) >= MAX_ERROR_BYTES:
            break
    return data[:MAX_ERROR_BYTES]
