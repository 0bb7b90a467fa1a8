"""Edges of single entities: how many there are, and some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kgqa.graph.store import count_value
from kgqa.graph.tables.labels import LABEL_BATCH, Select, is_blank_node
from kgqa.model import Entity, Literal, Step, Value
from kgqa.schema import Schema

CallCallEach = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]
"""Runs a function for each of some items, perhaps side by side, see `CallPool.map`."""
WIDENINGS = (1, 10, 100)
"""How many times as many edges as are wanted are asked for, one after the other, where too many are noise."""


def count_edges(entities: Iterable[Entity], *, select: Select, call_each: CallEach) -> dict[Entity, int]:
    """Edges that leave or enter each entity, noise included, in two queries for every `LABEL_BATCH` of them."""
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


def find_edges(
    entity: Entity, *, limit: int, schema: Schema, is_noise: Callable[[str], bool], select: Select
) -> list[tuple[Step, Value]]:
    """Up to `limit` edges of an entity in each direction, noise left out."""
    noise = {
        "noise": [Literal(p) for p in (*schema.noise_prefixes, *schema.label, *schema.alias)],
        "kept": [Entity(relation) for relation in schema.noise_except],
    }
    found: list[tuple[Step, Value]] = []
    for direction in ("out", "in"):
        # what the graph marks as noise is too much to name in a query: where it crowds out the rest, ask for more
        for asked in (limit * times for times in WIDENINGS):
            rows = select("neighbours", entity=entity, out=direction == "out", limit=asked, **noise)
            edges = [(Step(r.iri, direction), node) for r, node in rows if not is_noise(r.iri)]
            if len(edges) >= limit or len(rows) < asked:
                break
        found += edges[:limit]
    return found
