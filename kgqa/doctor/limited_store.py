"""A store with short time limits, for the checks of `kgqa doctor`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
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
        access: the options of requests, if the store is a server.

    Attributes:
        server: the store, if it is a SPARQL server.
        retries_timeouts: whether a query that timed out is retried with more time; False while durations are measured.
        scans: whether queries may read every triple, which the examination decides by its own count of triples.
    """

    def __init__(self, store: Store, access: Access | None = None) -> None:
        self.access = access or Access()
        self.server = store if isinstance(store, EndpointStore) else None
        self.retries_timeouts = self.scans = True
        self._store = store
        self._ends = time.monotonic() + ALL_SECONDS

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def may_scan(self, graphs: Sequence[str] = ()) -> bool:
        return self.scans

    def select(self, query: str, **options: Any) -> Rows:
        return self._limited(self._store.select, query, **options)

    def ask(self, query: str, **options: Any) -> bool:
        return self._limited(self._store.ask, query, **options)

    def _limited(self, run: Callable[..., T], query: str, *, timeout: float | None = None, **options: Any) -> T:
        limit = 0.0
        error = StoreTimeout(f"Earlier queries have used up the time limit of {ALL_SECONDS:.0f} s for all queries.")
        for longest in (QUERY_SECONDS, RETRY_FACTOR * QUERY_SECONDS):
            before, limit = limit, min(longest, timeout or math.inf, self._ends - time.monotonic())
            if limit <= before:
                break
            try:
                return run(query, timeout=limit, **options)
            except StoreTimeout as timed_out:
                error = timed_out
                if not self.retries_timeouts:
                    break
        raise error


def open_limited(settings: Settings, cache: Cache) -> LimitedStore:
    """Open the store given in the settings, or the demo graph. Nothing is sent to a server yet.

    Raises:
        SettingsError: the URL is invalid, or no package has the store.
        StoreUnavailable, StoreIncomplete, StoreBusy: see `open_store`.
    """
    place = settings["graph.path"]
    if place and is_foreign(place):
        return LimitedStore(open_foreign_store(place))
    if not place or not is_address(place):
        return LimitedStore(EmbeddedStore(Path(place) if place else demo_folder(cache), timeout=QUERY_SECONDS))
    options = EndpointOptions.of(settings)
    access = replace(options.access, patience=min(options.access.patience, PATIENCE))
    options = replace(options, access=access, caches=False)
    return LimitedStore(options.open(place, cache=cache, timeout=QUERY_SECONDS), access)
