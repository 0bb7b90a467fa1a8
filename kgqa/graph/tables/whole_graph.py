"""Queries over a whole graph, paged if the server caps results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgqa.errors import PartialResult, RowCapMet, StoreTimeout
from kgqa.graph.query.templates import Variable
from kgqa.graph.store import Row, Rows

MAX_PAGES = 200


class WholeGraphQueries:
    """Reads tables of a whole graph. Each table is returned complete, or an exception is raised.

    Args:
        select: renders a template of queries/ with values and runs the query.

    Attributes:
        notes: map from sentences to names of templates that were not run because the graph is too large. Each sentence
            says what is unknown for this reason.
    """

    def __init__(self, select: Callable[..., Rows]) -> None:
        self.notes: dict[str, str] = {}
        self._select = select

    def read(self, name: str, *, what: str, **values: Any) -> Rows:
        """Return all rows of a table.

        Args:
            what: a description of the table, for error messages, such as "The relations".

        Raises:
            StoreTimeout, PartialResult: the table could not be read in time, or not completely.
            StoreError: other errors of `Store.select`.
        """
        try:
            try:
                return self._select(name, **values)
            except RowCapMet as cut:
                return self._in_pages(name, cut, values)
        except (StoreTimeout, PartialResult) as error:
            raise type(error)(f"{what} could not be read from the whole graph: {error}") from error

    def _in_pages(self, name: str, cut: RowCapMet, values: dict[str, Any]) -> Rows:
        """Read a table in pages as large as the server's row cap.

        If the server changed the order of rows between pages, some rows would appear twice. A table in which all rows
        differ is therefore complete.
        """
        if cut.cap < 1:
            raise cut
        columns = [Variable(name) for name in cut.variables]
        rows: list[Row] = []
        for _ in range(MAX_PAGES):
            page = self._select("page", table=name, columns=columns, limit=cut.cap, offset=len(rows), **values)
            rows += page.rows
            if len(page) < cut.cap:
                if len(set(rows)) < len(rows):
                    raise PartialResult(
                        "The same row is on two pages of the result.", "If the graph is being changed, try again later."
                    )
                return Rows(cut.variables, rows)
        raise cut
