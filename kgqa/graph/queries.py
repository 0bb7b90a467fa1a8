"""Queries over a view of a store: charged to a question's budget, batched, side by side, and never asked twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

from kgqa.errors import PartialResult, QueryRejected, ResultCapped, RowCapMet, StoreCrashed, StoreTimeout
from kgqa.graph.lookups import Branch, NodeLookup
from kgqa.graph.query.templates import render
from kgqa.graph.store import Row, Rows, Store
from kgqa.model import Entity
from kgqa.net.threads import Item, Result, ThreadPool, stoppable
from kgqa.trace import Timeout
from kgqa.trace.trace import Trace

Lookup = TypeVar("Lookup", Branch, NodeLookup)
Errors = tuple[type[Exception], ...]
TIME_SHARE = 0.25
"""Share of the time limit of a query that a batch may take; each half of a batch gets half the time."""
HALVED = (StoreTimeout, PartialResult, ResultCapped, QueryRejected, StoreCrashed)
"""Errors of a batch after which it is halved, because a single item may be the cause."""
KEPT_ROWS = 10_000
"""Most rows of a result that is kept until the question ends."""


class Queries:
    """Runs queries over a view of a store. The queries of a question are charged to it and not run twice.

    Args:
        view: IRIs of the graphs to query; empty for the default graph.
        timeout: maximum seconds per query.
        trace: the trace of the question; None if the queries are charged to no question.
        pool: returns the threads that all questions about a graph share; None for new ones.
    """

    def __init__(
        self,
        store: Store,
        view: tuple[Entity, ...],
        *,
        timeout: float,
        trace: Trace | None = None,
        pool: Any = None,
    ) -> None:
        self.store = store
        self.view = view
        self.timeout = timeout
        self.trace = trace
        # the concurrency of a server is known only by a query
        self._pool = pool or cache(lambda: ThreadPool(max(0, store.capabilities.concurrency - 1), name="kgqa-graph"))
        # both by the version of the view, because an edit changes the results
        self._results: dict[tuple[str, str], Rows] = {}
        self._rows: dict[tuple[str, Branch | NodeLookup], tuple[list[Row], int | None]] = {}

    def charged_to(self, trace: Trace) -> Queries:
        """Return an object that runs the queries of one question in the same threads."""
        return Queries(self.store, self.view, timeout=self.timeout, trace=trace, pool=self._pool)

    def close(self) -> None:
        """End the threads."""
        if self._pool.cache_info().currsize:
            self._pool().close()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item], *, tolerated: Errors = ()) -> list[Any]:
        """Call a function for each item, as many concurrently as the store allows. See `ThreadPool.map`."""
        pool: ThreadPool = self._pool()
        return pool.map(function, items, tolerated=tolerated, has_room=lambda: self.store.has_free_slot)

    def select(self, name: str, **values: Any) -> Rows:
        """Run the SELECT query queries/NAME.rq with these values. Raises the same errors as `rows`."""
        return self.rows(render(name, view=self.view, **values))

    def rows(self, query: str) -> Rows:
        """Run a SELECT query, unless this question has run it before. Raises `ResultCapped` and `StoreError`."""
        key = (self._version(), query)
        if key in self._results:
            return self._results[key]
        rows = self._select(query)
        if self.trace and len(rows) <= KEPT_ROWS:
            self._results[key] = rows
        return rows

    def _select(self, query: str, *, seconds: float | None = None, recorded: bool = True) -> Rows:
        """Run a SELECT query.

        Args:
            seconds: maximum seconds, if less than the graph's own timeout.
            recorded: whether the trace records a timeout; False if smaller queries are run instead then.

        Raises:
            ResultCapped: the server cut the result at its row cap. A path with a cut result cannot be compared with
                other paths.
            StoreError: see `Store.select`.
        """
        try:
            with self._charged(seconds, recorded=recorded) as limit:
                return self.store.select(query, timeout=limit)
        except RowCapMet as error:
            raise ResultCapped(str(error)) from error

    def _version(self) -> str:
        return self.store.version_of([graph.iri for graph in self.view])

    def ask(self, query: str) -> bool:
        """Run an ASK query. Raises the same errors as `Store.ask`."""
        with self._charged() as limit:
            return self.store.ask(query, timeout=limit)

    @contextmanager
    def _charged(self, seconds: float | None = None, *, recorded: bool = True) -> Iterator[float | None]:
        """Charge a query to the budget and yield the seconds that it may take. The trace records a timeout."""
        limit = self.timeout if seconds is None else min(seconds, self.timeout)
        if self.trace is None:
            yield limit
            return
        try:
            with stoppable(self.trace.stopped):
                yield self.trace.charge_query(limit)
        except StoreTimeout as error:
            if recorded:
                self.trace.record(Timeout(error=type(error).__name__))
            raise

    def look_up(
        self,
        lookups: Iterable[Lookup],
        *,
        limit: int | None = None,
        seconds: float | None = None,
        tolerated: Errors = (),
    ) -> list[Any]:
        """Return the rows of each look-up, or the error of its query if that is tolerated.

        One query serves as many look-ups as fit. If it fails, each half of them is tried with half the time; if all
        halves fail, too, each look-up is tried alone.

        Args:
            limit: maximum number of rows of a look-up; None for all.
            seconds: maximum seconds per query, if less than the graph's own timeout.

        Raises:
            StoreError: the query of a single look-up failed with an error that is not tolerated, or a batch with an
                error that is not the fault of a look-up.
        """
        lookups = list(lookups)
        version = self._version()
        found: dict[Lookup, Any] = {each: self._known(version, each, limit) for each in lookups}
        new = [each for each, rows in found.items() if rows is None]
        size = self._size(new, limit)
        kinds = (list(some) for _, some in groupby(new, key=attrgetter("kind")))
        batches = [some[start : start + size] for some in kinds for start in range(0, len(some), size)]
        share = TIME_SHARE * (self.timeout if seconds is None else min(seconds, self.timeout))
        halves: list[list[Lookup]] = []
        while batches:
            results = self._run(version, batches, limit, share, seconds, (*HALVED, *tolerated))
            hopeless = bool(halves) and all(isinstance(rows, Exception) for rows in results)
            halves = []
            for batch, rows in zip(batches, results):
                if not isinstance(rows, Exception):
                    found.update(zip(batch, rows))
                elif len(batch) > 1:
                    half = 1 if hopeless else (len(batch) + 1) // 2
                    halves += [batch[start : start + half] for start in range(0, len(batch), half)]
                elif isinstance(rows, tolerated):
                    found[batch[0]] = rows
                else:
                    raise rows
            batches, share = halves, share / 2
        return [found[each] for each in lookups]

    def _size(self, lookups: Sequence[Lookup], limit: int | None) -> int:
        size = lookups[0].size if lookups else 1
        cap = self.store.capabilities.row_cap if limit is not None and lookups else None
        if cap is None or limit is None or isinstance(lookups[0], NodeLookup):
            return size
        return max(1, min(size, (cap - 1) // limit))  # the rows of a batch stay below the row cap

    def _run(
        self,
        version: str,
        batches: Sequence[Sequence[Lookup]],
        limit: int | None,
        share: float,
        seconds: float | None,
        tolerated: Errors,
    ) -> list[Any]:
        """Return the lists of rows of each batch, or its error."""

        def run(batch: Sequence[Lookup]) -> list[list[Row]]:
            kind = type(batch[0])
            alone = len(batch) == 1
            query = kind.query(batch, self.view, limit)
            result = self._select(query, seconds=seconds if alone else share, recorded=alone)
            rows = kind.rows(batch, result, limit)
            if rows is None:
                raise PartialResult("The rows of one node may take the place of those of another.")
            if self.trace:
                short = ((each, own) for each, own in zip(batch, rows) if len(own) <= KEPT_ROWS)
                self._rows.update({(version, each): (own, limit) for each, own in short})
            return rows

        if len(batches) > 1:
            return self.map(run, batches, tolerated=tolerated)
        try:
            return [run(batches[0])]
        except tolerated as error:
            return [error]

    def _known(self, version: str, lookup: Lookup, limit: int | None) -> list[Row] | None:
        """Return the rows of a look-up that this question has asked before; None if it has not, or for too few."""
        rows, asked = self._rows.get((version, lookup), (None, None))
        if rows is None or asked is None or len(rows) < asked:
            return rows if limit is None or rows is None else rows[:limit]
        return rows[:limit] if limit is not None and limit <= asked else None
