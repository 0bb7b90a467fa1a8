"""Reads the names of a graph: of some entities, or all of them, page by page if the graph is on a server."""

from __future__ import annotations

import copy
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kgqa.errors import InvalidTerm, PartialResult, StoreError
from kgqa.graph.query.templates import render, render_term
from kgqa.graph.store import Row, Store, single_count
from kgqa.model import Entity, Literal
from kgqa.schema import Schema
from kgqa.text.words import is_anonymous, local_words, normalise

Name = tuple[str, str, str]
"""The IRI of an entity, one of its names, and the kind of name: `label`, `alias`, or `iri` for words from the IRI."""
PAGE_ROWS = 200_000
MIN_PAGE_ROWS = 500
DEFAULT_SECONDS = 600.0
MAX_ROWS = 50_000_000
ENTITY_BATCH = 50
"""Entities per query."""
Limit = Callable[[], float | None]
"""Function that returns the seconds that the next query may take; None for the store's default limit.

The function raises BudgetExhausted when the question has no time left.
"""


class NamedGraph(Protocol):
    """A graph whose names are read and indexed."""

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
    """Read all names of a graph, labels before aliases, in the order of the schema's predicates.

    If the graph has no names, the words at the end of each IRI are used as a name of kind `iri`. Blank nodes and IRIs
    that stand for them are left out.

    Args:
        limit: time limit of each query.

    Raises:
        PartialResult: a server truncates even small pages, or all pages together have fewer names than the graph.
        StoreTimeout, StoreUnavailable.
    """
    found = False
    for kind, predicate in name_predicates(schema):
        for subject, name in _pairs(store, view, Entity(predicate), limit):
            if isinstance(subject, Entity) and isinstance(name, Literal) and not subject.iri.startswith("_:"):
                found = True
                yield subject.iri, name.value, kind
    if not found:
        query = render("all_nodes", view=view)
        for (node,) in store.select(query, timeout=limit(), max_rows=MAX_ROWS, fresh=True):
            if isinstance(node, Entity) and not is_anonymous(node.iri):
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


@dataclass(frozen=True)
class NameShare:
    """How many subjects of a graph have a label, out of how many, and the number of labels by predicate."""

    labelled: int
    subjects: int
    predicates: dict[str, int]

    def text(self, schema: Schema) -> str:
        """Return the share in words: `44 of 51 subjects have a name (86%), by schema:name (44)`."""
        percent = 100 * self.labelled // max(1, self.subjects)
        by = ", ".join(f"{schema.short_id(iri)} ({count:,})" for iri, count in self.predicates.items())
        return f"{self.labelled:,} of {self.subjects:,} subjects have a name ({percent}%){by and ', by '}{by}"


def name_share(store: Store, schema: Schema, view: Sequence[Entity], *, timeout: float) -> NameShare | None:
    """Count the subjects of a graph and those with a label; None if the graph is too large, or the store fails.

    Args:
        timeout: maximum seconds per query.
    """
    try:
        if not store.may_scan([graph.iri for graph in view]):
            return None
        counts = {iri: _count(store, view, Entity(iri), lambda: timeout) for iri in schema.label}
        rows = store.select(render("subject_count", view=view), timeout=timeout, fresh=True)
        labelled = NameReader(store, schema, view).within(lambda: timeout).labelled
    except StoreError:
        return None
    return NameShare(labelled, single_count(rows), {iri: count for iri, count in counts.items() if count})


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
    if (distinct := len(set(seen))) != total:
        raise PartialResult(
            f"The server sent only {distinct:,} of {total:,} names.",
            "If somebody is changing the graph, try again when the change is complete.",
        )


def _count(store: Store, view: Sequence[Entity], predicate: Entity, limit: Limit) -> int:
    query = render("names_count", view=view, predicate=predicate)
    return single_count(store.select(query, timeout=limit(), fresh=True))


class NameReader:
    """Looks up names in a graph by entity, and runs the queries for names. Thread-safe.

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
        self.predicates = [Entity(predicate) for predicate in self.kinds]
        self._labels = [Entity(predicate) for predicate in schema.label]
        self._limit: Limit = lambda: None

    def within(self, limit: Limit) -> NameReader:
        """Return a reader that has `limit` as the time limit of each query."""
        bound = copy.copy(self)
        bound._limit = limit
        return bound

    def select(self, template: str, *, fresh: bool = False, **values: object) -> list[Row]:
        """Run the query template `names_{template}.rq` over the view and return the rows of its result."""
        query = render(f"names_{template}", view=self.view, **{"predicates": self.predicates, **values})
        return self._store.select(query, timeout=self._limit(), fresh=fresh).rows

    def names(self, rows: Sequence[Row]) -> list[Name]:
        """Return the distinct names in rows of entity, predicate and name; those of blank nodes are left out."""
        found = (
            (entity.iri, name.value, kind)
            for entity, predicate, name in rows
            if isinstance(entity, Entity) and isinstance(predicate, Entity) and isinstance(name, Literal)
            for kind in self.kinds[predicate.iri]
            if not entity.iri.startswith("_:")
        )
        return list(dict.fromkeys(found))

    @property
    def labelled(self) -> int:
        """The number of entities with a label, counted by the store. Raises the same errors as `Store.select`."""
        return single_count(self.select("labelled", predicates=self._labels))

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        """Return the names with letters or digits of each of these entities: labels first, then alphabetically."""
        found: dict[Entity, set[tuple[bool, str]]] = {entity: set() for entity in entities}
        usable = [entity for entity in found if _is_usable(entity)]
        for start in range(0, len(usable), ENTITY_BATCH):
            for iri, name, kind in self.names(self.select("of", entities=usable[start : start + ENTITY_BATCH])):
                if normalise(name):
                    found[Entity(iri)].add((kind == "alias", name))
        return {entity: list(dict.fromkeys(name for _, name in sorted(names))) for entity, names in found.items()}


def _is_usable(entity: Entity) -> bool:
    try:
        render_term(entity)
    except InvalidTerm:
        return False  # a blank node, which no query can name
    return True
