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

from kgqa.errors import PartialResult, QueryRejected, StoreTimeout
from kgqa.graph.endpoint.result_cache import ResultCache
from kgqa.graph.query.templates import render
from kgqa.graph.store import Rows, single_count
from kgqa.model import Entity
from kgqa.net.threads import question_end
from kgqa.schema import BUNDLED, bundled_schema

SLOW_SECONDS = 2.0
COUNT_SECONDS = 40.0
ALL_COUNTS_SECONDS = 90.0
COUNTS_MAX_AGE = 86_400.0
"""Seconds for which saved counts are used."""
QUESTION_SHARE = 0.25
"""Counting takes at most this share of the time that a question has left."""
RETRY_FACTOR = 1.5
"""A query or count that did not end in time is repeated only with at least this many times as much time."""
MAX_SCANNED_TRIPLES = 20_000_000
"""Size, in triples, of the largest graph on a server for which kgqa runs queries that read every triple.

On 5 million triples, Virtuoso takes 10 s for the slowest of these queries, and it stops queries after 60 s. Every
server counts up to this number in much less than COUNT_SECONDS."""
AT_LEAST = "at least"
"""The key of a count that ends at MAX_SCANNED_TRIPLES; made only if all triples could not be counted."""
Counts = dict[str, int | None]


class EndpointFingerprint:
    """The fingerprint of some graphs of an endpoint, computed when first needed. Thread-safe.

    Args:
        select: runs a query, without the cache of results.
        cache, key: where counts that took long are stored; None for nowhere.
    """

    def __init__(
        self,
        graphs: Sequence[str],
        *,
        select: Callable[..., Rows],
        cache: ResultCache | None,
        key: bytes,
    ) -> None:
        self._graphs = graphs
        self._select, self._cache, self._key = select, cache, key
        self._lock = threading.Lock()
        self._counts: Counts | None = None
        self._incomplete: Counts = {}
        """Counts in the time of a question that was too short for all of them."""
        self._tried = 0.0
        """The seconds in which the counts could not be completed."""

    @property
    def is_large(self) -> bool:
        """Whether there are more than MAX_SCANNED_TRIPLES; True if the server was too busy to tell."""
        counts = self.counts() or self._incomplete
        triples = counts.get("triples")
        if triples is None:
            return counts.get(AT_LEAST) in (None, MAX_SCANNED_TRIPLES)
        return triples > MAX_SCANNED_TRIPLES

    def text(self, *, wait: float = ALL_COUNTS_SECONDS) -> str:
        """Return the fingerprint: `remote-` and 25 hex digits. Empty if it could not be computed in time.

        Args:
            wait: seconds to wait for another thread that is counting.

        Raises:
            StoreUnavailable: the server cannot be reached.
        """
        counts = {name: count for name, count in self.counts(wait=wait).items() if name != AT_LEAST}
        if not any(counts.values()):
            return ""
        facts = json.dumps([sorted(self._graphs), counts], sort_keys=True)
        return "remote-" + hashlib.sha256(facts.encode()).hexdigest()[:25]

    def counts(self, *, wait: float = ALL_COUNTS_SECONDS) -> Counts:
        """Return the number of triples, in total and by predicate; nothing if they could not be counted in time."""
        end, seconds = question_end.get(), ALL_COUNTS_SECONDS
        if end is not None:
            seconds = min(seconds, max(0.001, QUESTION_SHARE * (end - time.monotonic())))
        if self._counts is None and self._lock.acquire(timeout=min(wait, seconds)):
            try:
                if self._counts is None and seconds >= RETRY_FACTOR * self._tried:
                    saved = self._cache.get(self._key, max_age=COUNTS_MAX_AGE) if self._cache else None
                    self._counts = json.loads(saved) if saved else self._count_all(seconds)
                    self._tried = seconds
            finally:
                self._lock.release()
        return self._counts or {}

    def _count_all(self, seconds: float) -> Counts | None:
        """Count everything; return None if there is less time than a count may take, and it is not enough."""
        started = time.monotonic()
        at = started + seconds
        # half of the time is left to count up to a number
        counts: Counts = {"triples": self._count(at - seconds / 2, "count_triples")}
        if counts["triples"] is None:
            counts[AT_LEAST] = self._count(at, "count_up_to", most=MAX_SCANNED_TRIPLES)
        # the predicates by which the bundled schemas are detected
        for predicate in dict.fromkeys(p for name in BUNDLED for p in bundled_schema(name).detect):
            counts[predicate] = self._count(at, "count_predicate", predicate=Entity(predicate))
        if None in counts.values() and seconds < COUNT_SECONDS:
            self._incomplete = counts
            return None
        # if not even some triples could be counted, the server was busy: do not save such counts for a day
        is_slow = time.monotonic() - started > SLOW_SECONDS
        if self._cache and is_slow and (counts["triples"] or counts.get(AT_LEAST)):
            self._cache.put(self._key, json.dumps(counts).encode())
        return counts

    def _count(self, at: float, template: str, **values: Any) -> int | None:
        seconds = min(COUNT_SECONDS, at - time.monotonic())
        try:
            query = render(template, view=tuple(map(Entity, self._graphs)), **values)
            return single_count(self._select(query, timeout=seconds, fresh=True)) if seconds > 0 else None
        except (StoreTimeout, PartialResult, QueryRejected):
            return None
