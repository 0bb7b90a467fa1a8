"""Looks up the names of entities on a server."""

from __future__ import annotations

import copy
from collections.abc import Sequence
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

    def close(self) -> None:
        """Empty the cache."""
        self._known.clear()

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
