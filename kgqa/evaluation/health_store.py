"""Stores for an examination: the real ones, but in a hurry. No query may take long, and nothing comes from a cache."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from kgqa.cache import Cache
from kgqa.errors import StoreTimeout
from kgqa.graph.demo import demo_folder
from kgqa.graph.embedded import EmbeddedStore
from kgqa.graph.endpoint import EndpointStore
from kgqa.graph.endpoint_options import EndpointOptions
from kgqa.graph.store import Rows, is_address
from kgqa.graph.transport import Access
from kgqa.settings import Settings

QUERY_SECONDS = 5.0
"""What one query may take: more is no use to a question either."""
ALL_SECONDS = 60.0
"""What all queries together may take, of a server on which each is slow."""
PATIENCE = 1.0
"""Seconds to keep trying where nothing answers: here that is a result."""


class _Hurried:
    """Ends each query after QUERY_SECONDS, and asks nothing once ALL_SECONDS are over."""

    started: float

    def select(
        self, query: str, *, timeout: float | None = None, max_rows: int | None = None, fresh: bool = False
    ) -> Rows:
        limit = self._limit(timeout)
        return super().select(query, timeout=limit, max_rows=max_rows, fresh=fresh)  # type: ignore[misc]

    def ask(self, query: str, *, timeout: float | None = None, fresh: bool = False) -> bool:
        return super().ask(query, timeout=self._limit(timeout), fresh=fresh)  # type: ignore[misc]

    def _limit(self, timeout: float | None) -> float:
        left = self.started + ALL_SECONDS - time.monotonic()
        if left <= 0:
            raise StoreTimeout(f"The queries before this one have used up the {ALL_SECONDS:.0f} s there are for all.")
        return min(left, QUERY_SECONDS if timeout is None else min(timeout, QUERY_SECONDS))


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
