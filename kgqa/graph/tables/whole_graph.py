"""Queries over a whole graph: in pages where the server cuts results, and none at all where the graph is too large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgqa.errors import PartialResult, RowCapMet, StoreTimeout
from kgqa.graph.query.templates import Variable
from kgqa.graph.store import Row, Rows

MOST_PAGES = 200


class WholeGraphQueries:
    """Asks for tables of a whole graph. A table is whole or an error.

    Args:
        select: renders a template of queries/ with values and runs it.
        may_scan: whether queries that look at every triple are tried; asked before each.

    Attributes:
        notes: what is not known because the graph is too large, in sentences, and the template that was not run.
    """

    def __init__(self, select: Callable[..., Rows], *, may_scan: Callable[[], bool]) -> None:
        self.notes: dict[str, str] = {}
        self._select = select
        self._may_scan = may_scan

    def ask(self, name: str, *, what: str, **values: Any) -> Rows:
        """All rows of a table.

        Args:
            what: what the table holds, for the message of an error.

        Raises:
            StoreTimeout, PartialResult: it did not come in time, or not whole. Others as `Store.select` does.
        """
        try:
            try:
                return self._select(name, **values)
            except RowCapMet as cut:
                return self._in_pages(name, cut, values)
        except (StoreTimeout, PartialResult) as error:
            raise type(error)(f"{what} could not be read from the whole graph: {error}") from error

    def scan(self, name: str, *, what: str, note: str, **values: Any) -> Rows | None:
        """As `ask`, for a query that looks at every triple; None and a note where the graph is too large for that."""
        if not self._may_scan():
            self.notes[note] = name
            return None
        return self.ask(name, what=what, **values)

    def _in_pages(self, name: str, cut: RowCapMet, values: dict[str, Any]) -> Rows:
        """The rows of a table that the server cuts, as many at once as it gives.

        Pages that were taken from different orders of the same rows would repeat some, so rows that are all different are
        all there are.
        """
        if cut.cap < 1:
            raise cut
        columns = [Variable(name) for name in cut.variables]
        rows: list[Row] = []
        for _ in range(MOST_PAGES):
            page = self._select("page", table=name, columns=columns, limit=cut.cap, offset=len(rows), **values)
            rows += page.rows
            if len(page) < cut.cap:
                if len(set(rows)) < len(rows):
                    raise PartialResult(
                        "Its pages overlap. If the graph is being changed, try again when that is done."
                    )
                return Rows(cut.variables, rows)
        raise cut
