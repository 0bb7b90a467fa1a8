"""Fingerprints of graphs too large to read whole: the number of triples, and of some predicates.

The same data has the same fingerprint on any server of one kind. A change that leaves all counts equal goes unnoticed;
so does a change to a large graph for up to a day, as counts that take long are kept. Where all triples take too long to
count (billions), the predicates alone make the fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from typing import Any, Protocol

from kgqa.errors import PartialResult, QueryRejected, StoreTimeout
from kgqa.graph.query.templates import render
from kgqa.graph.store import Store
from kgqa.model import Entity, Literal
from kgqa.schema import BUNDLED, bundled_schema

SLOW_SECONDS = 2.0
MAX_AGE_SECONDS = 86_400.0
COUNT_SECONDS = 40.0
ALL_COUNTS_SECONDS = 90.0
LARGE_TRIPLES = 10_000_000
"""Triples that any server counts well within COUNT_SECONDS: Virtuoso counts five million in 0.1 s."""


class CountingStore(Store, Protocol):
    """A store that can keep counts between runs, as `EndpointStore` does."""

    @property
    def graphs(self) -> tuple[str, ...]:
        """IRIs of the graphs in view; empty for the default graph."""
        ...

    def load_fact(self, name: str, *, max_age: float) -> str | None:
        """Return a short text stored about this view less than `max_age` seconds ago."""
        ...

    def save_fact(self, name: str, text: str | None) -> None:
        """Store a short text about this view; None removes it."""
        ...


class EndpointFingerprint:
    """The fingerprint of an endpoint's view, counted when first needed. Thread-safe."""

    def __init__(self, store: CountingStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._counts: dict[str, int | None] | None = None
        self._has_many: bool | None = None

    @property
    def triples(self) -> int | None:
        """The number of triples, None where counting took too long."""
        return (self._counted() or {}).get("triples")

    @property
    def large(self) -> bool:
        """Whether there are too many triples to count in time: single predicates, or a limited count, show many."""
        counts = self._counted() or {}
        return counts.get("triples") is None and (self._is_large(counts) or self._has_many_triples())

    @property
    def text(self) -> str:
        """`remote-` and 25 hex digits; empty where nothing could be counted in time, so that nothing is cached.

        Raises:
            StoreUnavailable: the server cannot be reached.
        """
        return self.text_within(None)

    def text_within(self, seconds: float | None) -> str:
        """Return `text`, or an empty text if another thread is still counting after `seconds`; None for no limit."""
        counts = self._counted(seconds)
        if counts is None or not any(counts.values()):
            return ""
        facts = json.dumps([sorted(self._store.graphs), counts], sort_keys=True)
        return "remote-" + hashlib.sha256(facts.encode()).hexdigest()[:25]

    def _counted(self, seconds: float | None = None) -> dict[str, int | None] | None:
        if self._counts is not None:
            return self._counts
        if not self._lock.acquire(timeout=-1 if seconds is None else max(0.0, seconds)):
            return None
        try:
            if self._counts is None:
                self._counts = self._load() or self._count_all()
            return self._counts
        finally:
            self._lock.release()

    def _count_all(self) -> dict[str, int | None]:
        started = time.monotonic()
        view = tuple(Entity(iri) for iri in self._store.graphs)
        deadline = started + ALL_COUNTS_SECONDS
        counts: dict[str, int | None] = {"triples": self._count(deadline, "count_triples", view=view)}
        for predicate in detection_predicates():
            counts[predicate] = self._count(deadline, "count_predicate", view=view, predicate=Entity(predicate))
        # without the triples the server may just have been busy: do not keep that for a day
        if time.monotonic() - started > SLOW_SECONDS and (counts["triples"] or self._is_large(counts)):
            self._store.save_fact("counts", json.dumps(counts))
        return counts

    @staticmethod
    def _is_large(counts: dict[str, int | None]) -> bool:
        """Return whether the predicates that could be counted have many triples together."""
        return sum(count or 0 for count in counts.values()) > LARGE_TRIPLES

    def _has_many_triples(self) -> bool:
        """Return whether a count that stops at twice LARGE_TRIPLES gets that far. Sent once."""
        with self._lock:
            if self._has_many is None:
                limit, view = 2 * LARGE_TRIPLES, tuple(Entity(iri) for iri in self._store.graphs)
                count = self._count(time.monotonic() + COUNT_SECONDS, "count_up_to", view=view, most=limit)
                self._has_many = count == limit
            return self._has_many

    def _load(self) -> dict[str, int | None] | None:
        text = self._store.load_fact("counts", max_age=MAX_AGE_SECONDS)
        try:
            found = json.loads(text) if text else None
        except ValueError:
            return None
        return found if isinstance(found, dict) and "triples" in found else None

    def _count(self, deadline: float, template: str, **values: Any) -> int | None:
        seconds = min(COUNT_SECONDS, deadline - time.monotonic())
        if seconds <= 0:
            return None
        try:
            ((count,),) = self._store.select(render(template, **values), timeout=seconds, fresh=True)
            return int(count.value) if isinstance(count, Literal) else None
        except (StoreTimeout, PartialResult, QueryRejected, ValueError):
            return None


def detection_predicates() -> tuple[str, ...]:
    """Return the predicates by which the bundled schemas are detected."""
    return tuple(dict.fromkeys(p for name in BUNDLED for p in bundled_schema(name).detect))
