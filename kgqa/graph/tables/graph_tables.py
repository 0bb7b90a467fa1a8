"""Tables derived from a whole graph, computed once; an edit changes what it touches."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import cast

import msgspec
from msgspec import structs, to_builtins

from kgqa.errors import PartialResult, StoreError, StoreTimeout
from kgqa.graph.editing import Changes, VersionedValues
from kgqa.graph.names.graph_names import GraphNames
from kgqa.graph.store import Store
from kgqa.graph.tables.declarations import (
    SIDES,
    Declarations,
    Edges,
    MediatorTable,
    NamedTypes,
    count_edges,
    count_named_types,
    declared_nodes,
    declaring_predicates,
    follow_edges,
    follow_named_types,
    read_declarations,
    types_without_names,
)
from kgqa.graph.tables.graph_reader import TIMEOUT, GraphReader
from kgqa.graph.tables.labels import (
    FindLabels,
    declared_labels,
    find_relation_labels,
    languages_of,
    values_of,
)
from kgqa.model import Direction, Entity, Literal, Step, Value
from kgqa.schema import STANDARD_PREFIXES, Schema
from kgqa.storage.cache import Cache, warn_unreadable
from kgqa.storage.loading import parse_json
from kgqa.text.words import local_name

COMMENT = STANDARD_PREFIXES["rdfs"] + "comment"
_WORD, _SENTENCE = re.compile(r"[^\W\d_]{3}"), re.compile(r"[.;:\n]")
COUNTING = (
    "The graph is too large to count its relations: only relations that the graph declares are known from the start."
)
SEARCHING = (
    "The graph is too large to search its nodes for mediators: mediators are recognized only by the ranges, domains "
    "and names of relations."
)
LABELLING = "The graph has too many relations to read all their labels in one query: labels are looked up when needed."
Types = dict[Direction, dict[str, str]]


class Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """All tables of one version of a graph.

    Attributes:
        declarations: What the graph declares.
        edges: The relations and their edges. If the graph is too large to count them, only the declared relations.
        relation_labels: Labels of the relations that the schema names by their labels; see `Schema.is_labelled`.
        notes: Sentences that say what is missing because the graph is too large.
        named_types: How many nodes of each type have a name; empty if that makes no difference or was not counted.
    """

    declarations: Declarations
    edges: Edges
    relation_labels: dict[str, str]
    notes: tuple[str, ...] = ()
    named_types: NamedTypes = {}

    @cached_property
    def relations(self) -> dict[str, int]:
        """All relations with their numbers of edges, most frequent first."""
        return by_frequency({name: counts[0] for name, counts in self.edges.items()})


class GraphTables(GraphReader):
    """Tables of one graph under one schema, each computed on first use. Thread-safe.

    If the graph has too many triples to scan, tables hold only what the graph declares, and `notes` says what is
    missing; such tables are not cached. An exception is raised if the server truncates a table or times out.

    Args:
        view: IRIs of the graphs to query; empty for the default graph.
        find_labels: returns the labels of entities; see `KnowledgeGraph.labels`.
        cache: where the tables are stored between processes; None keeps them in memory only.
        timeout: maximum seconds per query over the whole graph.
        scan: whether to run queries that read every triple if the store allows them.

    Attributes:
        names: the index of names and aliases.
        values: keeps other values that are computed from the graph, by name.
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
        super().__init__(store, schema, view, cache=cache, timeout=timeout, scan=scan)
        self._find_labels = find_labels
        self.values = VersionedValues(self.version, self.changes_since)
        self._opened_version = self.version()
        self.names = GraphNames(self)
        # the digest of the schema does not cover the user's languages
        self._file_name = f"tables-{hashlib.sha256(json.dumps(schema.languages).encode()).hexdigest()[:8]}.json"

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that say what is missing in the tables computed so far because the graph is too large."""
        known = self.values.known("tables")
        return (*(known.notes if known else ()), *filter(None, [self.names.note]))

    @property
    def _tables(self) -> Tables:
        return self.values.get("tables", self._read_or_compute, self._follow)

    def _read_or_compute(self) -> Tables:
        version = self.version()
        file = self.folder / self._file_name if self.folder else None
        if file and file.exists():
            try:
                return cast(Tables, parse_json(file.read_bytes(), Tables))
            except (OSError, ValueError) as error:
                warn_unreadable(file, error)
        tables = self._compute()
        self._write(tables, version)
        return tables

    def _write(self, tables: Tables, version: str) -> None:
        """Write the tables of a version into the cache, unless they are incomplete or the graph has changed since."""
        folder = self.folder
        if folder and self._cache and not tables.notes and self.version() == version:
            self._cache.write_text(folder / self._file_name, json.dumps(to_builtins(tables)))

    def save(self) -> None:
        """Write the tables and the index of names into the cache folder of the graph as it is now."""
        version, tables, folder = self.version(), self.values.known("tables") and self._tables, self.folder
        if folder and self.version() == version and not (tables and tables.notes):
            if self.store.capabilities.remote and version != self._opened_version:
                # an edit that leaves all counts of a server equal leaves the fingerprint and this folder, too
                shutil.rmtree(folder, ignore_errors=True)
            if tables:
                self._write(tables, version)
            self.names.save(folder)

    def prepare(self) -> None:
        """Compute the tables that every question needs, so that no question waits for them."""
        self.relations, self.mediators, self.types  # noqa: B018

    def close(self) -> None:
        """Save the tables if the graph was edited, and close the index of names."""
        if self.version() != self._opened_version:
            with suppress(StoreError):  # tables that are not saved are computed again
                self.save()
        self.names.close()

    # --- computing and following

    def _compute(self) -> Tables:
        scan, notes = self.may_scan, []
        named_types = count_named_types(self.schema, self.read) if scan and self._counts_names else {}
        schema = self._with_unnamed(named_types)
        declarations = read_declarations(schema, self.read)
        if scan:
            threads = 1 if self.store.capabilities.remote else 2
            edges = count_edges(schema, declarations, self.read, threads=threads)
            labels = self._labels_of(edges, declarations, self._find_labels)
            return Tables(declarations, edges, labels, named_types=named_types)
        notes.append(COUNTING)
        if declarations.mediator_types or schema.mediator_iri_prefixes:
            notes.append(SEARCHING)
        declared = declared_nodes(schema.declared_by, self.read)
        edges = {name: (0, 0, 0) for node in declared for name in schema.named_by(node)}
        known: dict[Entity, str] = {}
        if any(map(schema.is_labelled, edges)):  # too many to look up in batches
            try:
                known = declared_labels(schema, self.read)
            except (StoreTimeout, PartialResult):
                notes.append(LABELLING)  # no label is lost, but finding the labels takes longer then
        return Tables(declarations, edges, self._labels_of(edges, declarations, lambda _: known), tuple(notes))

    @property
    def _counts_names(self) -> bool:
        # a server would take long to look at the types and names of all nodes
        return self.schema.mediator_unnamed and not self.store.capabilities.remote

    def _with_unnamed(self, named_types: NamedTypes) -> Schema:
        """Return the schema with the types without names as further mediator types."""
        types = (*self.schema.mediator_types, *sorted(types_without_names(named_types)))
        return structs.replace(self.schema, mediator_types=types)

    def _labels_of(self, names: Iterable[str], declarations: Declarations, find: FindLabels) -> dict[str, str]:
        schema, noise = self.schema, declarations.noise
        wanted = [
            name for name in names if schema.is_labelled(name) and not schema.is_noise(name) and name not in noise
        ]
        labels = find_relation_labels(wanted, schema, find)
        # an id such as p17 says nothing; what a comment says of it does
        coded = [Entity(name) for name in wanted if name not in labels and not _WORD.search(local_name(name))]
        remote = self.store.capabilities.remote
        rows: list[tuple[Entity, Entity, Value]] = []
        with suppress(StoreError):  # only a help
            rows = values_of(coded, [COMMENT], select=self.select, languages=languages_of(schema), remote=remote)
        comments = {node.iri: _SENTENCE.split(value.value)[0] for node, _, value in rows if isinstance(value, Literal)}
        return labels | comments

    def _follow(self, tables: Tables, changes: Changes) -> Tables | None:
        """Return the tables after some changes; None if they must be computed again."""
        known, named_types = tables.declarations, tables.named_types
        schema = self._with_unnamed(named_types)
        if tables.notes or (schema.mediator_marked_by and schema.mediator_marked_by[0] in changes.relations):
            return None
        same = changes.relations.isdisjoint((*declaring_predicates(schema), *schema.noise_marked_by[:1]))
        if self._counts_names:
            named_types = follow_named_types(named_types, changes, schema=schema, select=self.select)
            if types_without_names(named_types) != types_without_names(tables.named_types):
                return None
        declarations = known if same else read_declarations(schema, self.read)
        types = declarations.mediator_types
        edges = follow_edges(tables.edges, changes, schema=schema, types=types, select=self.select)
        subjects = [subject.iri for subject in changes.subjects((*schema.label, COMMENT))]
        touched = {name for subject in subjects for name in (subject, *schema.named_by(subject))}
        touched |= {name for name in changes.relations if (name in edges) != (name in tables.edges)}
        touched |= known.noise ^ declarations.noise
        kept = {name: label for name, label in tables.relation_labels.items() if name not in touched}
        labels = self._labels_of(touched.intersection(edges), declarations, self._find_labels) if touched else {}
        return Tables(declarations, edges, kept | labels, named_types=named_types)

    # --- relations and mediators

    @property
    def declarations(self) -> Declarations:
        """What the graph declares about its relations and types."""
        return self._tables.declarations

    @property
    def relations(self) -> dict[str, int]:
        """All relations of the graph with their numbers of edges, most frequent first.

        If the graph is too large for counting, these are only the relations that the graph declares, with 0 edges each.
        """
        return self._tables.relations

    @property
    def counted(self) -> bool:
        """Whether the relations of the graph were counted; if not, only those that the graph declares are known."""
        return COUNTING not in self._tables.notes

    def is_noise(self, relation: str) -> bool:
        """Return whether exploration skips a relation because the schema or the graph marks it as noise."""
        return self.schema.is_noise(relation) or relation in self.declarations.noise

    @property
    def mediators(self) -> MediatorTable:
        """Which relations lead to mediators."""
        return self.values.get("mediators", self._mediator_table)

    def _mediator_table(self) -> MediatorTable:
        tables = self._tables
        return MediatorTable(self._with_unnamed(tables.named_types), tables.declarations, tables.edges)

    def leads_to_mediator(self, step: Step) -> bool:
        """Return whether all nodes that a step leads to are mediators."""
        return self.mediators.extent(step) == "all"

    @property
    def inverses(self) -> dict[str, str]:
        """Map from each relation to its reverse property. Each declared pair is entered in both orders."""
        return self.declarations.inverses

    @property
    def types(self) -> Types:
        """For each direction, a map from relations to the type of the nodes they lead to: their range or domain.

        A relation without an entry is not declared; nothing is known of its nodes.
        """
        return self.values.get("types", self._find_types)

    def _find_types(self) -> Types:
        relations, declared = self.relations, self.declarations.types
        types: Types = {
            side: {name: declared[side][name][0] for name in relations if name in declared[side]} for side in SIDES
        }
        # types for one direction only would give steps in that direction an advantage
        for name in relations if types["out"] else ():
            if domain := self.schema.domain_in_name(name):
                types["in"].setdefault(name, domain)
        return types

    def target_type(self, step: Step) -> str | None:
        """Return the type that the graph declares for the nodes to which a step leads; None if it declares no type."""
        return self.types[step.direction].get(step.relation)

    @property
    def counted_types(self) -> frozenset[str]:
        """The types of all nodes; empty if they were not counted."""
        return frozenset(self._tables.named_types)

    @property
    def classes(self) -> frozenset[str]:
        """The types of the nodes, as far as they were counted, and those that the graph declares for relations."""
        return self.counted_types.union(*(types.values() for types in self.types.values()))

    # --- labels and names

    @property
    def relation_labels(self) -> dict[str, str]:
        """Labels of the relations that the schema names by their labels; see `Schema.is_labelled`."""
        return self._tables.relation_labels

    def label_relations(self, relations: Iterable[str], find_labels: FindLabels) -> None:
        """Look up the labels of the given relations, if the graph is too large for a list of all its relations."""
        if self.counted:
            return
        known = self.relation_labels
        new = [relation for relation in relations if relation not in known]
        known.update(self._labels_of(new, self.declarations, find_labels))

    @property
    def labels(self) -> dict[Entity, str | None]:
        """Labels found so far; None for entities without a label."""
        return self.values.get("labels", dict, self._follow_labels)

    def _follow_labels(self, labels: dict[Entity, str | None], changes: Changes) -> dict[Entity, str | None]:
        touched = changes.subjects(self.schema.label)
        if not touched:
            return labels
        # of a copy, because other threads may add what they have read before the changes
        return {entity: label for entity, label in labels.copy().items() if entity not in touched}


def by_frequency(counts: dict[str, int]) -> dict[str, int]:
    """Sort relations by falling frequency, then by name; relations that were not counted by the length of the name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], 0 if item[1] else len(item[0]), item[0])))
