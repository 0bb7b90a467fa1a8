"""A fingerprint for a graph that cannot be read whole: how many triples it has, and how many of some telling relations.

The same data gives the same fingerprint on any server of one kind. Counts that take long are kept for a while, so a change
that leaves all of them alone, or one to such a large graph within that while, is not seen. Of a graph whose triples take
too long to count (billions), the telling relations alone make the fingerprint.
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
from kgqa.model import Entity
from kgqa.schema import BUNDLED, bundled_schema

SLOW_SECONDS = 2.0
KEPT_SECONDS = 86_400.0
COUNT_SECONDS = 40.0
ALL_COUNTS_SECONDS = 90.0
MANY = 10_000_000
"""Triples that a server which answers at all counts well within COUNT_SECONDS: Virtuoso five million in 0.1 s."""


class CountingStore(Store, Protocol):
    """A server that keeps what was counted, as `EndpointStore` does."""

    @property
    def graphs(self) -> tuple[str, ...]:
        """IRIs of the graphs that are looked at; empty for the default graph."""
        ...

    def kept_fact(self, name: str, *, younger: float) -> str | None:
        """A short text kept about this view, if it is younger than so many seconds."""
        ...

    def keep_fact(self, name: str, text: str | None) -> None:
        """Keep a short text about this view; None forgets it."""
        ...


class RemoteFingerprint:
    """Measured when it is first asked for. Thread-safe."""

    def __init__(self, store: CountingStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._counts: dict[str, int | None] | None = None
        self._many: bool | None = None

    @property
    def triples(self) -> int | None:
        return (self._measured() or {}).get("triples")

    @property
    def large(self) -> bool:
        """Whether the triples could not be counted in time and single predicates were found to have many of them."""
        counts = self._measured() or {}
        return counts.get("triples") is None and (self._is_large(counts) or self._has_many())

    @property
    def text(self) -> str:
        """`remote-` and 25 hex digits; empty where nothing could be counted in time: then nothing is kept under it.

        Raises:
            StoreUnavailable: the server is not there.
        """
        return self.text_within(None)

    def text_within(self, seconds: float | None) -> str:
        """As `text`, and empty where another thread is still counting after so many seconds. None waits for it."""
        counts = self._measured(seconds)
        if counts is None or not any(counts.values()):
            return ""
        facts = json.dumps([sorted(self._store.graphs), counts], sort_keys=True)
        return "remote-" + hashlib.sha256(facts.encode()).hexdigest()[:25]

    def _measured(self, seconds: float | None = None) -> dict[str, int | None] | None:
        if self._counts is not None:
            return self._counts
        if not self._lock.acquire(timeout=-1 if seconds is None else max(0.0, seconds)):
            return None
        try:
            if self._counts is None:
                self._counts = self._kept() or self._measure()
            return self._counts
        finally:
            self._lock.release()

    def _measure(self) -> dict[str, int | None]:
        started = time.monotonic()
        view = tuple(Entity(iri) for iri in self._store.graphs)
        last = started + ALL_COUNTS_SECONDS
        counts: dict[str, int | None] = {"triples": self._count(last, "count_triples", view=view)}
        for predicate in telling_predicates():
            counts[predicate] = self._count(last, "count_predicate", view=view, predicate=Entity(predicate))
        # without the triples it may have been the server, not the graph: that is not to last for a day
        if time.monotonic() - started > SLOW_SECONDS and (counts["triples"] or self._is_large(counts)):
            self._store.keep_fact("counts", json.dumps(counts))
        return counts

    @staticmethod
    def _is_large(counts: dict[str, int | None]) -> bool:
        """Whether single predicates could be counted, and found to be many, where all triples together could not."""
        return sum(count or 0 for count in counts.values()) > MANY

    def _has_many(self) -> bool:
        """Whether a count that stops at twice MANY gets as far as that. Asked of the server once."""
        with self._lock:
            if self._many is None:
                most, view = 2 * MANY, tuple(Entity(iri) for iri in self._store.graphs)
                self._many = self._count(time.monotonic() + COUNT_SECONDS, "count_up_to", view=view, most=most) == most
            return self._many

    def _kept(self) -> dict[str, int | None] | None:
        text = self._store.kept_fact("counts", younger=KEPT_SECONDS)
        try:
            found = json.loads(text) if text else None
        except ValueError:
            return None
        return found if isinstance(found, dict) and "triples" in found else None

    def _count(self, last: float, template: str, **values: Any) -> int | None:
        seconds = min(COUNT_SECONDS, last - time.monotonic())
        if seconds <= 0:
            return None
        try:
            ((count,),) = self._store.select(render(template, **values), timeout=seconds, fresh=True)
            return int(count.value)
        except (StoreTimeout, PartialResult, QueryRejected, ValueError, AttributeError):
            return None


def telling_predicates() -> tuple[str, ...]:
    """The predicates by which bundled schemas are told from each other."""
    return tuple(dict.fromkeys(p for name in BUNDLED for p in bundled_schema(name).detect))
