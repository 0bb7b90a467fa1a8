"""Queries over a view of a store: charged to a question's budget, batched, side by side, and never asked twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from kgqa.errors import PartialResult, QueryRejected, ResultCapped, RowCapMet, StoreCrashed, StoreTimeout
from kgqa.graph.editing import batches
from kgqa.graph.query.text import Node, Variable, render, render_term, term_list, values_clause
from kgqa.graph.store import Row, Rows, Store, count_value
from kgqa.model import Entity, Value
from kgqa.net.threads import Item, Result, ThreadPool, stoppable
from kgqa.trace import Timeout
from kgqa.trace.trace import Trace

Errors = tuple[type[Exception], ...]
TIME_SHARE = 0.25
"""Share of the time limit of a query that a batch may take; each half of a batch gets half the time."""
HALVED = (StoreTimeout, PartialResult, ResultCapped, QueryRejected, StoreCrashed)
"""Errors of a batch after which it is halved, because a single item may be the cause."""
KEPT_ROWS = 10_000
"""Most rows of a result that is kept until the question ends."""


FIXED_ORDER = "# from the first line to the last\n"
"""The comment by which a store keeps the order of the joins; see `endpoint.profiles`."""
PATHS, NODES = 20, 50
"""Most look-ups in one query: of paths, and of nodes. Virtuoso accepts some 300 branches, and a path may have three."""
MAX_ROWS_AT_NODES = 2000
"""Most rows of a query at several nodes with a limit, if none of them may have more."""
NODE = Variable("node")
NO_NODES = "VALUES ?node {}"
"""What stands in a pattern in place of the VALUES clause of the nodes at which it is looked up."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A pattern that is looked up alone, or with others as a branch of a UNION. Its rows hold the `variables`.

    It is written in Python and not as a template, because exploration sends thousands of them.

    Attributes:
        fixed_order: whether the store joins the triple patterns in the order of the text; the rows are distinct then.
        most: how many such look-ups one query may have. Those in one query are alike in this and in `fixed_order`.
        node: the node that ?node stands for in the pattern. Those in one query differ only in their nodes, which take
            the place of `NO_NODES`: servers and Python read one pattern instead of fifty.
    """

    variables: tuple[Node, ...]
    pattern: str
    fixed_order: bool = False
    most: int = PATHS
    node: Entity | None = None


def lookup_query(lookups: Sequence[Lookup], view: Sequence[Entity], limit: int | None = None) -> str:
    """Return the query for some look-ups, each with at most `limit` rows. Several are numbered in ?number.

    The rows at nodes begin with the node, and the limit is that of all nodes together.
    """
    if lookups[0].node:
        pattern = lookups[0].pattern.replace(NO_NODES, values_clause(NODE, [each.node for each in lookups]))
        limit = _most_rows(len(lookups), limit)
        lookups = [Lookup((NODE, *lookups[0].variables), pattern)]
    fixed = lookups[0].fixed_order
    mark, select = (FIXED_ORDER, "SELECT") if fixed else ("", "SELECT DISTINCT")
    graphs = "".join(f"FROM {render_term(graph)}\n" for graph in view)
    most = "" if limit is None else f" LIMIT {limit}"
    if len(lookups) == 1:
        columns = term_list(lookups[0].variables)
        return f"{mark}{select}{columns}\n{graphs}WHERE {{\n{lookups[0].pattern}\n}}{most}"
    branches = "\n  UNION ".join(
        f"{{ {select} ({number} AS ?number){term_list(each.variables)} WHERE {{\n{each.pattern}\n  }}{most} }}"
        for number, each in enumerate(lookups)
    )
    return f"{mark}SELECT ?number{term_list(_columns(lookups))}\n{graphs}WHERE {{\n  {branches}\n}}"


def _most_rows(nodes: int, limit: int | None) -> int | None:
    return limit and max(limit, min(nodes * limit, MAX_ROWS_AT_NODES))


def rows_of_each(lookups: Sequence[Lookup], rows: Rows, limit: int | None = None) -> list[list[Row]]:
    """Return the rows of each look-up in the result of `lookup_query`.

    Raises:
        PartialResult: it is not known which rows a node has.
    """
    if lookups[0].node:
        return _rows_at_nodes(lookups, rows, limit)
    if len(lookups) == 1:
        return [rows.rows]
    places = {name: place for place, name in enumerate(_columns(lookups), start=1)}
    chosen = [[places[name] for name in each.variables] for each in lookups]
    found: list[list[Row]] = [[] for _ in lookups]
    for row in rows:
        number = count_value(row[0])
        found[number].append(tuple([row[place] for place in chosen[number]]))
    return found


def _rows_at_nodes(lookups: Sequence[Lookup], rows: Rows, limit: int | None) -> list[list[Row]]:
    if len(lookups) == 1:  # all rows are its own, even if a server writes its IRI in another way
        return [[row[1:] for row in rows]]
    found: dict[Value | None, list[Row]] = {each.node: [] for each in lookups}
    most = _most_rows(len(lookups), limit)
    if (most is not None and len(rows) >= most) or any(row[0] not in found for row in rows):
        raise PartialResult("Rows of some nodes are missing, or the server writes a node in another way.")
    for row in rows:
        found[row[0]].append(row[1:])
    return [own[:limit] for own in found.values()]


def _columns(lookups: Iterable[Lookup]) -> list[Node]:
    return list(dict.fromkeys(name for each in lookups for name in each.variables))


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
        # by the version of the view, because an edit changes the results
        self._kept: dict[tuple[str, str | Lookup], tuple[Any, float]] = {}
        """The rows of queries and look-ups, and the highest limit up to which these are the rows."""

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
        version = self._version()
        rows: Rows | None = self._recall(version, query, None)
        if rows is None:
            rows = self._select(query)
            self._keep(version, query, rows, None)
        return rows

    def _recall(self, version: str, asked: str | Lookup, limit: int | None) -> Any:
        """Return the rows that this question has asked for before; None if it has not, or for too few."""
        rows, reach = self._kept.get((version, asked), (None, 0))
        if limit is None:
            return rows if reach == math.inf else None
        return rows[:limit] if limit <= reach else None

    def _keep(self, version: str, asked: str | Lookup, rows: Any, limit: int | None) -> None:
        if self.trace and len(rows) <= KEPT_ROWS:
            self._kept[version, asked] = rows, math.inf if limit is None or len(rows) < limit else limit

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
        lookups, version = list(lookups), self._version()
        found: dict[Lookup, Any] = {each: self._recall(version, each, limit) for each in lookups}
        new = [each for each, rows in found.items() if rows is None]
        most = new[0].most if new else 1
        cap = self.store.capabilities.row_cap if limit and new and not new[0].node else None
        if cap and limit:
            most = max(1, min(most, (cap - 1) // limit))  # the rows of a batch stay below the row cap
        waiting = list(batches(new, most))
        share = TIME_SHARE * (self.timeout if seconds is None else min(seconds, self.timeout))
        is_first = True

        def run(batch: Sequence[Lookup]) -> list[list[Row]]:
            alone = len(batch) == 1
            query = lookup_query(batch, self.view, limit)
            return rows_of_each(batch, self._select(query, seconds=seconds if alone else share, recorded=alone), limit)

        while waiting:
            results = self.map(run, waiting, tolerated=(*HALVED, *tolerated))
            hopeless = not is_first and all(isinstance(rows, Exception) for rows in results)
            halves: list[Sequence[Lookup]] = []
            for batch, rows in zip(waiting, results):
                if not isinstance(rows, Exception):
                    for each, own in zip(batch, rows):
                        found[each] = own
                        self._keep(version, each, own, limit)
                elif len(batch) > 1:
                    halves += batches(batch, 1 if hopeless else (len(batch) + 1) // 2)
                elif isinstance(rows, tolerated):
                    found[batch[0]] = rows
                else:
                    raise rows
            waiting, share, is_first = halves, share / 2, False
        return [found[each] for each in lookups]
