"""The knowledge graph: a store, the schema of its data, its tables and names, and the queries that explore it."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kgqa.graph.names.index import NameIndex, NameMatch
from kgqa.graph.paths import PathQueries
from kgqa.graph.queries import Queries
from kgqa.graph.query import export
from kgqa.graph.query.tokens import query_kind
from kgqa.graph.store import DEFAULT_TIMEOUT, Store
from kgqa.graph.tables.graph_reader import TIMEOUT
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.graph.tables.labels import find_labels, with_labels
from kgqa.model import Candidate, Entity, Literal, Named, RelationPath, Value
from kgqa.model.conditions import BOOLEAN
from kgqa.net.threads import question_end
from kgqa.schema import Schema
from kgqa.settings.table import WalkRule
from kgqa.storage.cache import Cache
from kgqa.trace.trace import Trace

DEFAULT_FRONTIER_CAP = 1000


class KnowledgeGraph:
    """A graph of a store: one immutable view of it. Many views of one store can be used at once.

    `paths` explores the graph, `queries` runs other queries, `tables` holds what is known of the graph as a whole.

    Args:
        store: any implementation of the `Store` protocol.
        schema: the vocabulary of the graph; see `detect_schema`.
        view: IRIs of the graphs to query; empty for the store's default graph.
        walks: the walk rule, which limits the nodes that a walk may visit twice (see `text.path_pattern`); None for
            the schema's rule.
        frontier_cap: maximum number of nodes at the end of a path that are explored further.
        timeout: maximum seconds per query of a question; queries over the whole graph get at least
            `graph_reader.TIMEOUT`.
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
        self.timeout = timeout
        self.settings: dict[str, Any] = {}
        """Settings stored in the graph folder."""
        self.queries = Queries(store, self.view, timeout=timeout)
        self.tables = GraphTables(
            store,
            schema,
            self.view,
            find_labels=self.labels,
            cache=cache,
            timeout=max(timeout, TIMEOUT),
            scan=scan,
        )
        rule = walks or schema.walks
        self.paths = PathQueries(self.queries, self.tables, rule, rule == "free", frontier_cap, self.labels)
        self._names: NameIndex | None = None

    def for_question(self, trace: Trace) -> KnowledgeGraph:
        """Return a copy of this object whose queries are charged to the budget of one question.

        It is this object itself if its queries are charged to the question already, so that none of them is run twice.
        """
        if self.queries.trace is trace:
            return self
        # these tables are shared by all questions and charged to none of them
        started = time.monotonic()
        self.tables.prepare()
        spent = time.monotonic() - started
        trace.leave_out(spent)
        if (end := question_end.get()) is not None:
            question_end.set(end + spent)
        return self._charged_to(trace)

    def _charged_to(self, trace: Trace) -> KnowledgeGraph:
        bound = copy.copy(self)
        bound.queries, bound._names = self.queries.charged_to(trace), None
        bound.paths = replace(self.paths, queries=bound.queries, labels=bound.labels)
        return bound

    def with_noise(self) -> KnowledgeGraph:
        """Return a copy of this object whose exploration also follows relations that are marked as noise."""
        noisy = copy.copy(self)
        noisy.paths = replace(self.paths, noise=True)
        return noisy

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
        view.settings = self.settings
        return view._charged_to(self.queries.trace) if self.queries.trace else view

    def with_walks(self, rule: WalkRule) -> KnowledgeGraph:
        """Return this graph with another walk rule, charged to the same question.

        Hops through mediators still do not lead back to the node before them, unless the rule of this graph lets them.
        """
        other = copy.copy(self)
        other.paths = replace(self.paths, walk_rule=rule)
        return other

    def __repr__(self) -> str:
        view = "".join(f", graph <{each.iri}>" for each in self.view)
        return f"<KnowledgeGraph ({self.schema.name}{view}) on {self.store!r}>"

    def __enter__(self) -> KnowledgeGraph:
        return self

    def __exit__(self, exception: type[BaseException] | None, *_: object) -> None:
        try:
            self.queries.close()
            self.tables.close()
        finally:
            if self._owns_store:
                self.store.__exit__(exception, *_)

    # --- names

    @property
    def names(self) -> NameIndex:
        """The index of names. A question's budget is charged for name lookups and for building the index."""
        trace = self.queries.trace
        if trace is None:
            return self.tables.names.within()
        if self._names is None:
            time_left = partial(trace.time_for, self.timeout)
            self._names = self.tables.names.within(time_left).within(time_left)
        return self._names

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        """Find entities by name or alias, best match first. See `NameIndex.search`."""
        return self.names.search(text, limit=limit)

    def labels(self, entities: Iterable[Entity]) -> dict[Entity, str]:
        """Return the labels of the entities that have one, chosen by the schema's order of predicates and languages."""
        return find_labels(
            entities,
            schema=self.schema,
            select=self.queries.select,
            known=self.tables.labels,
            remote=self.store.capabilities.remote,
        )

    def named(self, values: Iterable[Value], *, describe: bool = False) -> list[Named]:
        """Return each value with its name: an entity's label or a literal's text.

        The name of an entity without a label is the readable end of its IRI; that of a blank node says what is known of
        it, such as its type. So does that of an opaque id with `describe`, and else it is the id.
        """
        edges = self.paths.edges
        return with_labels(values, schema=self.schema, labels=self.labels, edges=edges, describe=describe)

    # --- exported queries

    def answer_query(self, path: RelationPath, *, restricted: Any = (), **options: Any) -> str:
        """Return the SPARQL query whose result is the ends of a path, or of an operation on them. See `export.export`.

        Args:
            restricted: the entities to which inner nodes of the path are restricted, by index.
            options: the joins, conditions and operation of a `Candidate`.
        """
        chosen = tuple((index, tuple(entities)) for index, entities in sorted(dict(restricted).items()))
        options = {name: each if name == "operation" else tuple(each) for name, each in options.items()}
        return export.export(self, Candidate(path, restricted=chosen, **options)).sparql

    def run_exported(self, sparql: str) -> tuple[Value, ...]:
        """Run an exported query and return the values of its only column, in the engine's order; of ASK, a boolean."""
        if query_kind(sparql) == "ASK":
            return (Literal("true" if self.queries.ask(sparql) else "false", BOOLEAN),)
        return tuple(row[0] for row in self.queries.rows(sparql) if row[0] is not None)
