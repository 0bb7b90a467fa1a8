"""What is derived once from a whole graph, and made anew when its fingerprint says that it has changed."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from kgqa.cache import Cache
from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.endpoint.store import MUCH_MORE
from kgqa.graph.names.index import Names
from kgqa.graph.names.opening import open_names
from kgqa.graph.names.reading import Limit, no_question
from kgqa.graph.names.unindexed import UnindexedNames
from kgqa.graph.query.templates import render
from kgqa.graph.store import Row, Rows, Store, count_value
from kgqa.graph.tables.labels import LABEL_BATCH, languages_of, names_by_node
from kgqa.graph.tables.mediators import MediatorTable, mediator_table
from kgqa.graph.tables.whole_graph import WholeGraphQueries
from kgqa.model import Entity, Value, from_json, to_json
from kgqa.schema import Schema

T = TypeVar("T")
Labels = dict[Entity, str]
FindLabels = Callable[[Sequence[Entity]], Labels]
TIMEOUT = 600.0
LONGEST_WAIT = 600.0
UNCOUNTED_SECONDS = 600.0
"""How long it is remembered that names could not be counted in time, for those who give it no more time."""
MANY_RELATIONS = 10 * LABEL_BATCH
"""Relations whose labels are better asked for in one query than batch by batch."""
VERSION = 2
"""Goes up when what is derived changes its shape, so that what is in a cache is not misread."""


class GraphTables:
    """Tables of one graph under one schema, each made when it is first asked for. Thread-safe.

    Where the graph is too large for a query over all of it, a table holds what the schema says by itself, and
    `notes` what is missing for that reason; none of it is then kept in the cache. Too large is what has too many triples:
    a table that was cut short or came too late is an error.

    Args:
        view: graph IRIs; empty for the default graph.
        find_labels: the labels of entities, see `KnowledgeGraph.labels`.
        cache: where the tables are kept between processes; None keeps them in memory only.
        timeout: seconds a query over the whole graph may take.
        scan: whether queries that look at every triple are tried at all.
        most_scanned: triples up to which they are; None for any number.
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
        most_scanned: int | None = None,
    ) -> None:
        self.store = store
        self.schema = schema
        self.view = tuple(view)
        self._find_labels = find_labels
        self._cache = cache
        self._timeout = timeout
        self._may_scan = scan
        self._most_scanned = most_scanned
        self._lock = threading.RLock()
        # of its own: names may take minutes, in which other questions need the other tables
        self._naming = threading.Lock()
        self._version = ""
        self._known: dict[str, Any] = {}

    def select(self, name: str, **values: Any) -> Rows:
        """Run queries/NAME.rq over the view, charged to no question."""
        return self.store.select(render(name, view=self.view, **values), timeout=self._timeout)

    @property
    def _whole(self) -> WholeGraphQueries:
        return self._once("whole", lambda: WholeGraphQueries(self.select, may_scan=self._may_scan_now))

    def _may_scan_now(self) -> bool:
        if not self._may_scan or self._most_scanned is None:
            return self._may_scan
        if self.store.triples is None:  # not counted in time, which a busy server does not do of a small graph either
            return not getattr(self.store, "large", False)
        return self.store.triples <= self._most_scanned

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of the tables made so far because the graph is too large for it, in sentences."""
        return tuple(self._whole.notes)

    @property
    def folder(self) -> Path | None:
        """Where what is derived from exactly this graph is kept, None without a cache."""
        if self._cache is None or not self.store.fingerprint:
            return None
        # of a server's graph the fingerprint is made of counts, and those of another server may be the same
        place = getattr(self.store, "identity", "")
        view = "".join(f"-{hashlib.sha256(e.iri.encode()).hexdigest()[:12]}" for e in self.view)
        return self._cache.entry("graphs", f"{self.store.fingerprint}{place}-{self.schema.digest}{view}-{VERSION}")

    @property
    def relations(self) -> dict[str, int]:
        """All relations of the graph and their number of edges, most frequent first; with 0 edges each those that the
        graph declares, where it is too large to count them.
        """

        def find() -> dict[str, int]:
            note = (
                "The graph is too large to count its relations: they are those that it declares, and others become "
                "known as they come up."
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
        """Whether the relations of the graph are all known, and not only those that it declares."""
        # asked for first: counting them is what may leave a note
        self.relations  # noqa: B018
        return "relation_counts" not in self._whole.notes.values()

    def _declared(self, declaration: Sequence[str]) -> list[str]:
        """What carries a predicate with one of some values, as a schema's `declared_by` and `marked_by` say it."""
        if not declaration:
            return []
        predicate, *kinds = map(Entity, declaration)
        what = f"What is declared by {self.schema.short_id(predicate.iri)}"
        rows = self._whole.ask("declared", declared_by=predicate, kinds=kinds, what=what)
        return sorted(row[0].iri for row in rows if isinstance(row[0], Entity))

    @property
    def noise(self) -> frozenset[str]:
        """Relations that the graph itself marks as noise: the identifiers of other catalogues."""

        def find() -> list[str]:
            marked = self._declared(self.schema.noise_marked_by)
            return sorted(name for node in marked for name in self.schema.named_by(node))

        return self._kept("noise", find, lambda data: frozenset(map(str, _list(data))))

    @property
    def mediators(self) -> MediatorTable:
        """Which relations lead to mediators."""
        # asked for every step of every path
        if self._version == self.store.version and (known := self._known.get("mediators")) is not None:
            return known

        def find() -> dict[str, Any]:
            note = (
                "The graph is too large to look for mediators among its nodes: they are told by ranges, domains and the "
                "names of relations only."
            )

            def scan(name: str, **values: Any) -> Rows | None:
                return self._whole.scan(name, what="The mediators", note=note, **values)

            table = mediator_table(self.schema, self._said_by, self.relations, scan=scan)
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

    def _said_by(self, name: str, **values: Any) -> Rows:
        """What one predicate says of all its subjects."""
        predicate = values.get("predicate") or values["marker"]
        return self._whole.ask(name, what=f"What {self.schema.short_id(predicate.iri)} says", **values)

    def _pairs(self, predicate: str) -> Iterable[Row]:
        # of several types or inverses the first is taken, and which that is must not be the engine's choice
        return sorted(self._said_by("predicate_pairs", predicate=Entity(predicate)), key=str)

    @property
    def inverses(self) -> dict[str, str]:
        """Relation to its reverse property, both ways, where the graph says so."""

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
                    for relation, type_ in self._pairs(predicate):
                        here = isinstance(relation, Entity) and relation.iri in self.relations
                        if here and isinstance(type_, Entity):
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
        if self.schema.wording != "label":
            return {}

        def find() -> dict[str, str]:
            relations = [r for r in self.relations if not self.is_noise(r)]
            known = self._declared_labels() if len(relations) > MANY_RELATIONS or not self.counted else {}
            # what was not counted may be far more than can be asked for batch by batch
            return self._labels_of(relations, known, self._find_labels if self.counted else lambda nodes: {})

        # not by schema alone: the person's languages come before those of the file
        languages = hashlib.sha256(json.dumps(self.schema.languages).encode()).hexdigest()[:8]
        return self._kept(f"relation-labels-{languages}", find, _texts)

    def label_relations(self, relations: Iterable[str], find_labels: FindLabels) -> None:
        """Look up the labels of relations that came up in a graph too large to list them."""
        if self.schema.wording != "label" or self.counted:
            return
        asked: dict[str, None] = self._once("labelled-relations", dict)
        new = [r for r in relations if r not in asked and r not in self.relation_labels]
        asked.update(dict.fromkeys(new))
        self.relation_labels.update(self._labels_of(new, {}, find_labels))

    def _labels_of(self, relations: Iterable[str], known: Labels, find_labels: FindLabels) -> dict[str, str]:
        """The label of each relation that has one: that of what names it, else its own."""
        subjects = {r: Entity(self.schema.label_subject(r)) for r in relations}
        known = {**known, **find_labels([s for s in dict.fromkeys(subjects.values()) if s not in known])}
        own = [Entity(r) for r, subject in subjects.items() if subject not in known and subject.iri != r]
        known |= find_labels(own)
        found = {r: known.get(subject) or known.get(Entity(r)) for r, subject in subjects.items()}
        return {r: label for r, label in found.items() if label}

    def _declared_labels(self) -> Labels:
        """The labels of the relations that the graph declares, in one query for each predicate."""
        found: Labels = {}
        if self.schema.declared_by:
            by, *kinds = map(Entity, self.schema.declared_by)
            note = "The labels of all relations are too much to ask for: they are looked up as the relations come up."
            for label in map(Entity, self.schema.label):
                options = {
                    "declared_by": by,
                    "kinds": kinds,
                    "predicate": label,
                    "languages": languages_of(self.schema),
                }
                try:
                    rows = self._whole.ask("declared_labels", what="The labels of relations", **options)
                except (StoreTimeout, PartialResult):
                    self._whole.notes[note] = "declared_labels"  # nothing is lost by it but time
                    continue
                for node, names in names_by_node(rows, self.schema).items():
                    found.setdefault(node, names[0])
        return found

    def is_noise(self, relation: str) -> bool:
        """Whether exploration leaves a relation alone, by the schema or by what the graph says of it."""
        return self.schema.is_noise(relation) or relation in self.noise

    @property
    def names(self) -> Names:
        """The index of names and aliases."""
        return self.names_within(no_question)

    def names_within(self, limit: Limit) -> Names:
        """The index of names, for a question that may wait for it as long as `limit` lets it.

        Raises:
            BudgetExhausted: the question has no more time. StoreError: the names cannot be read.
        """
        if (names := self._known_names(limit)) is not None:
            return names
        with _held(self._naming, limit):  # another question may be having it made
            if (names := self._known_names(limit)) is not None:
                return names
            with _held(self._lock, limit):
                whole, known = self._whole, self._known
            seconds = limit() or LONGEST_WAIT
            names, note = open_names(self, limit=limit)
            if note:
                whole.notes[note] = "names"
            if isinstance(names, UnindexedNames) and not names.counted:
                known["uncounted"] = (time.monotonic(), seconds, names)
            else:
                known["names"] = names
            return names

    def _known_names(self, limit: Limit) -> Names | None:
        """The index that is there; for a while also the one of names that there was no time to count."""
        if self._version != self.store.version:
            return None
        known = self._known
        if (names := known.get("names")) is None and "uncounted" in known:
            since, seconds, uncounted = known["uncounted"]
            recent = time.monotonic() - since < UNCOUNTED_SECONDS
            names = uncounted if recent and (limit() or LONGEST_WAIT) < MUCH_MORE * seconds else None
        return names

    @property
    def labels(self) -> dict[Entity, str | None]:
        """The labels looked up so far; None for entities without."""
        return self._once("labels", dict)

    def prepare(self) -> None:
        """Derive what every question needs, now rather than in the middle of one."""
        self.relations, self.noise, self.mediators, self.relation_labels, self.inverse_of, self.types  # noqa: B018

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
            # what rests on something left out is not what the graph would say with more time
            if file and self._cache and not self._whole.notes:
                self._cache.write_text(file, json.dumps(value))
            return read(value)

        return self._once(name, find)


@contextmanager
def _held(lock: Any, limit: Limit) -> Iterator[None]:
    """Hold a lock, waiting for it no longer than `limit` lets a question."""
    while not lock.acquire(timeout=min(limit() or LONGEST_WAIT, LONGEST_WAIT)):
        pass
    try:
        yield
    finally:
        lock.release()


def _texts(data: Any) -> dict[str, str]:
    if not all(isinstance(value, str) for value in data.values()):
        raise ValueError("not a table of texts")
    return dict(data)


def _list(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise ValueError("not a list")
    return data
