"""How endpoints are spoken to, as the settings say it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from kgqa.cache import Cache
from kgqa.errors import SettingsError
from kgqa.graph.endpoint.requests.transport import Access
from kgqa.graph.endpoint.result_cache import ResultCache
from kgqa.graph.endpoint.store import PASSWORD_VARIABLE, EndpointStore, check_address
from kgqa.graph.store import is_address
from kgqa.settings import FILE_NAME, Settings
from kgqa.words import clean


@dataclass(frozen=True)
class EndpointOptions:
    """Options for every endpoint that a run opens.

    `cache_days` and `cache_bytes` limit the results kept on disk; `keeps` says whether any are. `row_cap`: rows at
    which the server is known to cut results.
    """

    profile: str = "auto"
    access: Access = field(default_factory=Access)
    keeps: bool = True
    cache_days: float = 7.0
    cache_bytes: int = 2 << 30
    row_cap: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> EndpointOptions:
        """From settings, with the password from the environment.

        Raises:
            SettingsError: a password is set while a file in the working folder says which server would get it.
        """
        user, password = settings["endpoint.user"] or "", os.environ.get(PASSWORD_VARIABLE, "")
        place = settings["graph.path"] or ""
        if (user or password) and is_address(place) and "graph.path" in settings.local:
            place = check_address(place)
            raise SettingsError(
                f"A {FILE_NAME} in the working folder names the server {clean(place)[:200]}, which is not sent your password for "
                "that. If you want this, name the server yourself: --graph, or KGQA_GRAPH_PATH."
            )
        return cls(
            profile=settings["endpoint.profile"],
            access=Access(
                user=user,
                password=password,
                contact=settings["endpoint.contact"] or "",
                concurrency=settings["endpoint.concurrency"],
                rate=settings["endpoint.rate"],
                connect_seconds=settings["endpoint.connect_timeout"],
                patience=settings["endpoint.patience"],
            ),
            keeps=settings["endpoint.cache"] == "on",
            cache_days=settings["endpoint.cache_days"],
            cache_bytes=int(settings["endpoint.cache_gb"] * (1 << 30)),
            row_cap=settings["endpoint.row_cap"],
        )

    def open(self, url: str, *, cache: Cache, timeout: float, writable: str | None = None) -> EndpointStore:
        """Open an endpoint with these options. Raises SettingsError for an address that is none."""
        kept = None
        if self.keeps and min(cache.limit_bytes, self.cache_bytes, self.cache_days) > 0:
            # a folder: SQLite keeps more files beside its own, and they go together
            file = cache.entry("results", "endpoints") / "results.sqlite"
            kept = ResultCache(file, days=self.cache_days, limit_bytes=self.cache_bytes)
        return EndpointStore(
            url,
            access=self.access,
            profile=self.profile,
            cache=kept,
            timeout=timeout,
            row_cap=self.row_cap,
            writable=writable,
        )
