"""What is derived once from a whole graph, and made anew when its fingerprint says that it has changed."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kgqa.cache import Cache
from kgqa.graph.mediators import MediatorTable, mediator_table
from kgqa.graph.names import NameIndex
from kgqa.graph.queries import render
from kgqa.graph.store import Rows, Store
from kgqa.model import Entity, Value, from_json, to_json
from kgqa.schema import Schema

T = TypeVar("T")
Labels = dict[Entity, str]
TIMEOUT = 600.0
VERSION = 2
"""Goes up when what is derived changes its shape, so that what is in a cache is not misread."""


class Derived:
    """Tables of one graph under one schema, each made when it is first asked for. Thread-safe.

    Args:
        view: graph IRIs; empty for the default graph.
        find_labels: the labels of entities, see `KnowledgeGraph.labels`.
        cache: where the tables are kept between processes; None keeps them in memory only.
        timeout: seconds a query over the whole graph may take.
    """

    def __init__(
        self,
        store: Store,
        schema: Schema,
        view: Sequence[Entity],
        *,
        find_labels: Callable[[Sequence[Entity]], Labels],
        cache: Cache | None,
        timeout: float = TIMEOUT,
    ) -> None:
        self.store = store
        self.schema = schema
        self.view = tuple(view)
        self._find_labels = find_labels
        self._cache = cache
        self._timeout = timeout
        self._lock = threading.RLock()
        self._version = ""
        self._known: dict[str, Any] = {}

    def select(self, name: str, **values: Any) -> Rows:
        """Run queries/NAME.rq over the view, charged to no question."""
        return self.store.select(render(name, view=self.view, **values), timeout=self._timeout)

    @property
    def folder(self) -> Path | None:
        """Where what is derived from exactly this graph is kept, None without a cache."""
        if self._cache is None or not self.store.fingerprint:
            return None
        view = "".join(f"-{hashlib.sha256(e.iri.encode()).hexdigest()[:12]}" for e in self.view)
        return self._cache.entry("graphs", f"{self.store.fingerprint}-{self.schema.digest}{view}-{VERSION}")

    @property
    def relations(self) -> dict[str, int]:
        """All relations of the graph and their number of edges, most frequent first."""

        def find() -> dict[str, int]:
            return {row[0].iri: int(row[1].value) for row in self.select("relation_counts")}

        return self._kept("relations", find, lambda data: {str(name): int(count) for name, count in data.items()})

    @property
    def mediators(self) -> MediatorTable:
        """Which relations lead to mediators."""

        def find() -> dict[str, Any]:
            return to_json(mediator_table(self.schema, self.select, self.relations))

        return self._kept(
            "mediators",
            find,
            lambda data: MediatorTable(
                {side: dict(data["leads"][side]) for side in ("out", "in")},
                from_json(tuple[Value, ...], data["marks"]),
            ),
        )

    @property
    def inverses(self) -> dict[str, str]:
        """Relation to its reverse property, both ways, where the graph says so."""

        def find() -> dict[str, str]:
            pairs: dict[str, str] = {}
            for predicate in self.schema.inverse:
                for left, right in self.select("predicate_pairs", predicate=Entity(predicate)):
                    if isinstance(left, Entity) and isinstance(right, Entity) and left != right:
                        pairs.setdefault(left.iri, right.iri)
                        pairs.setdefault(right.iri, left.iri)
            return pairs

        return self._kept("inverses", find, _texts)

    @property
    def inverse_of(self) -> dict[str, list[str]]:
        """Relation to all whose reverse property it is."""

        def turn() -> dict[str, list[str]]:
            reverse: dict[str, list[str]] = {}
            for left, right in self.inverses.items():
                reverse.setdefault(right, []).append(left)
            return reverse

        return self._once("inverse-of", turn)

    @property
    def types(self) -> dict[str, dict[str, str]]:
        """For each direction the type that a relation leads to: its range, or against it its domain."""

        def find() -> dict[str, dict[str, str]]:
            found: dict[str, dict[str, str]] = {"out": {}, "in": {}}
            for direction, predicates in (("out", self.schema.range), ("in", self.schema.domain)):
                for predicate in predicates:
                    for relation, type_ in self.select("predicate_pairs", predicate=Entity(predicate)):
                        if (
                            isinstance(relation, Entity)
                            and isinstance(type_, Entity)
                            and relation.iri in self.relations
                        ):
                            found[direction].setdefault(relation.iri, type_.iri)
            # types known in one direction only would favour it
            for relation in self.relations if found["out"] else ():
                if domain := self.schema.domain_in_name(relation):
                    found["in"].setdefault(relation, domain)
            return found

        return self._kept("types", find, lambda data: {side: _texts(data[side]) for side in ("out", "in")})

    @property
    def subject_relations(self) -> dict[str, tuple[str, ...]]:
        """The relations that subjects of a relation have, of the relations looked up so far."""
        return self._once("subject-relations", dict)

    @property
    def relation_labels(self) -> dict[str, str]:
        """Relations' own labels, for schemas that name relations (`wording = "label"`)."""

        def find() -> dict[str, str]:
            subjects = {r: Entity(self.schema.label_subject(r)) for r in self.relations if not self.schema.is_noise(r)}
            labels = self._find_labels([*subjects.values(), *map(Entity, subjects)])
            found = {r: labels.get(s) or labels.get(Entity(r)) for r, s in subjects.items()}
            return {r: label for r, label in found.items() if label}

        return self._kept("relation-labels", find, _texts) if self.schema.wording == "label" else {}

    @property
    def names(self) -> NameIndex:
        """The index of names and aliases."""
        return self._once("names", lambda: NameIndex.open(self))

    @property
    def labels(self) -> dict[Entity, str | None]:
        """The labels looked up so far; None for entities without."""
        return self._once("labels", dict)

    def prepare(self) -> None:
        """Derive what every question needs, now rather than in the middle of one."""
        self.relations, self.mediators, self.relation_labels, self.inverse_of, self.types  # noqa: B018

    def close(self) -> None:
        """Let go of the index of names."""
        with self._lock:
            self._forget()

    def _once(self, name: str, make: Callable[[], T]) -> T:
        current, known = self.store.version, self._known
        if self._version == current and name in known:
            return known[name]
        with self._lock:
            if self._version != current:
                self._forget()
                self._version = current
            if name not in self._known:
                self._known[name] = make()
            return self._known[name]

    def _forget(self) -> None:
        if index := self._known.get("names"):
            index.close()
        self._known = {}

    def _kept(self, name: str, make: Callable[[], Any], read: Callable[[Any], T]) -> T:
        """A JSON value kept in the cache by fingerprint, schema and view; `read` gives it its types."""

        def find() -> T:
            file = self.folder / f"{name}.json" if self.folder else None
            if file and file.is_file():
                try:
                    return read(json.loads(file.read_text(encoding="utf-8")))
                except (OSError, ValueError, KeyError, TypeError, AttributeError):
                    pass  # damaged: made anew
            value = make()
            if file and self._cache:
                self._cache.write_text(file, json.dumps(value))
            return read(value)

        return self._once(name, find)


def _texts(data: Any) -> dict[str, str]:
    if not all(isinstance(value, str) for value in data.values()):
        raise ValueError("not a table of texts")
    return dict(data)
