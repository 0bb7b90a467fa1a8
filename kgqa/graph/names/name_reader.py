"""Reads the names of some entities, or all names of a graph, page by page if the graph is on a server."""

from __future__ import annotations

import copy
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from kgqa.errors import InvalidTerm, PartialResult
from kgqa.graph.names.lru_cache import LRUCache
from kgqa.graph.names.spellings import spellings
from kgqa.graph.query.templates import render, render_term
from kgqa.graph.store import Row, Store, single_count
from kgqa.model import Entity, Literal
from kgqa.schema import Schema
from kgqa.text.words import local_words, normalise

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


ENTITY_BATCH = 50
"""Entities per query."""
MAX_ENTITIES = 50_000
normalised = lru_cache(maxsize=50_000)(normalise)
spellings_of = lru_cache(maxsize=50_000)(spellings)


class EntityNameReader:
    """Looks up names by entity and caches them. Thread-safe.

    Attributes:
        view: the graphs that are read.
        kinds: for each predicate of names, the kinds of its names; a predicate may be listed as label and as alias.
    """

    def __init__(self, store: Store, schema: Schema, view: Sequence[Entity]) -> None:
        self._store = store
        self.view = tuple(view)
        self.kinds: dict[str, list[str]] = {}
        for kind, predicate in name_predicates(schema):
            self.kinds.setdefault(predicate, []).append(kind)
        self._labels = [Entity(predicate) for predicate in schema.label]
        self._known: LRUCache[str, tuple[str, ...]] = LRUCache(MAX_ENTITIES)
        self._limit: Limit | None = None

    def within(self, limit: Limit) -> EntityNameReader:
        """Return a reader that shares the cache and has `limit` as the time limit of each query."""
        bound = copy.copy(self)
        bound._limit = limit
        return bound

    def select(self, template: str, *, fresh: bool = False, **values: object) -> list[Row]:
        """Run the query template `names_{template}.rq` and return the rows of its result."""
        timeout = self._limit() if self._limit else None
        return self._store.select(render(f"names_{template}", **values), timeout=timeout, fresh=fresh).rows

    @property
    def predicates(self) -> list[Entity]:
        """The predicates of labels and aliases."""
        return [Entity(predicate) for predicate in self.kinds]

    @property
    def labelled(self) -> int:
        """The number of entities with a label, counted by the server. Raises the same errors as `Store.select`."""
        return single_count(self.select("labelled", view=self.view, predicates=self._labels))

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        """Return the names with letters or digits of each of these entities: labels first, then alphabetically."""
        found = self._known.get_or_find([entity.iri for entity in entities], self._find)
        return {entity: list(found[entity.iri]) for entity in entities}

    def _find(self, iris: list[str]) -> dict[str, tuple[str, ...]]:
        found: dict[str, set[tuple[bool, str]]] = {iri: set() for iri in iris}
        usable = [Entity(iri) for iri in iris if _is_usable(iri)]
        for start in range(0, len(usable), ENTITY_BATCH):
            batch = usable[start : start + ENTITY_BATCH]
            rows = self.select("of", view=self.view, entities=batch, predicates=self.predicates)
            for entity, predicate, name in rows:
                if isinstance(entity, Entity) and isinstance(predicate, Entity) and isinstance(name, Literal):
                    kinds = self.kinds[predicate.iri] if normalised(name.value) else []
                    found[entity.iri] |= {(kind == "alias", name.value) for kind in kinds}
        return {iri: tuple(dict.fromkeys(name for _, name in sorted(names))) for iri, names in found.items()}


def _is_usable(iri: str) -> bool:
    try:
        render_term(Entity(iri))
    except InvalidTerm:
        return False  # a blank node, which no query can name
    return True
