"""Queries of one question, counted and limited by the question's budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kgqa.errors import ResultCapped, RowCapMet, StoreTimeout
from kgqa.graph.query.templates import render
from kgqa.graph.store import Rows, Store
from kgqa.model import Entity
from kgqa.net.threads import stoppable
from kgqa.trace import Timeout
from kgqa.trace.trace import Trace


class ChargedQueries:
    """Runs queries over a view of a store and charges them to a question's budget.

    Args:
        view: IRIs of the graphs to query; empty for the default graph.
        timeout: maximum seconds per query.
        trace: the trace of the question; None if the queries are charged to no question.
    """

    def __init__(self, store: Store, view: tuple[Entity, ...], *, timeout: float, trace: Trace | None) -> None:
        self._store = store
        self._view = view
        self._timeout = timeout
        self._trace = trace

    def select(self, name: str, **values: Any) -> Rows:
        """Run the SELECT query queries/NAME.rq with these values. Raises the same errors as `rows`."""
        return self.rows(render(name, view=self._view, **values))

    def select_within(self, seconds: float | None, name: str, *, recorded: bool = True, **values: Any) -> Rows:
        """Run queries/NAME.rq for at most `seconds`. Arguments and errors: see `rows`."""
        return self.rows(render(name, view=self._view, **values), timeout=seconds, recorded=recorded)

    def rows(self, query: str, *, timeout: float | None = None, recorded: bool = True) -> Rows:
        """Run a SELECT query.

        Args:
            timeout: maximum seconds, if less than the graph's own timeout.
            recorded: whether the trace records a timeout; False if smaller queries are run instead then.

        Raises:
            ResultCapped: the server cut the result at its row cap. A path with a cut result cannot be compared with
                other paths.
            StoreError: see `Store.select`.
        """
        try:
            with self._charge(recorded=recorded) as charged:
                limits = [seconds for seconds in (charged, timeout) if seconds is not None]
                return self._store.select(query, timeout=min(limits, default=None))
        except RowCapMet as error:
            raise ResultCapped(str(error)) from error

    def ask(self, name: str, **values: Any) -> bool:
        """Run the ASK query queries/NAME.rq with these values."""
        return self.ask_exported(render(name, view=self._view, **values))

    def ask_exported(self, query: str) -> bool:
        """Run an ASK query."""
        with self._charge() as seconds:
            return self._store.ask(query, timeout=seconds)

    @contextmanager
    def _charge(self, *, recorded: bool = True) -> Iterator[float | None]:
        """Charge a query to the budget and yield the seconds that it may take. The trace records a timeout."""
        try:
            if self._trace is None:
                yield self._timeout
            else:
                with stoppable(self._trace.stopped):
                    yield self._trace.charge_query(self._timeout)
        except StoreTimeout as error:
            if self._trace and recorded:
                self._trace.record(Timeout(error=type(error).__name__))
            raise
