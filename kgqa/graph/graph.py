"""A knowledge graph: a store seen through a schema. What exploration asks, in the query shapes that are fast."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kgqa.cache import Cache
from kgqa.errors import ResultCapped, RowCapMet, StoreTimeout
from kgqa.graph.call_pool import CallPool, Item, Result
from kgqa.graph.edges import count_edges, find_edges
from kgqa.graph.names.index import Names
from kgqa.graph.query import export
from kgqa.graph.query.patterns import PathPattern, Restrictions, TypeTest, path_pattern, returns
from kgqa.graph.query.templates import Variable, render
from kgqa.graph.store import DEFAULT_TIMEOUT, Rows, Store, count_value
from kgqa.graph.tables import graph_tables
from kgqa.graph.tables.folding import StatementExit, fold_steps
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.graph.tables.labels import LABEL_BATCH, find_aliases, find_labels, is_blank_node, with_labels
from kgqa.graph.tables.mediators import MediatorTable, mediator_filters
from kgqa.model import Entity, Join, Named, RelationPath, Step, Value
from kgqa.schema import Schema, WalkRule

if TYPE_CHECKING:
    from kgqa.trace import Trace

SUBJECTS = 50
"""Subjects of a relation that are looked at to know what they are like."""
MOST_RELATIONS = 12
DEFAULT_FRONTIER_CAP = 1000


@dataclass(frozen=True, slots=True)
class Expansion:
    """The steps that lead on from a path. `approximate`: its frontier was capped, steps may be missing."""

    steps: tuple[Step, ...]
    approximate: bool


@dataclass(frozen=True, slots=True)
class Ends:
    """Distinct entities and literals at the end of a path. `approximate`: there are more than were asked for."""

    values: tuple[Value, ...]
    approximate: bool


class KnowledgeGraph:
    """Explores one dataset of a store.

    Args:
        store: anything that keeps the `Store` contract.
        schema: what its IRIs look like; see `detect_schema`.
        view: graph IRIs to look at; empty for the store's default graph.
        walks: what a walk may return to; None for the schema's rule. See `patterns.path_pattern`.
        frontier_cap: how many nodes at the end of a path exploration looks on from, at most.
        timeout: seconds one query of a question may take; what is derived from the whole graph has more.
        cache: where derived tables are kept; None keeps them in memory only.
        languages: those of the person who asks, before the schema's; see `kgqa.schema.language_list`.
        scan: whether queries that look at every triple are tried; without them what the schema says must do.
        most_scanned: triples up to which they are tried; None for any number.
    """

    def __init__(
        self,
        store: Store,
        schema: Schema,
        *,
        view: Sequence[str] = (),
        walks: WalkRule | None = None,
        frontier_cap: int = DEFAULT_FRONTIER_CAP,
        timeout: float = DEFAULT_TIMEOUT,
        cache: Cache | None = None,
        languages: Sequence[str] = (),
        scan: bool = True,
        most_scanned: int | None = None,
    ) -> None:
        self.store = store
        self.schema = schema = schema.preferring(languages)
        self.view = tuple(Entity(iri) for iri in view)
        self.walks: WalkRule = walks or schema.walks
        self.frontier_cap = frontier_cap
        self.timeout = timeout
        self.cache = cache
        self.settings: dict[str, Any] = {}
        """Settings that belong to the graph, as its folder keeps them."""
        self.tables = GraphTables(
            store,
            schema,
            self.view,
            find_labels=self.labels,
            cache=cache,
            timeout=max(timeout, graph_tables.TIMEOUT),
            scan=scan,
            most_scanned=most_scanned,
        )
        self._calls = CallPool(lambda: self.concurrency, spare=lambda: getattr(self.store, "has_place", True))
        self._trace: Trace | None = None
        self._names: Names | None = None

    def for_question(self, trace: Trace) -> KnowledgeGraph:
        """The same graph, its queries charged to one question's budget."""
        # shared by all questions, charged to none
        self.prepare()
        bound = copy.copy(self)
        bound._trace, bound._names = trace, None
        return bound

    def prepare(self) -> None:
        """Derive what every question needs from the whole graph, now rather than in the middle of one."""
        self.tables.prepare()

    def close(self) -> None:
        """Let go of the store, whose workers end, and of the index of names."""
        self._calls.close()
        self.tables.close()
        self.store.close()

    def __enter__(self) -> KnowledgeGraph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def concurrency(self) -> int:
        """Queries of one question that its store takes at once."""
        return getattr(self.store, "concurrency", 1)

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        tolerated: tuple[type[Exception], ...] = (),
    ) -> list[Any]:
        """The results of independent calls that ask this graph, as many at once as its store takes. See
        `CallPool.map`.
        """
        return self._calls.map(function, items, tolerated=tolerated)

    # --- exploration

    def next_steps(self, path: RelationPath, *, restricted: Restrictions = ()) -> Expansion:
        """The steps that lead on from the ends of a path, in both directions, in one query; in two
        where edges lead the topic to itself, which are no steps.

        Noise relations are left out. Of a relation and the inverse of its reverse property only the first is
        given; of a statement and the claim it stands for only the claim. Literals are ends, never walked through.

        Args:
            restricted: for places of the path (1 is the node after the topic) the only entities to go on from.
        """
        walk = path_pattern(path, self.walks, inverse=self.inverse, final=False)
        walk = replace(walk, restricted=restricted) if restricted else walk
        query = self._expansion_query(path, walk)
        rows = self._select("relations", **query)
        found = _columns(rows)
        if loops := found["loop"]:
            onward = _columns(self._select("past_loops", node=path.topic, relations=sorted(loops, key=str)))
            found |= {direction: found[direction] - loops | onward[direction] for direction in ("out", "in")}
        frontier = max((count_value(count) for count in found["frontier"]), default=0)
        steps = fold_steps(
            {Step(relation.iri, side) for side in ("out", "in") for relation in found[side]},  # type: ignore[union-attr,arg-type]
            path.steps[-1] if path.steps else None,
            schema=self.schema,
            noise=self.tables.noise,
            inverses=self.inverses,
            inverse_of=self.tables.inverse_of,
            says_more=lambda leaving: self._says_more(leaving, query),
            may_return=self.walks == "free",
        )
        self.tables.label_relations((step.relation for step in steps), self.labels)
        return Expansion(steps, approximate=frontier > self.frontier_cap)

    def _expansion_query(self, path: RelationPath, walk: PathPattern) -> dict[str, Any]:
        returning: dict[str, list[Entity]] = {"out": [], "in": []}
        previous = walk.nodes[-2] if len(path) else None
        if self.walks == "no-return" and len(path):
            last = path.steps[-1]
            known = {last.relation, self.inverse(last.relation), *self.tables.inverse_of.get(last.relation, ())}
            for direction, relations in returning.items():
                relations += [
                    Entity(relation)
                    for relation in sorted(r for r in known if r)
                    if returns(Step(relation, direction), last, self.inverse)  # type: ignore[arg-type]
                ]
        keep = [walk.end]
        if self.walks == "no-return" and len(path) > 1:
            keep.insert(0, previous)
        return {
            "walk": walk,
            "keep": keep,
            "cap": self.frontier_cap,
            "not_node": path.topic if self.walks in ("topic-not-end", "topic-never") else None,
            "not_out": returning["out"],
            "not_in": returning["in"],
            "previous": previous,
        }

    def _says_more(self, leaving: StatementExit, query: dict[str, Any]) -> bool:
        """Whether some statement at the end of a path says what no claim says: one that newer statements replaced."""
        walk, out = query["walk"], leaving.step.direction == "out"
        entered_from, other = walk.nodes[-2], Variable("other")
        keep = [walk.end] if isinstance(entered_from, Entity) else [entered_from, walk.end]
        untrue = self.schema.mediator_untrue
        try:
            return self._ask(
                "says_more",
                walk=walk,
                keep=keep,
                cap=self.frontier_cap,
                out=out,
                exit=Entity(leaving.step.relation),
                claim=Entity(leaving.claim),
                owner=entered_from if out else other,
                value=other if out else entered_from,
                untrue=[TypeTest(Entity(untrue[0]), Entity(kind)) for kind in untrue[1:]],
            )
        except StoreTimeout:
            return False  # the claim is one of the other candidates

    def ends(
        self,
        path: RelationPath,
        *,
        joins: Sequence[Join] = (),
        restricted: Restrictions = (),
        limit: int | None = None,
    ) -> Ends:
        """The distinct entities and literals at the end of a path, mediators left out; all of them unless `limit`.

        Args:
            joins: paths that the walks must meet; every end is reached by a walk that meets all of them.
            restricted: the only entities that inner nodes may be, by their place.

        Raises:
            PartialResult: more than the store's row cap, without a limit.
        """
        rows = self._select(
            "ends", walk=self.pattern(path, joins, restricted), limit=None if limit is None else limit + 1
        )
        values = tuple(row[0] for row in rows if row[0] is not None)
        if limit is not None and len(values) > limit:
            return Ends(values[:limit], True)
        return Ends(values, False)

    def walks_along(
        self,
        path: RelationPath,
        *,
        joins: Sequence[Join] = (),
        restricted: Restrictions = (),
        ends: Sequence[Value] | None = None,
        limit: int = 100,
        timeout: float | None = None,
    ) -> list[tuple[Value, ...]]:
        """Some walks along a path, each from topic to end.

        Args:
            ends: only walks to the first `LABEL_BATCH` of these.
            timeout: seconds, where less than any query may take.
        """
        wanted = None if ends is None else [end for end in ends if not is_blank_node(end)][:LABEL_BATCH]
        if wanted == []:
            return []
        walk = self.pattern(path, joins, restricted)
        query = render("walks", view=self.view, walk=walk, variables=walk.nodes[1:], ends=wanted, limit=limit)
        return [(path.topic, *row) for row in self._rows(query, timeout=timeout)]

    def pattern(self, path: RelationPath, joins: Sequence[Join] = (), restricted: Restrictions = ()) -> PathPattern:
        """The pattern of a whole path, with what keeps mediators out of its ends, and of the paths it must meet.

        Raises:
            ValueError: a join has no steps or is not on an inner node or the end.
        """
        walk = path_pattern(path, self.walks, inverse=self.inverse)
        if any(not 0 < join.at <= len(path) or not join.path.steps for join in joins):
            raise ValueError("a join needs a path and a place after the topic")
        met = [
            (
                join.at,
                path_pattern(
                    join.path, self.walks, inverse=self.inverse, end=walk.nodes[join.at], prefix=f"j{number}_"
                ),
            )  # type: ignore[arg-type]
            for number, join in enumerate(joins, start=1)
        ]
        walk = replace(walk, joins=tuple(met), restricted=restricted) if met or restricted else walk
        if path.steps and self.mediators.extent(path.steps[-1]) == "some":
            walk = replace(walk, **mediator_filters(self.schema, self.mediators))
        return walk

    def target_type(self, step: Step) -> str | None:
        """The type of the nodes a step leads to, where the graph says so for the relation."""
        return self.tables.types[step.direction].get(step.relation)

    def describing_relations(self, step: Step) -> tuple[str, ...]:
        """Relations that say what a step leads to in a graph that declares no types: outwards its own (what `has
        genre` leads to is a genre), against it those that its subjects have. Empty in a graph with types.
        """
        if self.tables.types["out"] or self.tables.types["in"]:
            return ()
        return (step.relation,) if step.direction == "out" else self._subject_relations(step.relation)

    def _subject_relations(self, relation: str) -> tuple[str, ...]:
        """The relations that some subjects of a relation have, most frequent in the graph first."""
        known = self.tables.subject_relations
        if relation not in known:
            try:
                rows = self._select("subject_relations", relation=Entity(relation), sample=SUBJECTS)
            except StoreTimeout:
                rows = []  # one hint less; not asked for again
            found = {row[0].iri for row in rows if isinstance(row[0], Entity) and not self.is_noise(row[0].iri)}
            known[relation] = tuple(name for name in self.relations if name in found)[:MOST_RELATIONS]
        return known[relation]

    def leads_to_mediator(self, step: Step) -> bool:
        """Whether all nodes a step leads to are mediators."""
        return self.mediators.extent(step) == "all"

    def ends_on_mediators(self, path: RelationPath) -> bool:
        """Whether a path ends on mediators only, so that it is no answer and must be walked on."""
        return bool(path.steps) and self.leads_to_mediator(path.steps[-1])

    # --- single nodes

    def exists(self, entity: Entity) -> bool:
        """Whether any triple has this entity as its subject or object."""
        return self._ask("exists", entity=entity)

    def degree(self, entity: Entity) -> int:
        """Edges that leave or enter an entity, noise included."""
        return self.degrees([entity])[entity]

    def degrees(self, entities: Iterable[Entity]) -> dict[Entity, int]:
        """The degree of each of these entities, in two queries for every `LABEL_BATCH` of them."""
        return count_edges(entities, select=self._select, call_each=self.map)

    def neighbours(self, entity: Entity, *, limit: int = 100) -> list[tuple[Step, Value]]:
        """Up to `limit` edges of an entity in each direction, noise left out."""
        return find_edges(entity, limit=limit, schema=self.schema, is_noise=self.is_noise, select=self._select)

    def search(self, text: str, *, limit: int = 20):
        """Entities whose name or alias matches; best first. See `Names.search`."""
        return self.names.search(text, limit=limit)

    # --- names

    def labels(self, entities: Iterable[Entity]) -> dict[Entity, str]:
        """The label of each entity that has one, in the schema's order of predicates and languages."""
        return find_labels(entities, schema=self.schema, select=self._select, known=self.tables.labels)

    def aliases(self, entities: Iterable[Entity]) -> dict[Entity, tuple[str, ...]]:
        """The other names of each entity that has any, in the languages of the schema, else in any."""
        return find_aliases(entities, schema=self.schema, select=self._select)

    def named(self, values: Iterable[Value]) -> list[Named]:
        """Each value with its name: a label, or the readable end of its IRI; a literal's own text."""
        return with_labels(values, schema=self.schema, labels=self.labels)

    # --- what is derived from the whole graph once, see `GraphTables`

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not known of this graph because it is too large to look at all of it, in sentences."""
        return self.tables.notes

    def is_noise(self, relation: str) -> bool:
        """Whether exploration leaves a relation alone, by the schema or by what the graph says of it."""
        return self.tables.is_noise(relation)

    @property
    def names(self) -> Names:
        """The index of names. Within a question its queries, and those that make it, are within the question's limits."""
        if self._trace is None:
            return self.tables.names
        if self._names is None:
            self._names = self.tables.names_within(self._time_left).within(self._time_left)
        return self._names

    def _time_left(self) -> float | None:
        return self._trace.time_for(self.timeout) if self._trace else self.timeout

    @property
    def mediators(self) -> MediatorTable:
        return self.tables.mediators

    @property
    def relations(self) -> dict[str, int]:
        return self.tables.relations

    @property
    def inverses(self) -> dict[str, str]:
        return self.tables.inverses

    @property
    def relation_labels(self) -> dict[str, str]:
        return self.tables.relation_labels

    def inverse(self, relation: str) -> str | None:
        return self.inverses.get(relation)

    # --- the store, charged

    def _select(self, name: str, **values: Any) -> Rows:
        return self._rows(render(name, view=self.view, **values))

    def _rows(self, query: str, *, timeout: float | None = None) -> Rows:
        """Raises as `Store.select` does, but ResultCapped for a row cap: where a server cuts what exploration needs, what is
        left is not to be compared.
        """
        try:
            with self._charged() as charged:
                limits = [seconds for seconds in (charged, timeout) if seconds is not None]
                return self.store.select(query, timeout=min(limits, default=None))
        except RowCapMet as error:
            raise ResultCapped(str(error)) from error

    def _ask(self, name: str, **values: Any) -> bool:
        query = render(name, view=self.view, **values)
        with self._charged() as seconds:
            return self.store.ask(query, timeout=seconds)

    @contextmanager
    def _charged(self) -> Iterator[float | None]:
        """Count a query and give the seconds it may take; one that ends late is noted in the trace, whoever goes on
        without its result.
        """
        try:
            yield self._trace.charge_query(self.timeout) if self._trace else self.timeout
        except StoreTimeout as error:
            if self._trace:
                self._trace.event("timeout", error=type(error).__name__)
            raise

    def run_exported(self, sparql: str) -> tuple[Value, ...]:
        """Run an exported query past every cache; its one column, in the engine's order."""
        return tuple(row[0] for row in self._rows(sparql) if row[0] is not None)

    def answer_query(self, path: RelationPath, **options: Any) -> str:
        """The SPARQL query whose result is the ends of a path. See `export.answer_query`."""
        return export.answer_query(self, path, **options)


def _columns(rows: Rows) -> defaultdict[str, set[Value]]:
    """The values of each variable."""
    columns: defaultdict[str, set[Value]] = defaultdict(set)
    for row in rows:
        for name, value in zip(rows.variables, row):
            if value is not None:
                columns[name].add(value)
    return columns
