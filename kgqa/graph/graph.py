"""The knowledge graph: a store, the schema of its data, and the queries that explore it."""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from kgqa.graph.charged_queries import ChargedQueries
from kgqa.graph.edges import START, AlongFinder, count_edges, count_relations, find_edges, find_edges_of
from kgqa.graph.ends import Ends, EndsFinder, KnownEnds, walks_along
from kgqa.graph.expansion import Expansion, StepsFinder
from kgqa.graph.names.index import NameIndex, NameMatch
from kgqa.graph.query import export
from kgqa.graph.query.patterns import PathPattern, Restrictions, hop_pattern, joined_pattern
from kgqa.graph.query.templates import Variable
from kgqa.graph.store import DEFAULT_TIMEOUT, Rows, Store
from kgqa.graph.tables import graph_tables
from kgqa.graph.tables.graph_tables import GraphTables, find_subject_relations
from kgqa.graph.tables.labels import LABEL_BATCH, find_labels, is_blank_node, with_labels
from kgqa.graph.tables.mediators import MediatorTable, mediator_filters
from kgqa.model import Candidate, Direction, Entity, Join, Literal, Named, RelationPath, Step, Value
from kgqa.model.conditions import BOOLEAN, Condition
from kgqa.net.threads import Item, Result, ThreadPool
from kgqa.schema import Schema
from kgqa.settings.table import WalkRule
from kgqa.storage.cache import Cache
from kgqa.trace.trace import Trace

MAX_DESCRIBING_RELATIONS = 12
DEFAULT_FRONTIER_CAP = 1000


