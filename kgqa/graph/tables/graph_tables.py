"""Tables derived from a whole graph, computed once and kept until the graph changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kgqa.cache import Cache
from kgqa.graph.names.interface import Names
from kgqa.graph.names.name_reader import Limit, background_limit
from kgqa.graph.names.shared import SharedNames
from kgqa.graph.query.templates import render
from kgqa.graph.store import Row, Rows, Store, count_value
from kgqa.graph.tables.labels import LABEL_BATCH
from kgqa.graph.tables.mediators import MediatorTable, mediator_table
from kgqa.graph.tables.relation_labels import FindLabels, declared_labels, find_relation_labels
from kgqa.graph.tables.versioned_values import VersionedValues
from kgqa.graph.tables.whole_graph import WholeGraphQueries
from kgqa.model import Entity, Value
from kgqa.model_json import from_json, to_json
from kgqa.schema import Schema

T = TypeVar("T")
TIMEOUT = 600.0
MANY_RELATIONS = 10 * LABEL_BATCH
"""Number of relations above which their labels are read in one query instead of in batches."""
VERSION = 2
"""Version of the format of cached tables, increased with every change of the format."""


class GraphTables:
    """Tables of one graph under one schema, each computed on first use. Thread-safe.

    If the graph has too many triples to scan, tables hold only what the graph declares, and `notes` says what is
    missing; such tables are not cached. An exception is raised if the server truncates a table or times out.

    Args:
        view: IRIs of the graphs to query; empty for the default graph.
        find_labels: returns the labels of entities; see `KnowledgeGraph.labels`.
        cache: where the tables are stored between processes; None keeps them in memory only.
        timeout: maximum seconds per query over the whole graph.
        scan: whether to run queries that read every triple if the store allows them.
    """

    def __init__(
        self,
        store: Store,
        schema: Schema,
        view: Sequence[Entity],
        *,
        find_labels: FindLabels,
        cache: Cache | None,
        timeout: float = TIMEOUT,
        scan: bool = True,
    ) -> None:
        self.store = store
        self.schema = schema
        self.view = tuple(view)
        self._find_labels = find_labels
        self._cache = cache
        self._timeout = timeout
        self._may_scan = scan
        self._graphs = graphs = tuple(entity.iri for entity in view)
        self._values = VersionedValues(lambda: store.version_of(graphs), drop=_close_names)
        self._names = SharedNames(self, self._values, notes=lambda: self._whole.notes)

    def select(self, name: str, **values: Any) -> Rows:
        """Run queries/NAME.rq over the view, without charging a question."""
        return self.store.select(render(name, view=self.view, **values), timeout=self._timeout)

    @property
    def _whole(self) -> WholeGraphQueries:
        return self._values.once("whole", lambda: WholeGraphQueries(self.select, may_scan=self._may_scan_now))

    def _may_scan_now(self) -> bool:
        return self._may_scan and self.store.may_scan(self._graphs)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that say what is missing in the tables computed so far because the graph is too large."""
        return tuple(self._whole.notes)

    @property
    def folder(self) -> Path | None:
        """The cache folder for this combination of graph, schema and view; None without a cache."""
        if self._cache is None or not (fingerprint := self.store.fingerprint_of(self._graphs)):
            return None
        # a server's fingerprint is computed from counts, so two servers can have the same fingerprint
        identity = self.store.capabilities.identity
        view = "".join(f"-{hashlib.sha256(e.iri.encode()).hexdigest()[:12]}" for e in self.view)
        return self._cache.entry("graphs", f"{fingerprint}{identity}-{self.schema.digest}{view}-{VERSION}")

    @property
    def relations(self) -> dict[str, int]:
        """All relations of the graph with their numbers of edges, most frequent first.

        If the graph is too large for counting, these are only the relations that the graph declares, with 0 edges each.
        """

        def find() -> dict[str, int]:
            note = (
                "The graph is too large to count its relations: only relations that the graph declares are known from "
                "the start."
            )
            rows = self._whole.scan("relation_counts", what="The relations", note=note)
            if rows is None:
                names = (
                    name for node in self._declared(self.schema.declared_by) for name in self.schema.named_by(node)
                )
                return dict.fromkeys(sorted(names, key=lambda name: (len(name), name)), 0)
            counts = ((row[0].iri, count_value(row[1])) for row in rows if isinstance(row[0], Entity))
            return dict(sorted(counts, key=lambda item: (-item[1], item[0])))

        return self._kept("relations", find, lambda data: {str(name): int(count) for name, count in data.items()})

    @property
    def counted(self) -> bool:
        """Whether the relations of the graph were counted; if not, only those that the graph declares are known."""
        self.relations  # noqa: B018 - counting may add a note
        return "relation_counts" not in self._whole.notes.values()

    def _declared(self, declaration: Sequence[str]) -> list[str]:
        """Return the nodes with any of these values of a predicate; `declaration` is (predicate, value, ...)."""
        if not declaration:
            return []
        predicate, *kinds = map(Entity, declaration)
        what = f"The nodes declared by {self.schema.short_id(predicate.iri)}"
        rows = self._whole.read("declared", declared_by=predicate, kinds=kinds, what=what)
        return sorted(row[0].iri for row in rows if isinstance(row[0], Entity))

    @property
    def noise(self) -> frozenset[str]:
        """Relations that the graph itself marks as noise, such as identifiers in other catalogues."""

        def find() -> list[str]:
            marked = self._declared(self.schema.noise_marked_by)
            return sorted(name for node in marked for name in self.schema.named_by(node))

        return self._kept("noise", find, lambda data: frozenset(map(str, _list(data))))

    @property
    def mediators(self) -> MediatorTable:
        """Which relations lead to mediators."""
        # fast path: needed for every step of every path
        known: MediatorTable | None = self._values.get("mediators")
        if known is not None:
            return known

        def find() -> dict[str, Any]:
            note = (
                "The graph is too large to search its nodes for mediators: mediators are recognized only by the "
                "ranges, domains and names of relations."
            )

            def scan(name: str, **values: Any) -> Rows | None:
                return self._whole.scan(name, what="The mediators", note=note, **values)

            table = mediator_table(self.schema, self._statements_of, self.relations, scan=scan)
            return {"leads": table.leads, "marks": to_json(table.marks)}

        return self._kept(
            "mediators",
            find,
            lambda data: MediatorTable(
                {side: dict(data["leads"][side]) for side in ("out", "in")},
                from_json(tuple[Value, ...], data["marks"]),
                self.schema.mediator_object_of,
                self.schema.mediator_subject_of,
            ),
        )

    def _statements_of(self, name: str, **values: Any) -> Rows:
        """Return all statements of one predicate."""
        predicate = values.get("predicate") or values["marker"]
        return self._whole.read(name, what=f"The statements of {self.schema.short_id(predicate.iri)}", **values)

    def _pairs(self, predicate: str) -> Iterable[Row]:
        # sorted, because the first of several types or inverses is used, and engines differ in their order
        return sorted(self._statements_of("predicate_pairs", predicate=Entity(predicate)), key=str)

    @property
    def inverses(self) -> dict[str, str]:
        """Map from each relation to its reverse property. Each declared pair is entered in both orders."""

        def find() -> dict[str, str]:
            pairs: dict[str, str] = {}
            for predicate in self.schema.inverse:
                for left, right in self._pairs(predicate):
                    if isinstance(left, Entity) and isinstance(right, Entity) and left != right:
                        pairs.setdefault(left.iri, right.iri)
                        pairs.setdefault(right.iri, left.iri)
            return pairs

        return self._kept("inverses", find, _texts)

    @property
    def inverse_of(self) -> dict[str, list[str]]:
        """Map from each relation to the relations that declare it as their reverse."""

        def turn() -> dict[str, list[str]]:
            reverse: dict[str, list[str]] = {}
            for left, right in self.inverses.items():
                reverse.setdefault(right, []).append(left)
            return reverse

        return self._values.once("inverse-of", turn)

    @property
    def types(self) -> dict[str, dict[str, str]]:
        """For each direction, a map from relations to the type of the nodes they lead to.

        For `out` the type is the range of the relation, for `in` the domain.
        """

        def find() -> dict[str, dict[str, str]]:
            found: dict[str, dict[str, str]] = {"out": {}, "in": {}}
            for direction, predicates in (("out", self.schema.range), ("in", self.schema.domain)):
                for predicate in predicates:
                    for relation, type_ in self._pairs(predicate):
                        if not isinstance(relation, Entity) or not isinstance(type_, Entity):
                            continue
                        if relation.iri in self.relations:
                            found[direction].setdefault(relation.iri, type_.iri)
            # types for one direction only would give steps in that direction an advantage
            for name in self.relations if found["out"] else ():
                if domain := self.schema.domain_in_name(name):
                    found["in"].setdefault(name, domain)
            return found

        return self._kept("types", find, lambda data: {side: _texts(data[side]) for side in ("out", "in")})

    @property
    def subject_relations(self) -> dict[str, tuple[str, ...]]:
        """Map from each relation looked up so far to the relations of its subjects."""
        return self._values.once("subject-relations", dict)

    @property
    def relation_labels(self) -> dict[str, str]:
        """Labels of relations, for schemas that name relations by labels (`wording = "label"`)."""
        if self.schema.wording != "label":
            return {}

        def find() -> dict[str, str]:
            relations = [r for r in self.relations if not self.is_noise(r)]
            many = len(relations) > MANY_RELATIONS or not self.counted
            known = declared_labels(self.schema, self._whole) if many else {}
            # relations that were not counted may be too many to look up in batches
            return find_relation_labels(
                relations, self.schema, known, self._find_labels if self.counted else lambda nodes: {}
            )

        # the digest of the schema does not cover the user's languages
        languages = hashlib.sha256(json.dumps(self.schema.languages).encode()).hexdigest()[:8]
        return self._kept(f"relation-labels-{languages}", find, _texts)

    def label_relations(self, relations: Iterable[str], find_labels: FindLabels) -> None:
        """Look up the labels of the given relations, if the graph is too large for a list of all its relations."""
        if self.schema.wording != "label" or self.counted:
            return
        asked: dict[str, None] = self._values.once("labelled-relations", dict)
        new = [r for r in relations if r not in asked and r not in self.relation_labels]
        asked.update(dict.fromkeys(new))
        self.relation_labels.update(find_relation_labels(new, self.schema, {}, find_labels))

    def is_noise(self, relation: str) -> bool:
        """Return whether exploration skips a relation because the schema or the graph marks it as noise."""
        return self.schema.is_noise(relation) or relation in self.noise

    @property
    def names(self) -> Names:
        """The index of names and aliases."""
        return self.names_within(background_limit)

    def names_within(self, limit: Limit) -> Names:
        """Return the index of names, for a question with this time limit. See `SharedNames.within`."""
        return self._names.within(limit)

    @property
    def labels(self) -> dict[Entity, str | None]:
        """Labels found so far; None for entities without a label."""
        return self._values.once("labels", dict)

    def prepare(self) -> None:
        """Compute the tables that every question needs, so that no question waits for them."""
        self.relations, self.noise, self.mediators, self.relation_labels, self.inverse_of, self.types  # noqa: B018

    def close(self) -> None:
        """Close the index of names."""
        self._values.clear()

    def _kept(self, name: str, make: Callable[[], Any], read: Callable[[Any], T]) -> T:
        """Return a table, from memory, from its JSON file in `folder`, or computed by `make`.

        `read` converts the JSON to the table, and raises an exception if the JSON is damaged.
        """

        def find() -> T:
            file = self.folder / f"{name}.json" if self.folder else None
            if file and file.is_file():
                try:
                    return read(json.loads(file.read_text(encoding="utf-8")))
                except (OSError, ValueError, KeyError, TypeError, AttributeError):
                    pass  # the file is damaged: compute the table again
            value = make()
            # an incomplete table is not cached: another process may be able to compute it completely
            if file and self._cache and not self._whole.notes:
                self._cache.write_text(file, json.dumps(value))
            return read(value)

        return self._values.once(name, find)


def _close_names(values: dict[str, Any]) -> None:
    if index := values.get("names"):
        index.close()


def _texts(data: Any) -> dict[str, str]:
    if not all(isinstance(value, str) for value in data.values()):
        raise ValueError("not a table of texts")
    return dict(data)


def _list(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise ValueError("not a list")
    return data
