"""Stores for an examination: the real ones, but in a hurry. No query may take long, and nothing comes from a cache."""

from __future__ import annotations

import time
from collections.abc import Callable
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
"""What one query may take: more is no use to a question either."""
PATIENT_TIMES = 6
"""How many times as much a query that was late is given when it is tried again: the server may have been busy."""
ALL_SECONDS = 180.0
"""What all queries together may take, of a server on which each is slow."""
PATIENCE = 1.0
"""Seconds to keep trying where nothing answers: here that is a result."""


class _Hurried:
    """Ends each query after QUERY_SECONDS, and asks nothing once ALL_SECONDS are over.

    Attributes:
        patient: whether a query that was late is tried once more, with more time; not where time is what is measured.
    """

    started: float
    patient = True

    def select(
        self, query: str, *, timeout: float | None = None, max_rows: int | None = None, fresh: bool = False
    ) -> Rows:
        run = partial(super().select, query, max_rows=max_rows, fresh=fresh)  # type: ignore[misc]
        return self._tried(run, timeout)

    def ask(self, query: str, *, timeout: float | None = None, fresh: bool = False) -> bool:
        return self._tried(partial(super().ask, query, fresh=fresh), timeout)  # type: ignore[misc]

    def _tried(self, run: Callable[..., T], timeout: float | None) -> T:
        limit = self._limit(timeout, QUERY_SECONDS)
        if limit <= 0:
            raise StoreTimeout(f"The queries before this one have used up the {ALL_SECONDS:.0f} s there are for all.")
        try:
            return run(timeout=limit)
        except StoreTimeout:
            more = self._limit(timeout, PATIENT_TIMES * QUERY_SECONDS)
            if not self.patient or more <= limit:
                raise
        return run(timeout=more)

    def _limit(self, timeout: float | None, most: float) -> float:
        left = self.started + ALL_SECONDS - time.monotonic()
        return min(left, most if timeout is None else min(timeout, most))


class HurriedEndpoint(_Hurried, EndpointStore):
    """A server. `access` is how it is spoken to."""

    def __init__(self, url: str, *, access: Access, **options: Any) -> None:
        self.started = time.monotonic()
        self.access = access
        super().__init__(url, access=access, timeout=QUERY_SECONDS, **options)


class HurriedFolder(_Hurried, EmbeddedStore):
    """A graph folder."""

    def __init__(self, path: Path) -> None:
        self.started = time.monotonic()
        super().__init__(path, timeout=QUERY_SECONDS)


def open_hurried(settings: Settings, cache: Cache) -> HurriedEndpoint | HurriedFolder:
    """The store that the settings name, or that of the demo graph. Nothing is sent to a server yet.

    Raises:
        SettingsError: no usable address. StoreUnavailable, StoreIncomplete, StoreBusy: see `open_store`.
    """
    place = settings["graph.path"]
    if place and is_address(place):
        options = EndpointOptions.of(settings)
        access = replace(options.access, patience=min(options.access.patience, PATIENCE))
        return HurriedEndpoint(place, access=access, profile=options.profile, row_cap=options.row_cap)
    return HurriedFolder(Path(place) if place else demo_folder(cache))
