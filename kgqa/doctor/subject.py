"""What the checks examine: the settings, and what earlier checks opened, chosen or drawn."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kgqa.doctor.sample import Sample
from kgqa.errors import StoreTimeout
from kgqa.graph.endpoint.access import Access
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.store import Store
from kgqa.llm.backends.constraints import ConstraintMode
from kgqa.llm.client import Completion
from kgqa.model import Entity, GraphId
from kgqa.settings.values import Settings
from kgqa.storage.cache import Cache

QUERY_SECONDS = 5.0
"""Time limit of a query, in seconds; a slower query would also be too slow for questions."""
RETRY_FACTOR = 6
"""A query that timed out is retried with its limit multiplied by this factor, because the server may have been busy."""
ALL_SECONDS = 180.0
"""Time limit of all queries together, in seconds."""
REASONS = {
    "store": "There is no graph to check.",
    "server": "Only a server has a profile.",
    "view": "The graph could not be queried.",
    "bears_load": "Skipped, because the server is a public service, on which this check would put too much load.",
    "graph": "No schema could be chosen.",
    "sample": "No edges were sampled.",
    "model": "The model does not answer.",
}
"""Why a check is skipped, by the attribute of `Subject` that it needs and that no earlier check has set."""


class LimitedStore:
    """Limits each query of a store to QUERY_SECONDS, and all queries to ALL_SECONDS. Does everything else as the store.

    Args:
        access: the options of requests, if the store is a server.

    Attributes:
        retries_timeouts: whether a query that timed out is retried with more time; False while durations are measured.
        scans: whether queries may read every triple, which the examination decides by its own count of triples.
    """

    def __init__(self, store: Store, access: Access | None = None) -> None:
        self.access = access or Access()
        self.retries_timeouts = self.scans = True
        self._store = store
        self._ends = time.monotonic() + ALL_SECONDS

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._store, name)
        return partial(self._limited, member) if name in ("select", "ask") else member

    def may_scan(self, graphs: Sequence[str] = ()) -> bool:
        return self.scans

    def _limited(self, run: Callable[..., Any], query: str, *, timeout: float | None = None, **options: Any) -> Any:
        limit = 0.0
        error = StoreTimeout(f"Earlier queries have used up the time limit of {ALL_SECONDS:.0f} s for all queries.")
        for longest in (QUERY_SECONDS, RETRY_FACTOR * QUERY_SECONDS)[: 1 + self.retries_timeouts]:
            before, limit = limit, min(longest, timeout or math.inf, self._ends - time.monotonic())
            if limit <= before:
                break
            try:
                return run(query, timeout=limit, **options)
            except StoreTimeout as timed_out:
                error = timed_out
        raise error


@dataclass(frozen=True)
class ModelCalls:
    """The calls of the model of the tournament.

    `all`: all completions. `concurrent`: those of AT_ONCE calls, which together took `seconds`. `mode`: how the server
    constrains the model to choices. `price`: USD per million prompt and completion tokens, None if unknown.
    """

    all: list[Completion]
    concurrent: list[Completion]
    seconds: float
    mode: ConstraintMode
    price: tuple[float, float] | None


@dataclass
class Subject:
    """What is examined. Checks set the attributes without a default, one after the other.

    Attributes:
        settings: the settings, including the graph's own.
        cache: the cache that the settings name.
        asks_model: whether to call the language model.
        say: function called with a message before slow work that is done only once.
        id: the graph, as far as known; None if there is none.
        query_seconds: duration of an exploration query (p95); None if it was not measured.
        encoder: whether embeddings are available.
        reasons: why checks are skipped that need something which is missing.
        opened: closes what the checks have opened.
        store: the graph's store, once it has answered. server: the same, if it is an endpoint with a profile.
        bears_load: set if the store is not a public service, on which the checks must not put load.
        view: the named graphs; empty for the default graph.
        graph: the graph with its schema. sample: a sample of it.
        model: the calls of the language model.
    """

    settings: Settings
    cache: Cache
    asks_model: bool = True
    say: Callable[[str], None] = lambda text: None
    id: GraphId | None = None
    query_seconds: float | None = None
    encoder: bool = False
    reasons: dict[str, str] = field(default_factory=REASONS.copy)
    opened: ExitStack = field(default_factory=ExitStack)
    store: LimitedStore = field(init=False)
    server: LimitedStore = field(init=False)
    bears_load: bool = field(init=False)
    view: tuple[Entity, ...] = field(init=False)
    graph: KnowledgeGraph = field(init=False)
    sample: Sample = field(init=False)
    model: ModelCalls = field(init=False)

    @property
    def triples(self) -> int | None:
        """The number of triples; None if it is not known."""
        return self.id.triples if self.id else None

    def lacks(self, needs: str) -> str:
        """Explain why a check is skipped that needs these attributes; return an empty text if all are there."""
        return next((self.reasons[each] for each in needs.split() if not hasattr(self, each)), "")
