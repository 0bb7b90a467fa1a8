"""Reads all names and aliases of a graph, from a server page by page."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from kgqa.errors import PartialResult
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.query.templates import render
from kgqa.graph.store import Row, Store, single_count
from kgqa.model import Entity, Literal
from kgqa.schema import Schema
from kgqa.words import local_words

Name = tuple[str, str, str]
"""The IRI of an entity, one of its names, and its kind: `label`, `alias`, or `iri` for the readable end of an IRI."""
PAGE_ROWS = 200_000
LEAST_ROWS = 500
SECONDS = 600.0
MAX_ROWS = 50_000_000
Limit = Callable[[], float | None]
"""Gives the seconds that the next query may take. Within a question it raises BudgetExhausted when no time is left."""


class IndexedGraph(Protocol):
    """A graph whose names are indexed, as `GraphTables` is one."""

    @property
    def store(self) -> Store: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def view(self) -> tuple[Entity, ...]: ...

    @property
    def folder(self) -> Path | None:
        """Where the index is kept between processes; None to keep it in memory."""
        ...


def no_question() -> float:
    """The limit of a query that belongs to no question."""
    return SECONDS


def read_names(store: Store, schema: Schema, view: Sequence[Entity], *, limit: Limit = no_question) -> Iterator[Name]:
    """All names of a graph, kind by kind. Of a graph without any the readable ends of its IRIs.

    Args:
        limit: of each query.

    Raises:
        PartialResult: a server cuts even small pages, or its pages do not add up to the whole.
        StoreTimeout, StoreUnavailable.
    """
    found = False
    for kind, predicate in named_by(schema):
        for subject, name in _pairs(store, view, Entity(predicate), limit):
            if isinstance(subject, Entity) and isinstance(name, Literal):
                found = True
                yield subject.iri, name.value, kind
    if not found:
        query = render("all_nodes", view=view)
        for (node,) in store.select(query, timeout=limit(), max_rows=MAX_ROWS, fresh=True):
            if isinstance(node, Entity) and not node.iri.startswith("_:"):
                yield node.iri, local_words(node.iri), "iri"


def named_by(schema: Schema) -> list[tuple[str, str]]:
    """The kind and the IRI of each predicate that gives names."""
    return [("label", predicate) for predicate in schema.label] + [("alias", predicate) for predicate in schema.alias]


def count_names(store: Store, schema: Schema, view: Sequence[Entity], *, limit: Limit = no_question) -> int:
    """How many triples give names. `limit`: of each query. Raises as `Store.select` does."""
    return sum(_count(store, view, Entity(predicate), limit) for _, predicate in named_by(schema))


def _pairs(store: Store, view: Sequence[Entity], predicate: Entity, limit: Limit) -> Iterator[Row]:
    if isinstance(store, EndpointStore):
        yield from _pages(store, view, predicate, limit)
    else:
        query = render("predicate_pairs", view=view, predicate=predicate)
        yield from store.select(query, timeout=limit(), max_rows=MAX_ROWS)


def _pages(store: Store, view: Sequence[Entity], predicate: Entity, limit: Limit) -> Iterator[Row]:
    """All pairs, in the order in which the server happens to keep them: sorting them is too much for it.

    No standard says that this order is the same for every page. So rows are counted: as many different ones as there
    are altogether can only be all of them.
    """
    total = _count(store, view, predicate, limit)
    size, offset = PAGE_ROWS, 0
    seen = array("q")
    while offset < total:
        try:
            query = render("names_page", view=view, predicate=predicate, limit=size, offset=offset)
            rows = store.select(query, timeout=limit(), fresh=True)
        except PartialResult:
            if size <= LEAST_ROWS:
                raise
            size = max(size // 2, LEAST_ROWS)
            continue
        if not len(rows):
            break
        offset += len(rows)
        seen.extend(map(hash, rows))
        yield from rows
    if _different(seen) != total:
        raise PartialResult(
            f"Of {total:,} names the server gave {_different(seen):,} different ones. If the graph is being changed, try "
            "again when that is done."
        )


def _different(numbers: array[int]) -> int:
    import numpy as np

    return len(np.unique(np.frombuffer(numbers, dtype=np.int64))) if numbers else 0


def _count(store: Store, view: Sequence[Entity], predicate: Entity, limit: Limit) -> int:
    query = render("names_count", view=view, predicate=predicate)
    return single_count(store.select(query, timeout=limit(), fresh=True))
