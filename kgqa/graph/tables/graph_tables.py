"""Tables derived from a whole graph, computed once; after an edit, they change by what it touched."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from msgspec import to_builtins

from kgqa.errors import StoreError, StoreTimeout
from kgqa.graph.names.graph_names import GraphNames
from kgqa.graph.names.index import NameIndex
from kgqa.graph.names.reading import Limit, background_limit
from kgqa.graph.query.templates import render
from kgqa.graph.store import Rows, Store
from kgqa.graph.tables.changes import Changes, VersionedValues, changes_since
from kgqa.graph.tables.declarations import SIDES, Declarations, declared_nodes, declaring_predicates, read_declarations
from kgqa.graph.tables.labels import LABEL_BATCH, FindLabels, declared_labels, find_relation_labels
from kgqa.graph.tables.mediators import Edges, MediatorTable, count_edges, follow_edges
from kgqa.graph.tables.whole_graph import WholeGraphQueries
from kgqa.model import Direction, Entity, Step
from kgqa.net.threads import question_end
from kgqa.schema import Schema
from kgqa.storage.cache import Cache, warn_unreadable
from kgqa.storage.loading import parse_json
from kgqa.text.hints import Command, Option

TIMEOUT = 600.0
MANY_RELATIONS = 10 * LABEL_BATCH
"""Number of relations above which their labels are read in one query instead of in batches."""
VERSION = 3
"""Version of the format of cached tables, increased with every change of the format."""
COUNTING = (
    "The graph is too large to count its relations: only relations that the graph declares are known from the start."
)
SEARCHING = (
    "The graph is too large to search its nodes for mediators: mediators are recognized only by the ranges, domains "
    "and names of relations."
)
Types = dict[Direction, dict[str, str]]
_FILE_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True)
class _Table:
    """How a table that is kept in the cache is computed, and changed by edits. `kind` is the type of its values."""

    kind: Any
    compute: Callable[[], Any]
    follow: Callable[[Any, Changes], Any]


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
        self._declaring = declaring_predicates(schema)
        self._tables = {
            "declarations": _Table(
                Declarations,
                lambda: read_declarations(schema, self._whole.read),
                lambda known, changes: known if changes.relations.isdisjoint(self._declaring) else None,
            ),
            "edges": _Table(Edges, self._count_edges, self._follow_edges),
            self._relation_labels: _Table(dict[str, str], self._label_relations, self._follow_relation_labels),
        }

    # --- versions

    def version(self) -> str:
        """Return the current version of the view; see `Store.version_of`."""
        return self.store.version_of(self._graphs)

    def changes_since(self, version: str) -> Changes | None:
        """Return the changes since a version; None if everything must be computed again. See `changes_since`."""
        return changes_since(version, self.store, self.view) if self._may_scan_now() else None

    def select(self, name: str, **values: Any) -> Rows:
        """Run queries/NAME.rq over the view, without charging a question; on a server, until the question's end."""
        query, end = render(name, view=self.view, **values), question_end.get()
        if end is None or not self.store.capabilities.remote:
            return self.store.select(query, timeout=self._timeout)
        try:
            return self.store.select(query, timeout=min(self._timeout, max(0.001, end - time.monotonic())))
        except StoreTimeout as error:
            hint = (
                "Make the tables once with ",
                Command("graph info"),
                ", or allow more time: ",
                Option("max-seconds"),
            )
            raise StoreTimeout(error.message, *hint) from error

    @property
    def _whole(self) -> WholeGraphQueries:
        return self._values.get("whole", lambda: WholeGraphQueries(self.select))

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
        return self._values.get(name, lambda: self._read_or_compute(name), self._tables[name].follow)

    def _read_or_compute(self, name: str) -> Any:
        table, version = self._tables[name], self.version()
        file = self.folder / f"{name}.json" if self.folder else None
        if file and file.exists():
            try:
                return parse_json(file.read_bytes(), table.kind)
            except (OSError, ValueError) as error:
                warn_unreadable(file, error)
        value = table.compute()
        # an incomplete table is not cached: another process may be able to compute it completely
        if file and self._cache and not self._whole.notes and self.version() == version:
            self._cache.write_text(file, json.dumps(to_builtins(value)))
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
                    self._cache.write_text(file, json.dumps(to_builtins(value)))
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

    # --- relations and mediators

    @property
    def declarations(self) -> Declarations:
        """What the graph declares about its relations and types."""
        return cast(Declarations, self._table("declarations"))

    @property
    def _edges(self) -> Edges:
        return cast(Edges, self._table("edges"))

    def _count_edges(self) -> Edges:
        whole, schema = self._whole, self.schema
        if self._may_scan_now():
            threads = 1 if self.store.capabilities.remote else 2
            return count_edges(schema, self.declarations, whole.read, threads=threads)
        whole.notes[COUNTING] = "relation_counts"
        if self.declarations.mediator_types or schema.mediator_iri_prefixes:
            whole.notes[SEARCHING] = "mediator_edges"
        names = (
            name for node in declared_nodes(schema, whole.read, schema.declared_by) for name in schema.named_by(node)
        )
        return dict.fromkeys(names, (0, 0, 0))

    def _follow_edges(self, edges: Edges, changes: Changes) -> Edges | None:
        if self.schema.mediator_marked_by and self.schema.mediator_marked_by[0] in changes.relations:
            return None
        types = self.declarations.mediator_types
        return follow_edges(edges, changes, schema=self.schema, types=types, select=self.select)

    @property
    def relations(self) -> dict[str, int]:
        """All relations of the graph with their numbers of edges, most frequent first.

        If the graph is too large for counting, these are only the relations that the graph declares, with 0 edges each.
        """
        return self._values.get(
            "relations", lambda: by_frequency({name: each[0] for name, each in self._edges.items()})
        )

    @property
    def counted(self) -> bool:
        """Whether the relations of the graph were counted; if not, only those that the graph declares are known."""
        self.relations  # noqa: B018 - counting may add a note
        return COUNTING not in self._whole.notes

    def _came_or_went(self, changes: Changes) -> set[str]:
        """Return the relations that the graph has only after some changes, or only before."""
        net = Counter(triple.relation for triple in changes.added)
        net.subtract(triple.relation for triple in changes.removed)
        return {name for name, change in net.items() if self.relations.get(name, 0) in (0, change)}

    @property
    def noise(self) -> frozenset[str]:
        """Relations that the graph itself marks as noise, such as identifiers in other catalogues."""
        return self.declarations.noise

    def is_noise(self, relation: str) -> bool:
        """Return whether exploration skips a relation because the schema or the graph marks it as noise."""
        return self.schema.is_noise(relation) or relation in self.noise

    @property
    def mediators(self) -> MediatorTable:
        """Which relations lead to mediators."""
        return self._values.get("mediators", lambda: MediatorTable(self.schema, self.declarations, self._edges))

    def leads_to_mediator(self, step: Step) -> bool:
        """Return whether all nodes that a step leads to are mediators."""
        return self.mediators.extent(step) == "all"

    @property
    def inverses(self) -> dict[str, str]:
        """Map from each relation to its reverse property. Each declared pair is entered in both orders."""
        return self.declarations.inverses

    @property
    def inverse_of(self) -> dict[str, list[str]]:
        """Map from each relation to the relations that declare it as their reverse."""
        return self.declarations.inverse_of

    @property
    def types(self) -> Types:
        """For each direction, a map from relations to the type of the nodes they lead to: their range or domain.

        A relation without an entry is not declared; nothing is known of its nodes.
        """
        return self._values.get("types", self._find_types, self._follow_types)

    def _find_types(self) -> Types:
        return self._with_types({"out": {}, "in": {}}, self.relations)

    def _with_types(self, types: Types, relations: Iterable[str]) -> Types:
        """Add the types of some relations of the graph."""
        relations = [name for name in relations if name in self.relations]
        for side, declared in self.declarations.types.items():
            types[side] |= {name: declared[name][0] for name in relations if name in declared}
        # types for one direction only would give steps in that direction an advantage
        for name in relations if types["out"] else ():
            if domain := self.schema.domain_in_name(name):
                types["in"].setdefault(name, domain)
        return types

    def _follow_types(self, types: Types, changes: Changes) -> Types | None:
        turned = self._came_or_went(changes)
        kept: Types = {side: {n: type_ for n, type_ in types[side].items() if n not in turned} for side in SIDES}
        followed = self._with_types(kept, turned)
        # whether names of relations give domains depends on whether there are any ranges
        same = bool(followed["out"]) == bool(types["out"]) and self._declaring.isdisjoint(changes.relations)
        return followed if same else None

    def target_type(self, step: Step) -> str | None:
        """Return the type that the graph declares for the nodes to which a step leads; None if it declares no type."""
        return self.types[step.direction].get(step.relation)

    @property
    def subject_relations(self) -> dict[str, frozenset[str]]:
        """Map from each relation looked up since the last edit to the relations of its subjects."""
        return self._values.get("subject-relations", dict)

    # --- labels and names

    @property
    def relation_labels(self) -> dict[str, str]:
        """Labels of the relations that the schema names by their labels; see `Schema.is_labelled`."""
        if self.schema.wording != "label" and not self.schema.labelled:
            return {}
        return cast(dict[str, str], self._table(self._relation_labels))

    def _label_relations(self) -> dict[str, str]:
        relations = [relation for relation in self.relations if self._has_label(relation)]
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
        touched = named | self._came_or_went(changes)
        kept = {name: label for name, label in labels.items() if name not in touched}
        wanted = [name for name in touched.intersection(self.relations) if self._has_label(name)]
        return kept | find_relation_labels(wanted, self.schema, {}, self._find_labels) if touched else labels

    def _has_label(self, relation: str) -> bool:
        return self.schema.is_labelled(relation) and not self.is_noise(relation)

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
