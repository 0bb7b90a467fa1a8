"""Counts and samples of the edges of entities, and single hops from many entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.errors import PartialResult
from kgqa.graph.batches import TIME_SHARE, in_batches
from kgqa.graph.charged_queries import ChargedQueries
from kgqa.graph.query.patterns import PathPattern
from kgqa.graph.store import Row, Rows, count_value
from kgqa.graph.tables.labels import LABEL_BATCH, Select, is_blank_node
from kgqa.model import Direction, Entity, Literal, Step, Value
from kgqa.schema import Schema

CallEach = Callable[..., list[Any]]
"""Calls a function for each item; see `ThreadPool.map`."""
MAX_NODES = 1000
"""Most nodes from which a hop is followed at once."""
START = "node"
"""Name of the variable of the nodes from which the hop starts."""
WIDENINGS = (1, 10, 100)
"""Factors for the number of edges to request: the next factor is used if too many of the returned edges are noise."""


def count_edges(entities: Iterable[Entity], *, select: Select, call_each: CallEach) -> dict[Entity, int]:
    """Count the edges of each entity in both directions, noise included, in two queries per `LABEL_BATCH` entities."""
    total = dict.fromkeys(entities, 0)
    wanted = [entity for entity in total if not is_blank_node(entity)]
    asked = [
        {"entities": wanted[start : start + LABEL_BATCH], "out": out}
        for start in range(0, len(wanted), LABEL_BATCH)
        for out in (True, False)
    ]
    for rows in call_each(lambda values: select("degrees", **values), asked):
        for entity, count in rows:
            if isinstance(entity, Entity):
                total[entity] += count_value(count)
    return total


def count_relations(entities: Iterable[Entity], *, select: Select, call_each: CallEach) -> dict[Step, int]:
    """Count the edges of nodes by relation and direction, noise included, in two queries per `LABEL_BATCH` nodes."""
    wanted = [entity for entity in dict.fromkeys(entities) if not is_blank_node(entity)]
    directions: tuple[Direction, ...] = ("out", "in")
    asked = [
        (direction, wanted[start : start + LABEL_BATCH])
        for start in range(0, len(wanted), LABEL_BATCH)
        for direction in directions
    ]
    total: dict[Step, int] = {}
    found = call_each(lambda each: select("relation_totals", entities=each[1], out=each[0] == "out"), asked)
    for (direction, _), rows in zip(asked, found):
        for relation, count in rows:
            if isinstance(relation, Entity):
                step = Step(relation.iri, direction)
                total[step] = total.get(step, 0) + count_value(count)
    return total


def find_edges_of(
    entities: Iterable[Entity], direction: Direction, *, limit: int, select: Select, call_each: CallEach
) -> list[tuple[Entity, Step, Value]]:
    """Return the edges of many entities in one direction, noise included, in one query per `LABEL_BATCH` entities.

    Where a batch has more edges than one query returns, its entities are queried one by one, because one entity with
    very many edges would take the place of the edges of all others.

    Args:
        limit: maximum number of edges per query; each entity gets at least as many if it has them.
    """
    wanted = [entity for entity in dict.fromkeys(entities) if not is_blank_node(entity)]
    values = {"out": direction == "out", "limit": limit}
    rows: list[Sequence[Value | None]] = []
    for start in range(0, len(wanted), LABEL_BATCH):
        batch = wanted[start : start + LABEL_BATCH]
        try:
            found = select("edges", entities=batch, **values)
        except PartialResult:  # the server cut off the rows before the limit was reached
            if len(batch) == 1:
                raise
            found = None
        if found is None or (len(found) >= limit and len(batch) > 1):
            for each in call_each(lambda entity: select("edges", entities=[entity], **values), batch):
                rows += each
        else:
            rows += found
    return [
        (entity, Step(relation.iri, direction), node)
        for entity, relation, node in rows
        if isinstance(entity, Entity) and isinstance(relation, Entity) and node is not None
    ]


def find_edges(
    entity: Entity, *, limit: int, schema: Schema, is_noise: Callable[[str], bool], select: Select
) -> list[tuple[Step, Value]]:
    """Return up to `limit` edges of an entity in each direction, without noise."""
    noise = {
        "noise": [Literal(p) for p in (*schema.noise_prefixes, *schema.label, *schema.alias)],
        "kept": [Entity(relation) for relation in schema.noise_except],
    }
    found: list[tuple[Step, Value]] = []
    directions: tuple[Direction, ...] = ("out", "in")
    for direction in directions:
        # the graph may mark too many relations as noise to list them in a query: request more edges instead
        for asked in (limit * times for times in WIDENINGS):
            rows = select("neighbours", entity=entity, out=direction == "out", limit=asked, **noise)
            edges = [
                (Step(relation.iri, direction), node)
                for relation, node in rows
                if isinstance(relation, Entity) and node is not None and not is_noise(relation.iri)
            ]
            if len(edges) >= limit or len(rows) < asked:
                break
        found += edges[:limit]
    return found


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
