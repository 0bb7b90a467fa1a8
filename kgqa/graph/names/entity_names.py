"""Looks up the names of entities on a server."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kgqa.errors import InvalidTerm
from kgqa.graph.names.lru_cache import LRUCache
from kgqa.graph.names.name_reader import Limit, name_predicates
from kgqa.graph.names.spellings import spellings
from kgqa.graph.query.templates import render, render_term
from kgqa.graph.store import Row, Store, single_count
from kgqa.model import Entity, Literal
from kgqa.schema import Schema
from kgqa.words import normalise

ENTITY_BATCH = 50
"""Entities per query."""
MAX_ENTITIES = 50_000
normalised = lru_cache(maxsize=50_000)(normalise)
spellings_of = lru_cache(maxsize=50_000)(spellings)


@dataclass(frozen=True, slots=True)
class EntityName:
    """A name of an entity, its kind (`label` or `alias`), and its normalised form."""

    name: str
    kind: str
    norm: str


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
        self._known: LRUCache[str, tuple[EntityName, ...]] = LRUCache(MAX_ENTITIES)
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

    def of(self, iris: Sequence[str]) -> dict[str, tuple[EntityName, ...]]:
        """Return, for each entity, its names with letters or digits, sorted: labels first, then alphabetically."""
        return self._known.get_or_find(iris, self._find)

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        """Return all names of each of these entities, see `Names`."""
        found = self.of([entity.iri for entity in entities])
        return {entity: list(dict.fromkeys(item.name for item in found[entity.iri])) for entity in entities}

    def close(self) -> None:
        """Empty the cache."""
        self._known.clear()

    def _find(self, iris: list[str]) -> dict[str, tuple[EntityName, ...]]:
        rows: dict[str, set[tuple[str, Literal]]] = {iri: set() for iri in iris}
        usable = [Entity(iri) for iri in iris if _is_usable(iri)]
        for start in range(0, len(usable), ENTITY_BATCH):
            batch = usable[start : start + ENTITY_BATCH]
            for entity, predicate, name in self.select(
                "of", view=self.view, entities=batch, predicates=self.predicates
            ):
                if isinstance(entity, Entity) and isinstance(predicate, Entity) and isinstance(name, Literal):
                    rows[entity.iri].add((predicate.iri, name))
        return {iri: tuple(self._sorted(found)) for iri, found in rows.items()}

    def _sorted(self, rows: set[tuple[str, Literal]]) -> list[EntityName]:
        names = [
            EntityName(name.value, kind, norm)
            for predicate, name in rows
            for kind in self.kinds[predicate]
            if (norm := normalised(name.value))
        ]
        return sorted(names, key=lambda item: (item.kind == "alias", item.name))


def _is_usable(iri: str) -> bool:
    try:
        render_term(Entity(iri))
    except InvalidTerm:
        return False  # a blank node, which no query can name
    return True
