"""What the checks examine and what they find."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from kgqa.errors import StoreTimeout
from kgqa.graph.endpoint.options import Access
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.store import Store
from kgqa.model import Entity, GraphId
from kgqa.settings.values import Settings
from kgqa.storage.cache import Cache
from kgqa.text.hints import Command, Hint

Verdict = Literal["ok", "warning", "failed", "skipped"]
ESSENTIAL = ("reachable", "graph", "schema", "tables", "labels", "latency")
"""Checks that must be made before evaluations are reliable."""
CONTENT_SECONDS, MEASURED_SECONDS, ALL_SECONDS = 30.0, 5.0, 180.0
"""Time limits, in seconds, of a query about the graph's content, of a measured query, and of all queries together."""
LEFT_OUT = "Left out on request."
AGAIN = Hint("Find out what keeps the server busy, and run ", Command("doctor"), " again.")
REASONS = {
    "store": "There is no graph to check.",
    "view": "The graph could not be chosen.",
    "graph": "No schema could be chosen.",
    "sample": "No edges were sampled.",
    "bears_load": "Skipped, because the server is a public service, on which this check would put too much load.",
}
"""Why a check is skipped, by the attribute of `Subject` that it needs and that no earlier check has set."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    `found`: what was found, with numbers and units. `remedy`: what the user should do, empty if nothing. The verdict
    `failed` means that evaluations are not reliable; `warning`, that evaluations are reliable but slow or incomplete.
    """

    verdict: Verdict
    name: str
    found: str
    remedy: Hint | str = ""


ok, warning, failed, skipped = (partial(Finding, verdict) for verdict in ("ok", "warning", "failed", "skipped"))


def first_case(*cases: tuple[object, Finding], otherwise: Finding) -> Finding:
    """Return the finding of the first case whose condition is true."""
    return next((finding for condition, finding in cases if condition), otherwise)


@dataclass(frozen=True, slots=True)
class Health:
    """The findings of all checks, in order.

    `graph`: None if no graph could be opened. `seconds`: total time. `complete`: False if the user stopped the checks.
    """

    checks: tuple[Finding, ...]
    graph: GraphId | None
    seconds: float
    complete: bool

    @property
    def unseen(self) -> list[str]:
        """The essential checks that were not made."""
        return [check.name for check in self.checks if check.name in ESSENTIAL and check.verdict == "skipped"]

    @property
    def trusted(self) -> bool:
        """Whether evaluations are reliable: no check failed, and all essential checks were made."""
        return self.complete and not self.unseen and all(check.verdict != "failed" for check in self.checks)


class LimitedStore:
    """A store whose queries end after `seconds` each, and after ALL_SECONDS together."""

    def __init__(self, store: Store) -> None:
        self._store, self.seconds, self._ends = store, CONTENT_SECONDS, time.monotonic() + ALL_SECONDS

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._store, name)
        return partial(self._limited, member) if name in ("select", "ask") else member

    def _limited(self, run: Callable[..., Any], query: str, *, timeout: float | None = None, **options: Any) -> Any:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise StoreTimeout(f"Earlier queries have used up the time limit of {ALL_SECONDS:.0f} s for all queries.")
        return run(query, timeout=min(self.seconds, left, timeout or math.inf), **options)


@dataclass
class Subject:
    """What is examined. Checks set the attributes without a default, one after the other.

    Attributes:
        settings: the settings, including the graph's own.
        cache: the cache that the settings name.
        asks_model: whether to call the language model.
        say: function called with a message before slow work that is done only once.
        access: login and limits of requests; None if the graph is not on a server.
        query_seconds: duration of an exploration query (p95); 0 if it was not measured.
        opened: closes what the checks have opened.
        store: the graph's store, once it has answered. id: the graph, as far as it is known.
        bears_load: set if the store is not a public service, on which the checks must not put load.
        view: the named graphs; empty for the default graph.
        graph: the graph with its schema. sample: ends of some of its edges, without mediators.
    """

    settings: Settings
    cache: Cache
    asks_model: bool = True
    say: Callable[[str], None] = lambda text: None
    access: Access | None = None
    query_seconds: float = 0.0
    opened: ExitStack = field(default_factory=ExitStack)
    store: LimitedStore = field(init=False)
    id: GraphId = field(init=False)
    bears_load: bool = field(init=False)
    view: tuple[Entity, ...] = field(init=False)
    graph: KnowledgeGraph = field(init=False)
    sample: list[Entity] = field(init=False)

    def lacks(self, needs: str) -> str:
        """Explain why a check is skipped that needs these attributes; return an empty text if all are there."""
        return next((REASONS[each] for each in needs.split() if not hasattr(self, each)), "")
