"""Reads a view of a store as a whole: its versions, its changes, all rows of a query, and its folder in the cache."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kgqa.errors import PartialResult, RowCapMet, StoreTimeout
from kgqa.graph.editing import Changes, changes_since
from kgqa.graph.query.text import Variable, render
from kgqa.graph.store import Row, Rows, Store
from kgqa.model import Entity
from kgqa.net.threads import question_end
from kgqa.schema import Schema
from kgqa.storage.cache import Cache
from kgqa.text.hints import Command, Option

TIMEOUT = 600.0
MAX_PAGES = 200
VERSION = 5
"""Version of the format of what is cached, increased with every change of the format."""
Select = Callable[..., Rows]
"""Renders a template of queries/ and returns all rows of the whole graph; see `GraphReader.read`."""


class GraphReader:
    """Runs queries over a whole view, which are charged to no question. Thread-safe.

    Args:
        view: IRIs of the graphs to query; empty for the default graph.
        cache: where what is derived from the graph is stored between processes; None keeps it in memory only.
        timeout: maximum seconds per query over the whole graph.
        scan: whether to run queries that read every triple if the store allows them.
    """

    def __init__(
        self,
        store: Store,
        schema: Schema,
        view: Sequence[Entity],
        *,
        cache: Cache | None,
        timeout: float = TIMEOUT,
        scan: bool = True,
    ) -> None:
        self.store = store
        self.schema = schema
        self.view = tuple(view)
        self._cache = cache
        self._timeout = timeout
        self._scans = scan
        self._graphs = tuple(entity.iri for entity in view)

    def version(self) -> str:
        """Return the current version of the view; see `Store.version_of`."""
        return self.store.version_of(self._graphs)

    def changes_since(self, version: str) -> Changes | None:
        """Return the changes since a version; None if everything must be computed again. See `changes_since`."""
        return changes_since(version, self.store, self.view) if self.may_scan else None

    def select(self, name: str, **values: Any) -> Rows:
        """Run queries/NAME.rq over the view, without charging a question; on a server, until the question's end."""
        query, end = render(name, view=self.view, **values), question_end.get()
        if end is None or not self.store.capabilities.remote:
            return self.store.select(query, timeout=self._timeout)
        try:
            return self.store.select(query, timeout=min(self._timeout, max(0.001, end - time.monotonic())))
        except StoreTimeout as error:
            hint = (
                "Make the tables once with ",
                Command("graph info"),
                ", or allow more time: ",
                Option("max-seconds"),
            )
            raise StoreTimeout(error.message, *hint) from error

    def read(self, name: str, *, what: str, **values: Any) -> Rows:
        """Run queries/NAME.rq over the whole graph and return all rows, in pages if the server caps results.

        Args:
            what: a description of the rows, for error messages, such as "The relations".

        Raises:
            StoreTimeout, PartialResult: the rows could not be read in time, or not completely.
            StoreError: other errors of `Store.select`.
        """
        try:
            try:
                return self.select(name, **values)
            except RowCapMet as cut:
                return self._in_pages(name, cut, values)
        except (StoreTimeout, PartialResult) as error:
            raise type(error)(f"{what} could not be read from the whole graph: {error}") from error

    def _in_pages(self, name: str, cut: RowCapMet, values: dict[str, Any]) -> Rows:
        """Read the rows of a query in pages as large as the server's row cap.

        If the server changed the order of rows between pages, some rows would appear twice.
        """
        columns, rows = [Variable(name) for name in cut.variables], list[Row]()
        for _ in range(MAX_PAGES if cut.cap > 0 else 0):
            page = self.select("page", table=name, columns=columns, limit=cut.cap, offset=len(rows), **values)
            rows += page.rows
            if len(set(rows)) < len(rows):
                raise PartialResult(
                    "The same row is on two pages of the result.", "If the graph is being changed, try again later."
                )
            if len(page) < cut.cap:
                return Rows(cut.variables, rows)
        raise cut

    @property
    def may_scan(self) -> bool:
        """Whether queries may read every triple."""
        return self._scans and self.store.may_scan(self._graphs)

    @property
    def folder(self) -> Path | None:
        """The cache folder for this combination of graph, schema and view; None without a cache."""
        if self._cache is None or not (fingerprint := self.store.fingerprint_of(self._graphs)):
            return None
        # a server's fingerprint is computed from counts, so two servers can have the same fingerprint
        parts = (fingerprint, self.store.capabilities.identity, self.schema.digest, *self._graphs)
        name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
        return self._cache.entry("graphs", f"{name}-{VERSION}")
