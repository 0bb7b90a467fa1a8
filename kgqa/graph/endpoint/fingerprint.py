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
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kgqa.errors import PartialResult, QueryRejected, StoreTimeout
from kgqa.graph.query.templates import render
from kgqa.graph.store import Rows, single_count
from kgqa.model import Entity
from kgqa.net.threads import question_end
from kgqa.schema import BUNDLED, bundled_schema

SLOW_SECONDS = 2.0
COUNT_SECONDS = 40.0
ALL_COUNTS_SECONDS = 90.0
QUESTION_SHARE = 0.25
"""Counting takes at most this share of the time that a question has left."""
RETRY_FACTOR = 1.5
"""Counts that were not complete in time are repeated with at least this many times as much time."""
LARGE_TRIPLES = 10_000_000
"""Every server counts this many triples in much less than COUNT_SECONDS. Virtuoso counts five million in 0.1 s."""
Counts = dict[str, int | None]


class EndpointFingerprint:
    """The fingerprint of some graphs of an endpoint, computed when first needed. Thread-safe.

    Args:
        select: runs a query, without the cache of results.
        load, save: read and write the text of counts that took long.
    """

    def __init__(
        self,
        graphs: Sequence[str],
        *,
        select: Callable[..., Rows],
        load: Callable[[], str | None],
        save: Callable[[str], None],
    ) -> None:
        self._graphs = tuple(graphs)
        self._view = tuple(map(Entity, graphs))
        self._select, self._load, self._save = select, load, save
        self._lock = threading.Lock()
        self._counts: Counts | None = None
        self._has_many: bool | None = None
        self._tried = 0.0
        """The seconds in which the counts could not be completed."""

    @property
    def triples(self) -> int | None:
        """The number of triples; None if counting took too long."""
        return self.counts().get("triples")

    @property
    def large(self) -> bool:
        """Whether there are too many triples to count in time, judged by counts of predicates or a limited count."""
        counts = self.counts()
        return counts.get("triples") is None and (_is_large(counts) or self._has_many_triples())

    def text(self, *, wait: float = ALL_COUNTS_SECONDS) -> str:
        """Return the fingerprint: `remote-` and 25 hex digits. Empty if it could not be computed in time.

        Args:
            wait: seconds to wait for another thread that is counting.

        Raises:
            StoreUnavailable: the server cannot be reached.
        """
        counts = self.counts(wait=wait)
        if not any(counts.values()):
            return ""
        facts = json.dumps([sorted(self._graphs), counts], sort_keys=True)
        return "remote-" + hashlib.sha256(facts.encode()).hexdigest()[:25]

    def counts(self, *, wait: float = ALL_COUNTS_SECONDS) -> Counts:
        """Return the number of triples, in total and by predicate; nothing if they could not be counted in time."""
        if self._counts is not None:
            return self._counts
        seconds = min(ALL_COUNTS_SECONDS, _question_seconds())
        if not self._lock.acquire(timeout=min(wait, seconds)):
            return {}
        try:
            if self._counts is None and seconds >= RETRY_FACTOR * self._tried:
                self._counts = self._loaded() or self._count_all(seconds)
                self._tried = seconds
            return self._counts or {}
        finally:
            self._lock.release()

    def _count_all(self, seconds: float) -> Counts | None:
        """Count everything; return None if there is less time than a count may take, and it is not enough."""
        started = time.monotonic()
        at = started + seconds
        counts: Counts = {"triples": self._count(at, "count_triples")}
        for predicate in detection_predicates():
            counts[predicate] = self._count(at, "count_predicate", predicate=Entity(predicate))
        if None in counts.values() and seconds < COUNT_SECONDS:
            return None
        # if the triples could not be counted, perhaps the server was busy: do not save such counts for a day
        if time.monotonic() - started > SLOW_SECONDS and (counts["triples"] or _is_large(counts)):
            self._save(json.dumps(counts))
        return counts

    def _has_many_triples(self) -> bool:
        """Return whether a count that stops at twice LARGE_TRIPLES reaches that number. The query is sent only once."""
        with self._lock:
            if self._has_many is None:
                limit, at = 2 * LARGE_TRIPLES, time.monotonic() + min(COUNT_SECONDS, _question_seconds())
                self._has_many = self._count(at, "count_up_to", most=limit) == limit
            return self._has_many

    def _loaded(self) -> Counts | None:
        try:
            counts = msgspec.json.decode(self._load() or "null", type=Counts | None)
        except msgspec.DecodeError:
            return None
        return counts if counts and "triples" in counts else None

    def _count(self, at: float, template: str, **values: Any) -> int | None:
        seconds = min(COUNT_SECONDS, at - time.monotonic())
        try:
            query = render(template, view=self._view, **values)
            return single_count(self._select(query, timeout=seconds, fresh=True)) if seconds > 0 else None
        except (StoreTimeout, PartialResult, QueryRejected):
            return None


def _question_seconds() -> float:
    """Return the seconds that a question of this thread can spare for counting."""
    end = question_end.get()
    return float("inf") if end is None else max(0.001, QUESTION_SHARE * (end - time.monotonic()))


def _is_large(counts: Counts) -> bool:
    """Return whether the sum of all counts exceeds LARGE_TRIPLES."""
    return sum(count or 0 for count in counts.values()) > LARGE_TRIPLES


def detection_predicates() -> tuple[str, ...]:
    """Return the predicates by which the bundled schemas are detected."""
    return tuple(dict.fromkeys(p for name in BUNDLED for p in bundled_schema(name).detect))
