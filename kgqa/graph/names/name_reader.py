"""Reads all names of a graph, page by page if the graph is on a server."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from kgqa.errors import PartialResult
from kgqa.graph.query.templates import render
from kgqa.graph.store import Row, Store, single_count
from kgqa.model import Entity, Literal
from kgqa.schema import Schema
from kgqa.words import local_words

Name = tuple[str, str, str]
"""The IRI of an entity, one of its names, and the kind of name: `label`, `alias`, or `iri` for words from the IRI."""
PAGE_ROWS = 200_000
MIN_PAGE_ROWS = 500
DEFAULT_SECONDS = 600.0
MAX_ROWS = 50_000_000
Limit = Callable[[], float | None]
"""Function that returns the seconds that the next query may take; None for the store's default limit.

The function raises BudgetExhausted when the question has no time left.
"""


class IndexedGraph(Protocol):
    """A graph for which an index of names is built or opened."""

    @property
    def store(self) -> Store: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def view(self) -> tuple[Entity, ...]: ...

    @property
    def folder(self) -> Path | None:
        """The folder that keeps the index between processes; None to keep it in memory."""
        ...


def background_limit() -> float:
    """Return the time limit, in seconds, of a query that is not part of answering a question."""
    return DEFAULT_SECONDS


def read_names(
    store: Store, schema: Schema, view: Sequence[Entity], *, limit: Limit = background_limit
) -> Iterator[Name]:
    """Read all names of a graph, labels before aliases.

    If the graph has no names, the words at the end of each IRI are used as a name of kind `iri`.

    Args:
        limit: time limit of each query.

    Raises:
        PartialResult: a server truncates even small pages, or all pages together have fewer names than the graph.
        StoreTimeout, StoreUnavailable.
    """
    found = False
    for kind, predicate in name_predicates(schema):
        for subject, name in _pairs(store, view, Entity(predicate), limit):
            if isinstance(subject, Entity) and isinstance(name, Literal):
                found = True
                yield subject.iri, name.value, kind
    if not found:
        query = render("all_nodes", view=view)
        for (node,) in store.select(query, timeout=limit(), max_rows=MAX_ROWS, fresh=True):
            if isinstance(node, Entity) and not node.iri.startswith("_:"):
                yield node.iri, local_words(node.iri), "iri"


def name_predicates(schema: Schema) -> list[tuple[str, str]]:
    """Return all predicates that lead from an entity to its names, each as a pair of kind of name and IRI."""
    return [("label", predicate) for predicate in schema.label] + [("alias", predicate) for predicate in schema.alias]


def count_names(store: Store, schema: Schema, view: Sequence[Entity], *, limit: Limit = background_limit) -> int:
    """Count the triples that give names to entities.

    Args:
        limit: time limit of each query.

    Raises:
        StoreError: see `Store.select`.
    """
    return sum(_count(store, view, Entity(predicate), limit) for _, predicate in name_predicates(schema))


def _pairs(store: Store, view: Sequence[Entity], predicate: Entity, limit: Limit) -> Iterator[Row]:
    if store.capabilities.remote:
        yield from _pages(store, view, predicate, limit)
    else:
        query = render("predicate_pairs", view=view, predicate=predicate)
        yield from store.select(query, timeout=limit(), max_rows=MAX_ROWS)


def _pages(store: Store, view: Sequence[Entity], predicate: Entity, limit: Limit) -> Iterator[Row]:
    """Read all pairs in pages, unsorted, because servers cannot sort so many rows.

    A server may order the rows differently for each page. The pages are therefore complete only if all of them together
    have as many distinct rows as the server counts.
    """
    total = _count(store, view, predicate, limit)
    size, offset = PAGE_ROWS, 0
    seen = array("q")
    while offset < total:
        try:
            query = render("names_page", view=view, predicate=predicate, limit=size, offset=offset)
            rows = store.select(query, timeout=limit(), fresh=True)
        except PartialResult:
            if size <= MIN_PAGE_ROWS:
                raise
            size = max(size // 2, MIN_PAGE_ROWS)
            continue
        if not len(rows):
            break
        offset += len(rows)
        seen.extend(map(hash, rows))
        yield from rows
    if _count_distinct(seen) != total:
        raise PartialResult(
            f"The server sent only {_count_distinct(seen):,} of {total:,} names.",
            "If somebody is changing the graph, try again when the change is complete.",
        )


def _count_distinct(numbers: array[int]) -> int:
    import numpy as np

    return len(np.unique(np.frombuffer(numbers, dtype=np.int64))) if numbers else 0


def _count(store: Store, view: Sequence[Entity], predicate: Entity, limit: Limit) -> int:
    query = render("names_count", view=view, predicate=predicate)
    return single_count(store.select(query, timeout=limit(), fresh=True))
