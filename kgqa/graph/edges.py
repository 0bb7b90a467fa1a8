"""Counts and samples of the edges of single entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kgqa.errors import PartialResult
from kgqa.graph.store import count_value
from kgqa.graph.tables.labels import LABEL_BATCH, Select, is_blank_node
from kgqa.model import Direction, Entity, Literal, Step, Value
from kgqa.schema import Schema

CallEach = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]
"""Calls a function for each item; see `CallPool.map`."""
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