class KnowledgeGraph:
    """Explores a graph of a store: one immutable view of it. Many views of one store can be used at once.

    Args:
        store: any implementation of the `Store` protocol.
        schema: the vocabulary of the graph; see `detect_schema`.
        view: IRIs of the graphs to query; empty for the store's default graph.
        walks: the walk rule, which limits the nodes that a walk may visit twice (see `patterns.path_pattern`); None for
            the schema's rule.
        frontier_cap: maximum number of nodes at the end of a path that are explored further.
        timeout: maximum seconds per query of a question; queries over the whole graph get at least
            `graph_tables.TIMEOUT`.
        cache: where tables computed from the graph are stored; None keeps them in memory only.
        languages: the user's languages, tried before the schema's; see `kgqa.schema.language_list`.
        scan: whether to run queries that read every triple if the store allows them; if not, tables hold only what the
            graph declares.
        owns_store: whether `close` closes the store, too.
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
        owns_store: bool = False,
    ) -> None:
        self.store = store
        self._owns_store = owns_store
        self._options: dict[str, Any] = {
            "walks": walks,
            "frontier_cap": frontier_cap,
            "timeout": timeout,
            "cache": cache,
            "languages": languages,
            "scan": scan,
        }
        self.schema = schema = schema.preferring(languages)
        self.view = tuple(Entity(iri) for iri in view)
        self.walks: WalkRule = walks or schema.walks
        self._returns_through_mediators = self.walks == "free"
        self.frontier_cap = frontier_cap
        self.timeout = timeout
        self.cache = cache
        self.settings: dict[str, Any] = {}
        """Settings stored in the graph folder."""
        self.tables = GraphTables(
            store,
            schema,
            self.view,
            find_labels=self.labels,
            cache=cache,
            timeout=max(timeout, graph_tables.TIMEOUT),
            scan=scan,
        )
        self._pool = functools.cache(lambda: ThreadPool(max(0, self.concurrency - 1), name="kgqa-graph"))
        """Threads that all questions about this graph share; the concurrency of a server is known only by a query."""
        self._trace: Trace | None = None
        self._names: NameIndex | None = None
        self._known_ends = KnownEnds()

    def for_question(self, trace: Trace) -> KnowledgeGraph:
        """Return a copy of this object whose queries are charged to the budget of one question."""
        # these tables are shared by all questions and charged to none of them
        started = time.monotonic()
        self.prepare()
        trace.leave_out(time.monotonic() - started)
        bound = copy.copy(self)
        bound._trace, bound._names, bound._known_ends = trace, None, KnownEnds()
        return bound

    def prepare(self) -> None:
        """Compute the tables that every question needs, so that no question waits for them."""
        self.tables.prepare()

    def publish(self) -> None:
        """Publish the edits of the store, with tables and names for the processes that read them. See `Store.publish`.

        Raises the same errors as `Store.select`.
        """
        self.store.publish()
        self.tables.save()

    def close(self) -> None:
        """Close the index of names, and the store if it belongs to this object. Other views stay open."""
        self.__exit__(None)

    def view_of(self, *graphs: str) -> KnowledgeGraph:
        """Return another view of the store: of the named graphs with these IRIs, or else of its default graph.

        The view has the schema and options of this object, and tables of its own. It does not own the store: close it
        before the graph that does. A view of a question's graph is charged to the same question; its tables are
        computed when they are needed.
        """
        view = KnowledgeGraph(self.store, self.schema, view=graphs, **self._options)
        view.settings, view._trace = self.settings, self._trace
        return view

    def with_walks(self, rule: WalkRule) -> KnowledgeGraph:
        """Return this graph with another walk rule, charged to the same question.

        Hops through mediators still do not lead back to the node before them, unless the rule of this graph lets them.
        """
        other = copy.copy(self)
        other.walks, other._known_ends = rule, KnownEnds()
        return other

    def __repr__(self) -> str:
        view = "".join(f", graph <{each.iri}>" for each in self.view)
        return f"<KnowledgeGraph ({self.schema.name}{view}) on {self.store!r}>"

    def __enter__(self) -> KnowledgeGraph:
        return self

    def __exit__(self, exception: type[BaseException] | None, *_: object) -> None:
        try:
            if self._pool.cache_info().currsize:
                self._pool().close()
            self.tables.close()
        finally:
            if self._owns_store:
                leave = getattr(self.store, "__exit__", lambda *_: self.store.close())
                leave(exception, *_)

    @property
    def _queries(self) -> ChargedQueries:
        return ChargedQueries(self.store, self.view, timeout=self.timeout, trace=self._trace)

    @property
    def concurrency(self) -> int:
        """How many queries one question may run concurrently."""
        return self.store.capabilities.concurrency

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        tolerated: tuple[type[Exception], ...] = (),
    ) -> list[Any]:
        """Call a function for each item, as many concurrently as the store allows. See `ThreadPool.map`."""
        return self._pool().map(function, items, tolerated=tolerated, has_room=lambda: self.store.has_free_slot)

    # --- exploration

    def next_steps(self, path: RelationPath, *, restricted: Restrictions = ()) -> Expansion:
        """Find the possible next steps of a path, in both directions.

        Noise relations are left out. If two steps have the same meaning, only one is returned: a relation rather than
        its inverse walked backwards, and a claim rather than the steps through its statement (see `expansion`). A
        literal has no next steps.

        Args:
            restricted: the entities to which nodes of the path are restricted, by index (1: the node after the topic).
        """
        found: Expansion = self.next_steps_of([Candidate(path, "", restricted=restricted)])[0]
        return found

    def next_steps_of(
        self, candidates: Sequence[Candidate], *, tolerated: tuple[type[Exception], ...] = ()
    ) -> list[Any]:
        """Find the possible next steps of each candidate's path; see `next_steps`.

        One query finds the steps of up to `expansion.BATCH` paths. If it fails, the steps of each path are looked up
        by a query of their own.

        Args:
            candidates: paths with restrictions; joins and conditions are ignored.
            tolerated: types of exceptions that are returned in place of the steps of a path.
        """
        finder = StepsFinder(
            self._queries,
            self.map,
            tables=self.tables,
            walks=self.walks,
            cap=self.frontier_cap,
            timeout=self.timeout,
        )
        found = finder.find(candidates, tolerated=tolerated)
        steps = (step for each in found if isinstance(each, Expansion) for step in each.steps)
        self.tables.label_relations((step.relation for step in steps), self.labels)
        return found

    def ends(
        self,
        path: RelationPath,
        *,
        joins: Sequence[Join] = (),
        restricted: Restrictions = (),
        conditions: Sequence[Condition] = (),
        limit: int | None = None,
    ) -> Ends:
        """Return the distinct entities and literals at the end of a path, without mediators.

        Args:
            joins: paths from other topics; only walks that meet all these paths count.
            restricted: the entities to which inner nodes of the path are restricted, by index.
            conditions: conditions on nodes of the path.
            limit: maximum number of ends to return; None for all.

        Raises:
            PartialResult: `limit` is None, and there are more ends than the store's row cap.
        """
        candidate = Candidate(path, "", joins=tuple(joins), restricted=tuple(restricted), conditions=tuple(conditions))
        found: Ends = self.ends_of([candidate], limit=limit)[0]
        return found

    def ends_of(
        self,
        candidates: Sequence[Candidate],
        *,
        limit: int | None = None,
        tolerated: tuple[type[Exception], ...] = (),
    ) -> list[Any]:
        """Return the ends of each candidate's path, without regard to its operation; see `ends`.

        One query looks up the ends of up to `ends.BATCH` paths. If it fails, its paths are looked up one by one. A
        question's graph looks up the ends of a path only once.

        Args:
            limit: maximum number of ends per path; None for all.
            tolerated: types of exceptions that are returned in place of the ends of a path.

        Raises:
            StoreError: the query of a path failed with an error that is not tolerated; see `ends`.
        """
        return self._ends_finder.find(candidates, limit=limit, tolerated=tolerated)

    def walks_of(
        self,
        candidates: Sequence[Candidate],
        *,
        limit: int = 100,
        timeout: float | None = None,
        tolerated: tuple[type[Exception], ...] = (),
    ) -> list[Any]:
        """Return some walks along each candidate's path, in one query like `ends_of`; see `walks_along`."""
        return self._ends_finder.walks(candidates, limit=limit, timeout=timeout, tolerated=tolerated)

    @property
    def _ends_finder(self) -> EndsFinder:
        return EndsFinder(
            lambda each: self.pattern(each.path, **each.limits),
            self._queries,
            self.map,
            row_cap=self.store.capabilities.row_cap,
            timeout=self.timeout,
            known=self._known_ends if self._trace else KnownEnds(),
        )

    def walks_along(
        self,
        path: RelationPath,
        *,
        joins: Sequence[Join] = (),
        restricted: Restrictions = (),
        conditions: Sequence[Condition] = (),
        ends: Sequence[Value] | None = None,
        limit: int = 100,
        timeout: float | None = None,
    ) -> list[tuple[Value, ...]]:
        """Return some walks along a path, each from the topic to an end.

        Args:
            ends: ends of the walks to return (only the first `LABEL_BATCH` are used); None for any end.
            limit: maximum number of walks.
            timeout: maximum seconds for the query, if less than the graph's own timeout.
        """
        wanted = None if ends is None else [end for end in ends if not is_blank_node(end)][:LABEL_BATCH]
        if wanted == []:
            return []
        walk = self.pattern(path, joins, restricted, conditions)
        return [
            (path.topic, *row) for row in walks_along(walk, self._queries, limit=limit, timeout=timeout, ends=wanted)
        ]

    # --- single hops from many nodes

    def along(
        self, nodes: Iterable[Entity], hop: Sequence[Step], *, loops: bool = False, limit: int | None = None
    ) -> dict[Entity, tuple[Value, ...]]:
        """Return the entities and literals to which a hop leads from each node; nodes without any are left out.

        The values of a node are the ends of the path that has this node as its topic and the hop as its steps. One
        query finds those of up to `LABEL_BATCH` nodes; if it fails, each node is queried by itself.

        Args:
            nodes: at most `edges.MAX_NODES` nodes.
            hop: one step, or a step to mediators and a step from them.
            loops: whether one step may lead from a node to the node itself, as it may between inner nodes of a path.
            limit: if a node has more values than this, more than `limit` or as many as the store returns at once, but
                not all of them are returned.

        Raises:
            ValueError: there are too many nodes.
            StoreError: the query of a node failed; `PartialResult` if there is no limit and the node has more values
                than the store returns.
        """
        return self._along(hop, loops).values(nodes, limit=limit)

    def counts(self, nodes: Iterable[Entity], hop: Sequence[Step], *, loops: bool = False) -> dict[Entity, int]:
        """Count the entities and literals to which a hop leads from each node. Arguments and errors: see `along`."""
        return self._along(hop, loops).counts(nodes)

    def relations_at(self, nodes: Iterable[Entity]) -> dict[Step, int]:
        """Count the edges of nodes together, by relation and direction, noise included."""
        return count_relations(nodes, select=self._queries.select, call_each=self.map)

    def _along(self, hop: Sequence[Step], loops: bool) -> AlongFinder:
        plain = len(hop) == 1 and (loops or self.walks in ("free", "no-return"))
        back = plain or (len(hop) > 1 and self._returns_through_mediators)
        walk = self._without_mediators(hop_pattern(Variable(START), hop, returns=back), hop)
        return AlongFinder(walk, self._queries, self.map, self.store.capabilities.row_cap, self.timeout)

    def _without_mediators(self, walk: PathPattern, steps: Sequence[Step]) -> PathPattern:
        if steps and self.mediators.extent(steps[-1]) == "some":
            return replace(walk, **mediator_filters(self.schema, self.mediators))
        return walk

    def pattern(
        self,
        path: RelationPath,
        joins: Sequence[Join] = (),
        restricted: Restrictions = (),
        conditions: Sequence[Condition] = (),
    ) -> PathPattern:
        """Return the pattern of a path with joins, restrictions and conditions, and filters that exclude mediators.

        A hop through a mediator never leads back to the node before it: nobody is their own spouse.

        Raises the same errors as `joined_pattern`.
        """
        walk = joined_pattern(path, joins, restricted, self.walks, inverse=self.inverse, conditions=conditions)
        if not self._returns_through_mediators:
            through = [at for at in range(1, len(path)) if self.leads_to_mediator(path.steps[at - 1])]
            others = [(walk.nodes[at + 1], walk.nodes[at - 1]) for at in through]
            walk = replace(walk, different=tuple(dict.fromkeys((*walk.different, *others))))
        return self._without_mediators(walk, path.steps)

    def target_type(self, step: Step) -> str | None:
        """Return the type that the graph declares for the nodes to which a step leads; None if it declares no type."""
        return self.tables.types[step.direction].get(step.relation)

    def describing_relations(self, step: Step) -> tuple[str, ...]:
        """Return relations that describe the nodes a step leads to, in a graph that declares types for few relations.

        An outward step is described by its own relation (`has genre` leads to a genre), an inward step by the relations
        of the nodes it leads to. In a graph that declares types for a tenth of its relations, the result is empty.
        """
        if 10 * max(map(len, self.tables.types.values())) > len(self.relations):
            return ()
        return (step.relation,) if step.direction == "out" else self._subject_relations(step.relation)

    def _subject_relations(self, relation: str) -> tuple[str, ...]:
        """Return the relations of some subjects of `relation`, beginning with the most frequent in the graph."""
        known = self.tables.subject_relations
        if relation not in known:
            known[relation] = find_subject_relations(relation, self._queries.select, self.is_noise)
        counts = self.relations
        found = {name: counts[name] for name in known[relation] if name in counts}
        return tuple(graph_tables.by_frequency(found))[:MAX_DESCRIBING_RELATIONS]

    def leads_to_mediator(self, step: Step) -> bool:
        """Return whether all nodes that a step leads to are mediators."""
        return self.mediators.extent(step) == "all"

    def ends_on_mediators(self, path: RelationPath) -> bool:
        """Return whether all ends of a path are mediators. Such a path must be extended to give answers."""
        return bool(path.steps) and self.leads_to_mediator(path.steps[-1])

    # --- single nodes

    def exists(self, entity: Entity) -> bool:
        """Return whether any triple has this entity as its subject or object."""
        return self._queries.ask("exists", entity=entity)

    def degree(self, entity: Entity) -> int:
        """Count the edges of an entity in both directions, noise included."""
        return self.degrees([entity])[entity]

    def degrees(self, entities: Iterable[Entity]) -> dict[Entity, int]:
        """Return the degree of each entity, in two queries per `LABEL_BATCH` entities."""
        return count_edges(entities, select=self._queries.select, call_each=self.map)

    def neighbours(self, entity: Entity, *, limit: int = 100) -> list[tuple[Step, Value]]:
        """Return up to `limit` edges of an entity in each direction, without noise."""
        return find_edges(entity, limit=limit, schema=self.schema, is_noise=self.is_noise, select=self._queries.select)

    def edges_of(
        self, entities: Iterable[Entity], direction: Direction = "out", *, limit: int = 2000
    ) -> list[tuple[Entity, Step, Value]]:
        """Return the edges of many entities, noise included.

        If `LABEL_BATCH` entities together have more than `limit` edges, at most `limit` edges of each are returned.
        """
        return find_edges_of(entities, direction, limit=limit, select=self._queries.select, call_each=self.map)

    def edges_along(self, relation: Entity, *, limit: int) -> list[tuple[Entity, Value]]:
        """Return some pairs of nodes that a relation connects."""
        rows = self._queries.select("relation_examples", relation=relation, limit=limit)
        return [(subject, node) for subject, node in rows if isinstance(subject, Entity) and node is not None]

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        """Find entities by name or alias, best match first. See `NameIndex.search`."""
        return self.names.search(text, limit=limit)

    # --- names

    def labels(self, entities: Iterable[Entity]) -> dict[Entity, str]:
        """Return the labels of the entities that have one, chosen by the schema's order of predicates and languages."""
        return find_labels(
            entities,
            schema=self.schema,
            select=self._queries.select,
            known=self.tables.labels,
            remote=self.store.capabilities.remote,
        )

    def named(self, values: Iterable[Value]) -> list[Named]:
        """Return each value with its name: an entity's label or a literal's text.

        The name of an entity without a label is the readable end of its IRI; that of a blank node says what is known of
        it, such as its type.
        """
        return with_labels(values, schema=self.schema, labels=self.labels, edges=self.edges_of)

    # --- tables of the whole graph, see `GraphTables`

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that say what is unknown because the graph is too large to scan."""
        return self.tables.notes

    def is_noise(self, relation: str) -> bool:
        """Return whether exploration skips a relation because the schema or the graph marks it as noise."""
        return self.tables.is_noise(relation)

    @property
    def names(self) -> NameIndex:
        """The index of names. A question's budget is charged for name lookups and for building the index."""
        if self._trace is None:
            return self.tables.names_within()
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

    # --- exported queries

    def rows(self, sparql: str) -> Rows:
        """Run a SELECT query. Raises the same errors as `Store.select`."""
        return self._queries.rows(sparql)

    def run_exported(self, sparql: str) -> tuple[Value, ...]:
        """Run an exported query and return the values of its only column, in the engine's order; of ASK, a boolean."""
        if export.is_ask(sparql):
            return (Literal("true" if self._queries.ask_exported(sparql) else "false", BOOLEAN),)
        return tuple(row[0] for row in self.rows(sparql) if row[0] is not None)

    def answer_query(self, path: RelationPath, *, restricted: Any = (), **options: Any) -> str:
        """Return the SPARQL query whose result is the ends of a path, or of an operation on them. See `export.export`.

        Args:
            restricted: the entities to which inner nodes of the path are restricted, by index.
            options: the joins, conditions and operation of a `Candidate`.
        """
        chosen = tuple((index, tuple(entities)) for index, entities in sorted(dict(restricted).items()))
        options = {name: each if name == "operation" else tuple(each) for name, each in options.items()}
        return export.export(self, Candidate(path, "", restricted=chosen, **options)).sparql
