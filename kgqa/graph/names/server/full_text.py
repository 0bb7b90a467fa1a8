"""The names of entities of a graph on a server, read there by entity."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kgqa.errors import InvalidTerm
from kgqa.graph.names.index import loose_keys
from kgqa.graph.names.memory import Remembered
from kgqa.graph.names.reading import Limit, named_by
from kgqa.graph.query.templates import render, render_term
from kgqa.graph.store import Row, Store, single_count
from kgqa.model import Entity, Literal
from kgqa.schema import Schema
from kgqa.words import normalise

ENTITY_BATCH = 50
MAX_ENTITIES = 50_000
normalised = lru_cache(maxsize=50_000)(normalise)
keys_of_name = lru_cache(maxsize=50_000)(loose_keys)


@dataclass(frozen=True, slots=True)
class EntityName:
    """A name of an entity, as `names.NameMatch` has it, and normalised."""

    name: str
    kind: str
    norm: str


class ServerNames:
    """Looks up names by entity, 50 at once. Thread-safe."""

    def __init__(self, store: Store, schema: Schema, view: Sequence[Entity]) -> None:
        self._store = store
        self._view = tuple(view)
        self._kinds: dict[str, list[str]] = {}
        for kind, predicate in named_by(schema):
            self._kinds.setdefault(predicate, []).append(kind)
        self._labels = [Entity(predicate) for predicate in schema.label]
        self._known: Remembered[str, tuple[EntityName, ...]] = Remembered(MAX_ENTITIES)
        self._limit: Limit | None = None

    def within(self, limit: Limit) -> ServerNames:
        """The same, each query within a limit."""
        bound = copy.copy(self)
        bound._limit = limit
        return bound

    def select(self, template: str, *, fresh: bool = False, **values: object) -> list[Row]:
        """Run queries/names_TEMPLATE.rq."""
        timeout = self._limit() if self._limit else None
        return self._store.select(render(f"names_{template}", **values), timeout=timeout, fresh=fresh).rows

    @property
    def labelled(self) -> int:
        """How many entities have a label, counted by the server. Raises as `Store.select` does."""
        return single_count(self.select("labelled", view=self._view, predicates=self._labels))

    def of(self, iris: Sequence[str]) -> dict[str, tuple[EntityName, ...]]:
        """All names of each of these entities that have letters or digits, labels first, by letters."""
        return self._known.with_all(iris, self._find)

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        """See `names.Names`."""
        found = self.of([entity.iri for entity in entities])
        return {entity: list(dict.fromkeys(item.name for item in found[entity.iri])) for entity in entities}

    def close(self) -> None:
        self._known.clear()

    def _find(self, iris: list[str]) -> dict[str, tuple[EntityName, ...]]:
        rows: dict[str, set[tuple[str, Literal]]] = {iri: set() for iri in iris}
        askable = [Entity(iri) for iri in iris if _askable(iri)]
        predicates = [Entity(predicate) for predicate in self._kinds]
        for start in range(0, len(askable), ENTITY_BATCH):
            batch = askable[start : start + ENTITY_BATCH]
            for entity, predicate, name in self.select("of", view=self._view, entities=batch, predicates=predicates):
                if isinstance(entity, Entity) and isinstance(predicate, Entity) and isinstance(name, Literal):
                    rows[entity.iri].add((predicate.iri, name))
        return {iri: tuple(self._sorted(found)) for iri, found in rows.items()}

    def _sorted(self, rows: set[tuple[str, Literal]]) -> list[EntityName]:
        names = [
            EntityName(name.value, kind, norm)
            for predicate, name in rows
            for kind in self._kinds[predicate]
            if (norm := normalised(name.value))
        ]
        return sorted(names, key=lambda item: (item.kind == "alias", item.name))


def _askable(iri: str) -> bool:
    try:
        render_term(Entity(iri))
    except InvalidTerm:
        return False  # a blank node of another store: no query can name it
    return True
