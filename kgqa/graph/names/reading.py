"""Reads the names of a graph: of some entities, or all of them, page by page if the graph is on a server."""

from __future__ import annotations

import copy
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from kgqa.errors import PartialResult, StoreError
from kgqa.graph.query.templates import render
from kgqa.graph.store import Row, Rows, Store, single_count
from kgqa.graph.tables.changes import Changes
from kgqa.model import Entity, Literal
from kgqa.schema import Schema
from kgqa.text.words import is_anonymous, local_words

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


class NamedGraph(Protocol):
    """A graph whose names are read and indexed. The index follows its edits."""

    store: Store
    schema: Schema
    view: tuple[Entity, ...]

    @property
    def folder(self) -> Path | None:
        """The folder that keeps the index between processes; None to keep it in memory."""
        ...

    def version(self) -> str: ...

    def changes_since(self, version: str) -> Changes | None: ...


def background_limit() -> float:
    """Return the time limit, in seconds, of a query that is not part of answering a question."""
    return DEFAULT_SECONDS


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


class NameReader:
    """Reads names from a graph. Thread-safe. All methods raise the same errors as `Store.select`.

    Args:
        limit: time limit of each query.

    Attributes:
        kinds: for each predicate of names, the kinds of its names; a predicate may be listed as label and as alias.
    """

    def __init__(self, store: Store, schema: Schema, view: Sequence[Entity], limit: Limit = background_limit) -> None:
        self._store = store
        self._schema = schema
        self._view = tuple(view)
        self._limit = limit
        self.kinds: dict[str, list[str]] = {}
        for kind, predicates in (("label", schema.label), ("alias", schema.alias)):
            for predicate in predicates:
                self.kinds.setdefault(predicate, []).append(kind)

    def within(self, limit: Limit) -> Self:
        """Return a reader with another limit."""
        bound = copy.copy(self)
        bound._limit = limit
        return bound

    def select(self, template: str, *, fresh: bool = True, max_rows: int | None = None, **values: object) -> Rows:
        """Run the query queries/TEMPLATE.rq over the view and return the rows of its result."""
        predicates = [Entity(predicate) for predicate in self.kinds]
        query = render(template, view=self._view, **{"predicates": predicates, **values})
        return self._store.select(query, timeout=self._limit(), fresh=fresh, max_rows=max_rows)

    def names(self, rows: Sequence[Row] | Rows) -> list[Name]:
        """Return the names in rows of entity, predicate and name; those of blank nodes are left out.

        A name that an entity has in two languages is there twice, as in `all`.
        """
        return [
            (entity.iri, name.value, kind)
            for entity, predicate, name in rows
            if isinstance(entity, Entity) and isinstance(predicate, Entity) and isinstance(name, Literal)
            for kind in self.kinds[predicate.iri]
            if not entity.iri.startswith("_:")
        ]

    def all(self) -> Iterator[Name]:
        """Read all names, labels before aliases, in the order of the schema's predicates.

        If the graph has no names, the words at the end of each IRI are used as a name of kind `iri`. Blank nodes and
        IRIs that stand for them are left out.

        Raises:
            PartialResult: a server truncates even small pages, or all pages together have fewer names than the graph.
        """
        found = False
        for predicate, kinds in self.kinds.items():
            for subject, name in self._pairs(Entity(predicate)):
                if isinstance(subject, Entity) and isinstance(name, Literal) and not subject.iri.startswith("_:"):
                    found = True
                    yield from ((subject.iri, name.value, kind) for kind in kinds)
        for (node,) in () if found else self.select("all_nodes", max_rows=MAX_ROWS):
            if isinstance(node, Entity) and not is_anonymous(node.iri):
                yield node.iri, local_words(node.iri), "iri"

    def count(self, *wanted: str) -> int:
        """Count the triples that give names of the wanted kinds, or any names, to entities."""
        kept = {iri: [kind for kind in kinds if kind in wanted or not wanted] for iri, kinds in self.kinds.items()}
        return sum(len(kinds) * self._count(iri) for iri, kinds in kept.items() if kinds)

    def share(self) -> NameShare | None:
        """Count the subjects of the graph and those with a label; None if it is too large, or the store fails."""
        try:
            if not self._store.may_scan([graph.iri for graph in self._view]):
                return None
            counts = {iri: self._count(iri) for iri in self._schema.label}
            labelled = self.select("names_labelled", predicates=[Entity(iri) for iri in self._schema.label])
            subjects = self.select("subject_count")
        except StoreError:
            return None
        found = {iri: count for iri, count in counts.items() if count}
        return NameShare(single_count(labelled), single_count(subjects), found)

    def _count(self, predicate: str) -> int:
        return single_count(self.select("names_count", predicate=Entity(predicate)))

    def _pairs(self, predicate: Entity) -> Iterator[Row]:
        """Read all subjects and objects of a predicate; on a server in pages, unsorted, because it cannot sort so many.

        A server may order the rows differently for each page. The pages are therefore complete only if all of them
        together have as many distinct rows as the server counts.
        """
        if not self._store.capabilities.remote:
            yield from self.select("predicate_pairs", fresh=False, max_rows=MAX_ROWS, predicate=predicate)
            return
        total, size, offset = self._count(predicate.iri), PAGE_ROWS, 0
        seen = array("q")
        while offset < total:
            try:
                rows = self.select("names_page", predicate=predicate, limit=size, offset=offset)
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
