"""Finds what one hop leads to from each of many nodes, and how many values that are; a query for up to 50 nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgqa.errors import PartialResult
from kgqa.graph.batches import TIME_SHARE, CallEach, in_batches
from kgqa.graph.charged_queries import ChargedQueries
from kgqa.graph.query.patterns import PathPattern
from kgqa.graph.store import Row, Rows, count_value
from kgqa.graph.tables.labels import LABEL_BATCH, is_blank_node
from kgqa.model import Entity, Value

MAX_NODES = 1000
"""Most nodes from which a hop is followed at once."""
START = "node"
"""Name of the variable of the nodes from which the hop starts."""


@dataclass(frozen=True, slots=True)
class AlongFinder:
    """Follows a hop from many nodes.

    Attributes:
        walk: the pattern of the hop, from the variable `START`.
        queries: runs the queries.
        call_each: calls a function for each item.
        row_cap: number of rows at which results of the store are cut off; None if they are not.
        timeout: maximum seconds for the query of a single node.
    """

    walk: PathPattern
    queries: ChargedQueries
    call_each: CallEach
    row_cap: int | None
    timeout: float

    def values(self, nodes: Iterable[Entity], *, limit: int | None) -> dict[Entity, tuple[Value, ...]]:
        """Return the values of each node that has any; see `KnowledgeGraph.along`."""
        most = None if limit is None else limit + 1
        if most is not None and self.row_cap is not None:
            most = min(most, self.row_cap - 1)
        found = self._found("along", nodes, limit=most)
        return {node: tuple(value for _, value in rows if value is not None) for node, rows in found.items() if rows}

    def counts(self, nodes: Iterable[Entity]) -> dict[Entity, int]:
        """Return the number of values of each node; see `KnowledgeGraph.counts`."""
        found = self._found("along_counts", nodes)
        return {node: count_value(rows[0][1]) if rows else 0 for node, rows in found.items()}

    def _found(self, template: str, nodes: Iterable[Entity], **values: int | None) -> dict[Entity, list[Row]]:
        wanted = [node for node in dict.fromkeys(nodes) if not is_blank_node(node)]
        if len(wanted) > MAX_NODES:
            raise ValueError(f"a hop is followed from at most {MAX_NODES} nodes at once")
        most = values.get("limit")

        def batch(some: Sequence[Entity]) -> list[list[Row]]:
            rows = self.queries.select_within(
                TIME_SHARE * self.timeout, template, recorded=False, walk=self.walk, nodes=some, **values
            )
            if most is not None and len(rows) >= most:
                raise PartialResult("The rows of one node may take the place of those of another.")
            return _by_node(some, rows)

        def single(node: Entity) -> list[Row]:
            return list(self.queries.select(template, walk=self.walk, nodes=[node], **values))

        found = in_batches(wanted, batch, single, size=LABEL_BATCH, call_each=self.call_each)
        return dict(zip(wanted, found))


def _by_node(nodes: Sequence[Entity], rows: Rows) -> list[list[Row]]:
    found: dict[Value | None, list[Row]] = {node: [] for node in nodes}
    for row in rows:
        found[row[0]].append(row)
    return [found[node] for node in nodes]
