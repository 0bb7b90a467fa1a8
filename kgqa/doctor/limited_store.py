"""A store with short time limits, for the checks of `kgqa doctor`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from kgqa.cache import Cache
from kgqa.errors import StoreTimeout
from kgqa.graph.demo import demo_folder
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.requests.access import Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.foreign_stores import is_foreign, open_foreign_store
from kgqa.graph.store import Rows, Store, is_address
from kgqa.settings import Settings

T = TypeVar("T")
QUERY_SECONDS = 5.0
"""Time limit of a query, in seconds; a slower query would also be too slow for questions."""
RETRY_FACTOR = 6
"""A query that timed out is retried with its limit multiplied by this factor, because the server may have been busy."""
ALL_SECONDS = 180.0
"""Time limit of all queries together, in seconds."""
PATIENCE = 1.0
"""Seconds during which a request is repeated while the server does not respond."""


class LimitedStore:
    """Limits each query of a store to QUERY_SECONDS, and all queries to ALL_SECONDS. Does everything else as the store.

    Args:
        store: the store.
        access: the options of requests, if the store is a server.

    Attributes:
        retries_timeouts: whether a query that timed out is retried with more time; False while durations are measured.
        scans: whether queries may read every triple.
    """

    def __init__(self, store: Store, access: Access | None = None) -> None:
        self.access = access or Access()
        self.retries_timeouts = True
        self.scans = True
        self._store = store
        self._started = time.monotonic()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def __enter__(self) -> LimitedStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    @property
    def server(self) -> EndpointStore | None:
        """The store, if it is a SPARQL server."""
        return self._store if isinstance(self._store, EndpointStore) else None

    def may_scan(self, graphs: Sequence[str] = ()) -> bool:
        """Return `scans`, which the examination sets by its own count of triples."""
        return self.scans

    def select(
        self, query: str, *, timeout: float | None = None, max_rows: int | None = None, fresh: bool = False
    ) -> Rows:
        """Run a query; see `Store`."""
        return self._tried(partial(self._store.select, query, max_rows=max_rows, fresh=fresh), timeout)

    def ask(self, query: str, *, timeout: float | None = None, fresh: bool = False) -> bool:
        """Run an ASK query; see `Store`."""
        return self._tried(partial(self._store.ask, query, fresh=fresh), timeout)

    def _tried(self, run: Callable[..., T], timeout: float | None) -> T:
        limit = self._limit(timeout, QUERY_SECONDS)
        if limit <= 0:
            raise StoreTimeout(f"Earlier queries have used up the time limit of {ALL_SECONDS:.0f} s for all queries.")
        try:
            return run(timeout=limit)
        except StoreTimeout:
            more = self._limit(timeout, RETRY_FACTOR * QUERY_SECONDS)
            if not self.retries_timeouts or more <= limit:
                raise
        return run(timeout=more)

    def _limit(self, timeout: float | None, longest: float) -> float:
        left = self._started + ALL_SECONDS - time.monotonic()
        return min(left, longest if timeout is None else min(timeout, longest))


def limited_server(url: str, access: Access, **options: Any) -> LimitedStore:
    """Open a SPARQL server with short time limits; `options` are those of `EndpointStore`."""
    return LimitedStore(EndpointStore(url, access=access, timeout=QUERY_SECONDS, **options), access)


def open_limited(settings: Settings, cache: Cache) -> LimitedStore:
    """Open the store given in the settings, or the demo graph. Nothing is sent to a server yet.

    Raises:
        SettingsError: the URL is invalid, or no package has the store.
        StoreUnavailable, StoreIncomplete, StoreBusy: see `open_store`.
    """
    place = settings["graph.path"]
    if place and is_address(place):
        options = EndpointOptions.of(settings)
        access = replace(options.access, patience=min(options.access.patience, PATIENCE))
        return limited_server(place, access, profile=options.profile, row_cap=options.row_cap)
    if place and is_foreign(place):
        return LimitedStore(open_foreign_store(place))
    return LimitedStore(EmbeddedStore(Path(place) if place else demo_folder(cache), timeout=QUERY_SECONDS))
