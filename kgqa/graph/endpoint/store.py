"""A SPARQL 1.1 endpoint as a store: Virtuoso, QLever, Blazegraph, the Wikidata Query Service, or another server."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa.errors import QueryRejected, StoreTimeout
from kgqa.graph.editing import EditHistory, net_changes, present_triples
from kgqa.graph.endpoint.fingerprint import RETRY_FACTOR, EndpointFingerprint, ResultCache
from kgqa.graph.endpoint.options import Access, EndpointOptions, Profile, check_address, profile_named, profile_of
from kgqa.graph.endpoint.replies import (
    Kind,
    ResultReader,
    T,
    check_complete,
    decode_boolean,
    decode_rows,
    selection,
)
from kgqa.graph.endpoint.upload import load_by_updates, send_edit
from kgqa.graph.query.text import render
from kgqa.graph.query.tokens import dataset_of, prepare_for_server, refuse_surrogates
from kgqa.graph.store import (
    DEFAULT_MAX_ROWS,
    DEFAULT_TIMEOUT,
    Capabilities,
    EditReport,
    LoadReport,
    OnError,
    Progress,
    Rows,
    Store,
)
from kgqa.model import Entity, Triple
from kgqa.net.limits import QueueTimeout
from kgqa.storage.cache import Cache
from kgqa.text.words import clean

MAX_SECONDS = 1e7
MAX_QUERY_CHARS = 1 << 20
"""The longest query that is sent; much longer ones have kept Virtuoso busy for good."""


class EndpointStore(Store):
    """A SPARQL endpoint as a `Store`. Nothing is sent before the first query.

    Args:
        url: the address, such as http://127.0.0.1:8890/sparql.
        writable: IRIs of the graphs that may be edited, or the IRI of the only one, into which `load` loads; None to
            forbid writing.
        access: login and limits of requests.
        profile: a profile, or the name of one in endpoints.toml; `auto` to detect it by host or Server header.
        cache: stores results and counts between runs; None for no cache.
        timeout: default time limit of a query, in seconds.
        row_cap: a known row cap of the server, in addition to the row caps in the profile.

    Attributes:
        transport: what is known of the server: its software, profile and time limit.

    Raises:
        SettingsError: `url` is not the address of an endpoint, or contains a password.
    """

    def __init__(
        self,
        url: str,
        *,
        writable: str | Collection[str] | None = None,
        access: Access | None = None,
        profile: str | Profile = "auto",
        cache: ResultCache | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        row_cap: int | None = None,
    ) -> None:
        from kgqa.graph.endpoint.transport import Transport  # urllib3 takes long to import

        self.url = check_address(url)
        self.writable = writable
        self.timeout = timeout
        access = access or Access()
        self._user = access.user
        detects = profile == "auto"
        if isinstance(profile, str):
            profile = profile_of(self.url) if detects else profile_named(profile)
        self.transport = Transport(self.url, access, profile, detects=detects and profile.name == "generic")
        self._caps = (row_cap,) if row_cap else ()
        self._cache = cache
        self._slow_queries: dict[bytes, float] = {}
        self._history = EditHistory()
        self._edits = threading.Lock()
        self._changed = ((cache and cache.get(_key("changed", self.url))) or b"").decode()
        """When kgqa last changed the server's data, which may have left all counts equal."""
        self._fingerprints: dict[tuple[str, ...], EndpointFingerprint] = {}

    # --- the Store protocol

    @property
    def location(self) -> str:
        return self.url

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of this kind of server, which is detected by a query if its address does not reveal it."""
        profile = self.profile
        return Capabilities(
            updates=self.writable is not None,
            remote=True,
            full_text=profile.full_text,
            identity="-" + _key(self.url, self._user).hex()[:8],
            concurrency=self.transport.concurrency,
            rate=self.transport.rate,
            system_graphs=profile.system_graphs,
            row_cap=min((*self._caps, *profile.row_caps), default=None),
        )

    def triples_of(self, graphs: Sequence[str] = ()) -> int | None:
        return self._fingerprint(graphs).counts().get("triples")

    def may_scan(self, graphs: Sequence[str] = ()) -> bool:
        """Return whether the graphs have at most MAX_SCANNED_TRIPLES triples, and the server is no public service."""
        return self.profile.allows_scans and not self._fingerprint(graphs).is_large

    def fingerprint_of(self, graphs: Sequence[str] = ()) -> str:
        """Return a hash of counts of triples, see `EndpointFingerprint.text`."""
        return self._fingerprint(graphs).text()

    def version_of(self, graphs: Sequence[str] = ()) -> str:
        return self._history.version_of(graphs or None) + ("+" if self._edits.locked() else "")

    def edits_since(self, version: str, graphs: Sequence[str] = ()) -> list[EditReport] | None:
        return self._history.since(version, graphs or None)

    def _fingerprint(self, graphs: Sequence[str]) -> EndpointFingerprint:
        name, key = tuple(graphs), self._key("counts", *graphs)
        new = EndpointFingerprint(name, select=self.select, cache=self._cache, key=key)
        return self._fingerprints.setdefault(name, new)

    @property
    def has_free_slot(self) -> bool:
        """Whether a request would be sent without waiting for others."""
        return self.transport.has_free_slot

    def select(
        self, query: str, *, timeout: float | None = None, max_rows: int | None = None, fresh: bool = False
    ) -> Rows:
        most = DEFAULT_MAX_ROWS if max_rows is None else max_rows

        def read(body: bytes | bytearray, headers: Mapping[str, str]) -> Rows:
            rows = decode_rows(body, max_rows=most, variables=selection(query)[0])
            check_complete(rows, query, self.transport.profile, self._caps, headers)
            return rows

        return self._run(query, read, "SELECT", timeout=timeout, fresh=fresh)

    def ask(self, query: str, *, timeout: float | None = None, fresh: bool = False) -> bool:
        return self._run(query, lambda body, _: decode_boolean(body), "ASK", timeout=timeout, fresh=fresh)

    def edit(self, graph: str, adds: Iterable[Triple], removes: Iterable[Triple] = ()) -> EditReport:
        """Remove and add triples of the writable graph in one update; see `Store.edit`.

        On Virtuoso, an update is one transaction: after an error or a crash of the server, all of it holds or nothing.
        A query that runs at the same time sees all of an edit of up to INLINE_TRIPLES triples or nothing; of a larger
        edit it may see a part. What is absent and what is there is asked before the update, so another program that
        writes the same triples at the same time makes the report wrong, but not the graph.
        """
        self._check_writable(graph)
        with self._edits:
            added, removed = net_changes(adds, removes, present=lambda triples: present_triples(self, graph, triples))
            if added or removed:
                try:
                    send_edit(self._send_update, graph, added, removed)
                    self._forget_results()
                except BaseException:
                    self.invalidate()
                    raise
            return self._history.add(graph, added, removed)

    def update(self, template: str, *, graph: str, timeout: float | None = None, **values: Any) -> None:
        """Send the update queries/TEMPLATE.rq, which writes to the writable graph only, with typed values.

        Raises:
            InvalidTerm, QueryRejected, StoreTimeout, StoreUnavailable.
        """
        self._check_writable(graph)
        try:
            self._send_update(template, timeout=timeout, graph=Entity(graph), **values)
        finally:
            self.invalidate()

    def _check_writable(self, graph: str) -> None:
        writable = (self.writable,) if isinstance(self.writable, str) else self.writable
        if not writable or graph not in writable:
            what = f"{clean(graph)[:200] or 'The default graph'} is not writable"
            raise QueryRejected(
                f"{what}." if writable else f"{self.url} is open for reading only.",
                "Name the graph to write to: EndpointStore(url, writable=IRI).",
            )

    def _send_update(self, template: str, *, timeout: float | None = None, **values: Any) -> None:
        update = render(template, **values)
        refuse_surrogates(update)
        seconds = self.timeout if timeout is None else timeout
        with self.transport.slot(seconds) as deadline:
            self.transport.send(update, "UPDATE", deadline, lambda body, headers: None)

    def load(
        self,
        files: Iterable[str | Path],
        *,
        on_error: OnError = "fail",
        progress: Callable[[Progress], None] | None = None,
        format: str | None = None,
    ) -> LoadReport:
        return load_by_updates(
            self, files, self.writable, self.update, on_error=on_error, progress=progress, format=format
        )

    def close(self) -> None:
        """Cancel active requests; their callers get StoreUnavailable."""
        self.transport.close()
        if self._cache:
            self._cache.close()

    # --- beyond the Store protocol

    @property
    def profile(self) -> Profile:
        """The kind of server; detected by a query if the address does not reveal the kind."""
        self.transport.detect(self.timeout)
        return self.transport.profile

    def responds(self, seconds: float) -> bool:
        """Return whether the server sends any reply within `seconds`."""
        return self.transport.responds(seconds)

    def invalidate(self) -> None:
        """Forget the fingerprints and the results cached under them, because a graph has changed."""
        self._forget_results()
        self._history.forget()

    def _forget_results(self) -> None:
        self._changed = repr(time.time())
        if self._cache:
            self._cache.put(_key("changed", self.url), self._changed.encode())
        self._slow_queries.clear()
        self._fingerprints = {}

    # --- inside

    def _run(self, query: str, read: ResultReader[T], kind: Kind, *, timeout: float | None, fresh: bool) -> T:
        if len(query) > MAX_QUERY_CHARS:
            raise QueryRejected(
                f"The query is longer than {MAX_QUERY_CHARS:,} characters.", "Split it into shorter queries."
            )
        query = prepare_for_server(query, reads=kind)
        limit = min(self.timeout if timeout is None else timeout, MAX_SECONDS)
        # the time to compute the fingerprint (only once) does not count towards the limit of the query
        version = self.version_of()
        cached_as = None if fresh else self._result_key(query, limit)
        if self._cache and cached_as and (known := self._cache.get(cached_as)) is not None:
            return read(known, {})
        key = _key(query)
        if limit < RETRY_FACTOR * self._slow_queries.get(key, 0.0):
            raise StoreTimeout(
                f"This query already timed out after {self._slow_queries[key]:.1f} s, so it is not sent again.",
                "Raise graph.timeout.",
            )
        with self.transport.slot(limit) as deadline:
            try:
                result, body = self.transport.send(query, kind, deadline, read)
            except StoreTimeout as error:
                if not isinstance(error, QueueTimeout) and not deadline.stopped:
                    self._slow_queries[key] = limit
                raise
        # after an edit, the result may include it or not
        if self._cache and cached_as and version == self.version_of():
            self._cache.put(cached_as, body)
        return result

    def _result_key(self, query: str, limit: float) -> bytes | None:
        """Return the key of a query's result in the cache; None without a cache or a fingerprint."""
        graphs = dataset_of(query) if self._cache else None
        if graphs is None or (not graphs and self.capabilities.system_graphs):
            return None  # what the query reads is unknown, or has other graphs among it that are not worth counting
        text = self._fingerprint(graphs).text(wait=limit)
        return self._key(text, query) if text else None

    def _key(self, *parts: str) -> bytes:
        """Return the key of something that is cached for this user until kgqa changes the server's data."""
        return _key(self.url, self._user, self._changed, *parts)


def _key(*parts: str) -> bytes:
    return hashlib.blake2b("\n".join(parts).encode("utf-8"), digest_size=16).digest()


def open_endpoint(
    url: str,
    options: EndpointOptions,
    *,
    cache: Cache,
    timeout: float,
    writable: str | Collection[str] | None = None,
) -> EndpointStore:
    """Open an endpoint with the options of a run.

    Raises:
        SettingsError: `url` is not the address of an endpoint.
    """
    results = None
    if options.caches and cache.limit_bytes > 0:
        # a separate folder, because SQLite creates further files next to its database
        results = ResultCache(cache.entry("results", "endpoints") / "results.sqlite")
    return EndpointStore(
        url,
        access=options.access_to(url),
        profile=options.profile,
        cache=results,
        timeout=timeout,
        row_cap=options.row_cap,
        writable=writable,
    )
