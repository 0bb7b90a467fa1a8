"""Stores with short time limits and without caches, for the checks of `kgqa doctor`."""

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
from kgqa.graph.store import Rows, is_address
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


class _ShortLimits:
    """Limits each query to QUERY_SECONDS and all queries to ALL_SECONDS.

    Attributes:
        retries_timeouts: whether a query that timed out is retried with more time; False while durations are measured.
    """

    started: float
    retries_timeouts = True

    def select(
        self, query: str, *, timeout: float | None = None, max_rows: int | None = None, fresh: bool = False
    ) -> Rows:
        run: Callable[..., Rows] = partial(super().select, query, max_rows=max_rows, fresh=fresh)  # type: ignore[misc]
        return self._tried(run, timeout)

    def ask(self, query: str, *, timeout: float | None = None, fresh: bool = False) -> bool:
        run: Callable[..., bool] = partial(super().ask, query, fresh=fresh)  # type: ignore[misc]
        return self._tried(run, timeout)

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
        left = self.started + ALL_SECONDS - time.monotonic()
        return min(left, longest if timeout is None else min(timeout, longest))


class ProbeEndpoint(_ShortLimits, EndpointStore):
    """A SPARQL server with short time limits; `access` holds the options of its requests."""

    def __init__(self, url: str, *, access: Access, **options: Any) -> None:
        self.started = time.monotonic()
        self.access = access
        super().__init__(url, access=access, timeout=QUERY_SECONDS, **options)

    def may_scan(self, graphs: Sequence[str] = ()) -> bool:
        """Return True: the examination judges the size of the graph by its own count."""
        return True


class ProbeFolder(_ShortLimits, EmbeddedStore):
    """A graph folder with short time limits."""

    def __init__(self, path: Path) -> None:
        self.started = time.monotonic()
        super().__init__(path, timeout=QUERY_SECONDS)


ProbeStore = ProbeEndpoint | ProbeFolder


def open_probe_store(settings: Settings, cache: Cache) -> ProbeStore:
    """Open the store given in the settings, or the demo graph. Nothing is sent to a server yet.

    Raises:
        SettingsError: the URL is invalid. StoreUnavailable, StoreIncomplete, StoreBusy: see `open_store`.
    """
    place = settings["graph.path"]
    if place and is_address(place):
        options = EndpointOptions.of(settings)
        access = replace(options.access, patience=min(options.access.patience, PATIENCE))
        return ProbeEndpoint(place, access=access, profile=options.profile, row_cap=options.row_cap)
    return ProbeFolder(Path(place) if place else demo_folder(cache))
