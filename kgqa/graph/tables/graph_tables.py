"""Tables derived from a whole graph, computed once; after an edit, they change by what it touched."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from kgqa.errors import StoreError
from kgqa.graph.names.graph_names import GraphNames
from kgqa.graph.names.index import NameIndex
from kgqa.graph.names.reading import Limit, background_limit
from kgqa.graph.query.templates import render
from kgqa.graph.store import Row, Rows, Store, count_value
from kgqa.graph.tables.changes import OTHER, VALUE, Changes, VersionedValues, changes_since, matches, unless_touched
from kgqa.graph.tables.labels import LABEL_BATCH, FindLabels, declared_labels, find_relation_labels
from kgqa.graph.tables.mediators import (
    SIDES,
    MediatorTable,
    follow_mediators,
    mediator_table,
    mediators_from_json,
    mediators_to_json,
)
from kgqa.graph.tables.node_types import Types, find_types, follow_types
from kgqa.graph.tables.whole_graph import WholeGraphQueries
from kgqa.model import Entity, Step
from kgqa.schema import Schema
from kgqa.storage.cache import Cache, warn_unreadable
from kgqa.storage.loading import convert

TIMEOUT = 600.0
MANY_RELATIONS = 10 * LABEL_BATCH
"""Number of relations above which their labels are read in one query instead of in batches."""
VERSION = 2
"""Version of the format of cached tables, increased with every change of the format."""
COUNTING = (
    "The graph is too large to count its relations: only relations that the graph declares are known from the start."
)
SEARCHING = (
    "The graph is too large to search its nodes for mediators: mediators are recognized only by the ranges, domains "
    "and names of relations."
)
_FILE_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True)
class _Table:
    """How a table is computed, read from JSON data (or an exception if these are damaged), changed and written."""

    compute: Callable[[], Any]
    read: Callable[[Any], Any]
    follow: Callable[[Any, Changes], Any]
    write: Callable[[Any], Any] = lambda table: table


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
        self._graphs = tuple(entity.iri for entity in view)
        self._values = VersionedValues(self.version, self.changes_since, complete=lambda: not self._whole.notes)
        self._opened_version = self.version()
        self._names = GraphNames(self)
        # the digest of the schema does not cover the user's languages
        languages = hashlib.sha256(json.dumps(schema.languages).encode()).hexdigest()[:8]
        self._relation_labels = f"relation-labels-{languages}"
        marker, inverse = schema.noise_marked_by[:1], schema.inverse
        self._tables = {
            "relations": _Table(
                self._count_relations,
                lambda data: {str(name): int(count) for name, count in data.items()},
                self._follow_relations,
            ),
            "noise": _Table(
                lambda: frozenset(
                    name for node in self._declared(schema.noise_marked_by) for name in schema.named_by(node)
                ),
                lambda data: frozenset(convert(data, tuple[str, ...])),
                unless_touched(marker),
                sorted,
            ),
            "inverses": _Table(self._find_inverses, _texts, unless_touched(inverse)),
            "types": _Table(
                lambda: find_types(schema, self.relations, self._pairs),
                lambda data: {side: _texts(data[side]) for side in SIDES},
                lambda types, changes: follow_types(
                    types, changes, schema=schema, relations=self.relations, select=self.select
                ),
            ),
            "mediators-3": _Table(
                lambda: mediator_table(schema, self._statements_of, self.relations, scan=self._scan_for_mediators),
                lambda data: mediators_from_json(data, schema, self.relations),
                lambda table, changes: follow_mediators(
                    table, changes, select=self.select, relations=self.relations.keys()
                ),
                mediators_to_json,
            ),
            self._relation_labels: _Table(self._label_relations, _texts, self._follow_relation_labels),
        }
        self._readers = {name: partial(self._read_or_compute, name) for name in self._tables}

    # --- versions

    def version(self) -> str:
        """Return the current version of the view; see `Store.version_of`."""
        return self.store.version_of(self._graphs)

    def changes_since(self, version: str) -> Changes | None:
        """Return the changes since a version; None if everything must be computed again. See `changes_since`."""
        return changes_since(version, self.store, self.view) if self._may_scan_now() else None

    def select(self, name: str, **values: Any) -> Rows:
        """Run queries/NAME.rq over the view, without charging a question."""
        return self.store.select(render(name, view=self.view, **values), timeout=self._timeout)

    @property
    def _whole(self) -> WholeGraphQueries:
        return self._values.get("whole", lambda: WholeGraphQueries(self.select, may_scan=self._may_scan_now))

    def _may_scan_now(self) -> bool:
        return self._may_scan and self.store.may_scan(self._graphs)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that say what is missing in the tables computed so far because the graph is too large."""
        return (*self._whole.notes, *filter(None, [self._names.note]))

    # --- files in the cache

    @property
    def folder(self) -> Path | None:
        """The cache folder for this combination of graph, schema and view; None without a cache."""
        if self._cache is None or not (fingerprint := self.store.fingerprint_of(self._graphs)):
            return None
        # a server's fingerprint is computed from counts, so two servers can have the same fingerprint
        data = f"{fingerprint}{self.store.capabilities.identity}"
        if not _FILE_NAME.fullmatch(data):
            data = hashlib.sha256(data.encode()).hexdigest()[:32]
        view = "-" + hashlib.sha256("\n".join(self._graphs).encode()).hexdigest()[:12] if self._graphs else ""
        return self._cache.entry("graphs", f"{data}-{self.schema.digest}{view}-{VERSION}")

    def _table(self, name: str) -> Any:
        return self._values.get(name, self._readers[name], self._tables[name].follow)

    def _read_or_compute(self, name: str) -> Any:
        table, version = self._tables[name], self.version()
        file = self.folder / f"{name}.json" if self.folder else None
        if file and file.exists():
            try:
                return table.read(json.loads(file.read_text(encoding="utf-8")))
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                warn_unreadable(file, error)
        value = table.compute()
        # an incomplete table is not cached: another process may be able to compute it completely
        if file and self._cache and not self._whole.notes and self.version() == version:
            self._cache.write_text(file, json.dumps(table.write(value)))
        return value

    def save(self) -> None:
        """Write the tables and the index of names into the cache folder of the graph as it is now."""
        known = [name for name in self._tables if name in self._values]
        version, values = self.version(), {name: self._table(name) for name in known}
        if (folder := self.folder) and self._cache and self.version() == version and not self._whole.notes:
            if self.store.capabilities.remote and version != self._opened_version:
                # an edit that leaves all counts of a server equal leaves the fingerprint and this folder, too
                shutil.rmtree(folder, ignore_errors=True)
            for name, value in values.items():
                if not (file := folder / f"{name}.json").is_file():
                    self._cache.write_text(file, json.dumps(self._tables[name].write(value)))
            self._names.save(folder)

    def prepare(self) -> None:
        """Compute the tables that every question needs, so that no question waits for them."""
        self.relations, self.noise, self.mediators, self.relation_labels, self.inverse_of, self.types  # noqa: B018

    def close(self) -> None:
        """Save the tables if the graph was edited, and close the index of names."""
        if self.version() != self._opened_version:
            with suppress(StoreError):  # tables that are not saved are computed again
                self.save()
        self._names.close()

    # --- relations

    @property
    def relations(self) -> dict[str, int]:
        """All relations of the graph with their numbers of edges, most frequent first.

        If the graph is too large for counting, these are only the relations that the graph declares, with 0 edges each.
        """
        return cast(dict[str, int], self._table("relations"))

    def _count_relations(self) -> dict[str, int]:
        rows = self._whole.scan("relation_counts", what="The relations", note=COUNTING)
        if rows is None:
            names = (name for node in self._declared(self.schema.declared_by) for name in self.schema.named_by(node))
            return dict.fromkeys(sorted(names, key=lambda name: (len(name), name)), 0)
        return by_frequency({row[0].iri: count_value(row[1]) for row in rows if isinstance(row[0], Entity)})

    def _follow_relations(self, relations: dict[str, int], changes: Changes) -> dict[str, int]:
        counts = Counter(relations)
        counts.update(triple.relation for triple in changes.added)
        counts.subtract(triple.relation for triple in changes.removed)
        return by_frequency({name: count for name, count in counts.items() if count > 0})

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
        return cast(frozenset[str], self._table("noise"))

    def is_noise(self, relation: str) -> bool:
        """Return whether exploration skips a relation because the schema or the graph marks it as noise."""
        return self.schema.is_noise(relation) or relation in self.noise

    # --- mediators, inverses, types

    @property
    def mediators(self) -> MediatorTable:
        """Which relations lead to mediators."""
        return cast(MediatorTable, self._table("mediators-3"))

    def leads_to_mediator(self, step: Step) -> bool:
        """Return whether all nodes that a step leads to are mediators."""
        return self.mediators.extent(step) == "all"

    def _scan_for_mediators(self, name: str, **values: Any) -> Rows | None:
        return self._whole.scan(name, what="The mediators", note=SEARCHING, **values)

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
        return cast(dict[str, str], self._table("inverses"))

    def _find_inverses(self) -> dict[str, str]:
        pairs: dict[str, str] = {}
        for predicate in self.schema.inverse:
            for left, right in self._pairs(predicate):
                if isinstance(left, Entity) and isinstance(right, Entity) and left != right:
                    pairs.setdefault(left.iri, right.iri)
                    pairs.setdefault(right.iri, left.iri)
        return pairs

    @property
    def inverse_of(self) -> dict[str, list[str]]:
        """Map from each relation to the relations that declare it as their reverse."""

        def turn() -> dict[str, list[str]]:
            reverse: dict[str, list[str]] = {}
            for left, right in self.inverses.items():
                reverse.setdefault(right, []).append(left)
            return reverse

        return self._values.get("inverse-of", turn, unless_touched(self.schema.inverse))

    @property
    def types(self) -> Types:
        """The types of the nodes to which relations lead, for both directions."""
        return cast(Types, self._table("types"))

    def target_type(self, step: Step) -> str | None:
        """Return the type that the graph declares for the nodes to which a step leads; None if it declares no type."""
        return self.types[step.direction].get(step.relation)

    @property
    def subject_relations(self) -> dict[str, frozenset[str]]:
        """Map from each relation looked up so far to the relations of its subjects."""
        return self._values.get("subject-relations", dict, self._follow_subject_relations)

    def _follow_subject_relations(
        self, known: dict[str, frozenset[str]], changes: Changes
    ) -> dict[str, frozenset[str]] | None:
        if not changes.relations.isdisjoint(self.schema.noise_marked_by[:1]):
            return None
        subjects = {triple.subject for triple in changes.triples} if known else ()
        found = matches(self.select, [(subject, VALUE, OTHER, 0) for subject in subjects])
        touched = changes.relations.union(
            value.iri for values in found for value in values if isinstance(value, Entity)
        )
        # a copy, because other threads may add what they have read before the changes
        return {name: relations for name, relations in known.items() if name not in touched}

    # --- labels and names

    @property
    def relation_labels(self) -> dict[str, str]:
        """Labels of the relations that the schema names by their labels; see `Schema.is_labelled`."""
        if self.schema.wording != "label" and not self.schema.labelled:
            return {}
        return cast(dict[str, str], self._table(self._relation_labels))

    def _label_relations(self) -> dict[str, str]:
        relations = [r for r in self.relations if not self.is_noise(r) and self.schema.is_labelled(r)]
        many = self.schema.wording == "label" and (len(relations) > MANY_RELATIONS or not self.counted)
        known = declared_labels(self.schema, self._whole) if many else {}
        # relations that were not counted may be too many to look up in batches
        return find_relation_labels(
            relations, self.schema, known, self._find_labels if self.counted else lambda nodes: {}
        )

    def _follow_relation_labels(self, labels: dict[str, str], changes: Changes) -> dict[str, str] | None:
        if not changes.relations.isdisjoint(self.schema.noise_marked_by[:1]):
            return None
        subjects = changes.subjects(self.schema.label)
        named = {name for subject in subjects for name in (subject.iri, *self.schema.named_by(subject.iri))}
        relations = self.relations
        touched = named | {name for name in changes.relations if (name in relations) != (name in labels)}
        wanted = (name for name in touched if name in relations and self.schema.is_labelled(name))
        present = [name for name in wanted if not self.is_noise(name)]
        if not present and labels.keys().isdisjoint(touched):
            return labels
        kept = {name: label for name, label in labels.items() if name not in touched}
        return kept | find_relation_labels(present, self.schema, {}, self._find_labels)

    def label_relations(self, relations: Iterable[str], find_labels: FindLabels) -> None:
        """Look up the labels of the given relations, if the graph is too large for a list of all its relations."""
        if (self.schema.wording != "label" and not self.schema.labelled) or self.counted:
            return
        asked: dict[str, None] = self._values.get("labelled-relations", dict)
        known = self.relation_labels
        new = [r for r in relations if self.schema.is_labelled(r) and r not in asked and r not in known]
        asked.update(dict.fromkeys(new))
        self.relation_labels.update(find_relation_labels(new, self.schema, {}, find_labels))

    @property
    def labels(self) -> dict[Entity, str | None]:
        """Labels found so far; None for entities without a label."""
        return self._values.get("labels", dict, self._follow_labels)

    def _follow_labels(self, labels: dict[Entity, str | None], changes: Changes) -> dict[Entity, str | None]:
        touched = changes.subjects(self.schema.label)
        if not touched:
            return labels
        kept = labels.copy()  # other threads may add what they have read before the changes
        return {entity: label for entity, label in kept.items() if entity not in touched}

    def names_within(self, limit: Limit = background_limit) -> NameIndex:
        """Return the index of names and aliases, for a question with this time limit. See `GraphNames.within`."""
        return self._names.within(limit)


def by_frequency(counts: dict[str, int]) -> dict[str, int]:
    """Sort relations by falling frequency, then by name; relations that were not counted by the length of the name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], 0 if item[1] else len(item[0]), item[0])))


def _texts(data: Any) -> dict[str, str]:
    if not all(isinstance(value, str) for value in data.values()):
        raise ValueError("not a table of texts")
    return dict(data)
