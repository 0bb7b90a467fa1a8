"""Fingerprints of graphs on servers, computed from the number of triples, in total and for some predicates.

The same data has the same fingerprint on all servers of the same kind. A change is missed if all counts stay equal. A
change to a large graph may be missed for up to a day, because counts that took long are saved and used for a day. If it
takes too long to count all triples (billions), the fingerprint is computed only from the counts of triples with some
predicates.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Sequence
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
"""Every server counts this many triples in much less than COUNT_SECONDS. Virtuoso counts five million in 0.1 s."""


class CountingStore(Store, Protocol):
    """A store that can save counts between runs, such as `EndpointStore`."""

    def load_fact(self, name: str, graphs: Sequence[str], *, max_age: float) -> str | None:
        """Return the text saved for these graphs less than `max_age` seconds ago; None if there is none."""
        ...

    def save_fact(self, name: str, graphs: Sequence[str], text: str | None) -> None:
        """Save a short text for these graphs; None removes the saved text."""
        ...


class EndpointFingerprint:
    """The fingerprint of some graphs of an endpoint, computed when first needed. Thread-safe."""

    def __init__(self, store: CountingStore, graphs: Sequence[str]) -> None:
        self._store = store
        self._graphs = tuple(graphs)
        self._view = tuple(map(Entity, graphs))
        self._lock = threading.Lock()
        self._counts: dict[str, int | None] | None = None
        self._has_many: bool | None = None

    @property
    def triples(self) -> int | None:
        """The number of triples; None if counting took too long."""
        return (self._counted() or {}).get("triples")

    @property
    def large(self) -> bool:
        """Whether there are too many triples to count in time, judged by counts of predicates or a limited count."""
        counts = self._counted() or {}
        return counts.get("triples") is None and (self._is_large(counts) or self._has_many_triples())

    @property
    def text(self) -> str:
        """The fingerprint: `remote-` and 25 hex digits. Empty if counting took too long; then no result is cached.

        Raises:
            StoreUnavailable: the server cannot be reached.
        """
        return self.text_within(None)

    def text_within(self, seconds: float | None) -> str:
        """Return `text`, or an empty string if another thread is still counting after `seconds` (None: no limit)."""
        counts = self._counted(seconds)
        if counts is None or not any(counts.values()):
            return ""
        facts = json.dumps([sorted(self._graphs), counts], sort_keys=True)
        return "remote-" + hashlib.sha256(facts.encode()).hexdigest()[:25]

    def _counted(self, seconds: float | None = None) -> dict[str, int | None] | None:
        if self._counts is not None:
            return self._counts
        if not self._lock.acquire(timeout=-1 if seconds is None else max(0.0, seconds)):
            return None
        try:
            self._counts = self._counts or self._load() or self._count_all()
            return self._counts
        finally:
            self._lock.release()

    def _count_all(self) -> dict[str, int | None]:
        started = time.monotonic()
        deadline = started + ALL_COUNTS_SECONDS
        counts: dict[str, int | None] = {"triples": self._count(deadline, "count_triples", view=self._view)}
        for predicate in detection_predicates():
            counts[predicate] = self._count(deadline, "count_predicate", view=self._view, predicate=Entity(predicate))
        # if the triples could not be counted, perhaps the server was busy: do not save such counts for a day
        if time.monotonic() - started > SLOW_SECONDS and (counts["triples"] or self._is_large(counts)):
            self._store.save_fact("counts", self._graphs, json.dumps(counts))
        return counts

    @staticmethod
    def _is_large(counts: dict[str, int | None]) -> bool:
        """Return whether the sum of all counts exceeds LARGE_TRIPLES."""
        return sum(count or 0 for count in counts.values()) > LARGE_TRIPLES

    def _has_many_triples(self) -> bool:
        """Return whether a count that stops at twice LARGE_TRIPLES reaches that number. The query is sent only once."""
        with self._lock:
            if self._has_many is None:
                limit, at = 2 * LARGE_TRIPLES, time.monotonic() + COUNT_SECONDS
                self._has_many = self._count(at, "count_up_to", view=self._view, most=limit) == limit
            return self._has_many

    def _load(self) -> dict[str, int | None] | None:
        text = self._store.load_fact("counts", self._graphs, max_age=MAX_AGE_SECONDS)
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
