"""Examines a graph: runs the checks in order, and skips checks that an earlier result makes pointless."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from kgqa.cache import Cache
from kgqa.doctor import graph_checks, limit_checks, server_checks, speed_checks
from kgqa.doctor.checks import Check, percentile
from kgqa.doctor.probe_stores import ProbeEndpoint, ProbeFolder, ProbeStore, open_probe_store
from kgqa.doctor.sample import Sample, draw_sample
from kgqa.errors import PartialResult, StoreError, StoreTimeout
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.store import MAX_SCANNED_TRIPLES, EndpointStore, check_address
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.store import is_address
from kgqa.model import Entity, GraphId
from kgqa.schema import Schema, language_list, load_schema
from kgqa.settings import Settings

OF_GRAPH = (
    "reachable", "server", "profile", "graph", "triples", "schema", "tables", "relation types", "mediators", "labels",
    "inverse relations", "known entities", "full-text search", "latency", "row cap", "time limit", "update rights",
    "concurrency",
)  # fmt: skip
FAST_COUNT = 1.0
"""If counting the triples takes more seconds, no fingerprint is computed, because it needs about ten counts."""
NO_GRAPH = "There is no graph to check."
GONE = "The graph is no longer reachable."
NOT_SEEN = "The graph could not be queried."
NO_SCHEMA = "No schema could be chosen."
MISFIT = "The schema does not fit the graph."
NO_EDGES = "There are no edges between entities, so there is nothing to explore."
NO_SAMPLE = "No edges were sampled."
PUBLIC = "Skipped, because the server is a public service, on which this check would put too much load."
OWN_IDS = "The demo graph does not contain the well-known entities."


class Make(Protocol):
    """Makes a check and returns its result."""

    def __call__(self, name: str, run: Callable[[], Check], remedy: str = "") -> Check: ...


class GraphExamination:
    """Examines one graph.

    Attributes:
        id: the graph, as far as known; None if there is none.
        settings: the settings, including the graph's own.
        query_seconds: duration of an exploration query (p95); None if it was not measured.
    """

    def __init__(
        self, settings: Settings, cache: Cache, *, make: Make, skip: Callable[[Sequence[str], str], None]
    ) -> None:
        self.settings = settings
        self.id: GraphId | None = None
        self.query_seconds: float | None = None
        self._cache = cache
        self._make = make
        self._skip = skip

    def run(self) -> None:
        """Make all checks of OF_GRAPH. Raises SettingsError if the graph's URL is invalid."""
        opened: list[ProbeStore] = []

        def reach() -> Check:
            opened.append(open_probe_store(self.settings, self._cache))
            return server_checks.check_reachable(opened[0])

        self._refuse_bad_address()
        try:
            if self._make("reachable", reach, remedy=server_checks.IS_IT_SPARQL).verdict != "failed":
                self._examine(opened[0])
            self._skip(OF_GRAPH, NO_GRAPH)
        except StoreError as error:  # raised between two checks, so the graph was reachable before
            self._make("reachable", partial(_fail, error))
            self._skip(OF_GRAPH, GONE)
        finally:
            for store in opened:
                store.close()

    def _refuse_bad_address(self) -> None:
        """Raise SettingsError for an invalid URL, because this is a usage error and not a finding about a graph."""
        place = self.settings["graph.path"]
        if place and is_address(place):
            check_address(place)
            EndpointOptions.of(self.settings)

    def _examine(self, store: ProbeStore) -> None:
        server = self._make("server", lambda: server_checks.check_server(store))
        if isinstance(store, ProbeEndpoint):
            self._make("profile", lambda: server_checks.check_profile(store, self.settings, header=server.found))
        else:
            self.settings = self.settings.with_graph(store.meta.settings)
            self._skip(["profile"], "A graph folder has no server profile.")
        view = self._look_at(store)
        if view is None:
            return
        public = isinstance(store, ProbeEndpoint) and is_public(store)
        self._count(store, view, public=public)
        schema = self._choose_schema(store, view)
        if schema is not None:
            self._explore(store, schema, view, public=public)
        if public:
            self._skip(["row cap", "time limit", "update rights", "concurrency"], PUBLIC)
        else:
            self._check_limits(store, view)

    # --- which graph

    def _look_at(self, store: ProbeStore) -> tuple[Entity, ...] | None:
        wanted = (self.settings["graph.iri"] or "").split()
        looked: list[server_checks.GraphChoice] = []

        def look() -> Check:
            looked.append(server_checks.choose_graphs(store, wanted))
            return looked[0].check

        self._make("graph", look, remedy="Use full IRIs: --graph-iri IRI.")
        found = looked[0].view if looked else None
        if found is None:
            self._skip(OF_GRAPH, NO_GRAPH if looked else NOT_SEEN)
            return None
        self.id = GraphId(store.location, found)
        return tuple(map(Entity, found))

    def _count(self, store: ProbeStore, view: Sequence[Entity], *, public: bool) -> None:
        def count() -> Check:
            assert self.id is not None
            triples, took = (store.triples_of(self.id.iris), 0.0) if isinstance(store, ProbeFolder) else (
                graph_checks.count_triples(store, view)
            )  # fmt: skip
            fingerprint = store.fingerprint_of(self.id.iris) if triples is not None and took <= FAST_COUNT else ""
            self.id = GraphId(self.id.place, self.id.iris, fingerprint, triples, self.id.schema)
            return graph_checks.judge_count(triples, took, fingerprint)

        if public:
            self._skip(["triples"], PUBLIC)
        else:
            self._make("triples", count)

    def _choose_schema(self, store: ProbeStore, view: Sequence[Entity]) -> Schema | None:
        chosen: list[Schema] = []

        def choose() -> Check:
            given, origin = self._given_schema(store)
            fits = graph_checks.schema_fits(store, view, given)
            chosen.append(given or graph_checks.best_schema(fits))
            return graph_checks.judge_schema(chosen[0], fits, origin=origin)

        check = self._make("schema", choose, remedy=graph_checks.DOCS)
        if check.verdict == "failed":  # results under a wrong schema would be meaningless
            why = MISFIT if chosen else NO_SCHEMA
            self._skip(["tables", *graph_checks.READ_BY_SCHEMA, *speed_checks.NAMES], why)
            return None
        assert self.id is not None
        self.id = GraphId(self.id.place, self.id.iris, self.id.fingerprint, self.id.triples, chosen[0].name)
        return chosen[0].preferring(language_list(self.settings["graph.languages"]))

    def _given_schema(self, store: ProbeStore) -> tuple[Schema | None, graph_checks.Origin]:
        if self.settings["graph.schema"]:
            return load_schema(self.settings["graph.schema"]), "settings"
        kept = store.meta.schema if isinstance(store, ProbeFolder) else None
        if kept:
            return load_schema(Path(store.location) / kept if kept.endswith(".toml") else kept), "folder"
        return None, "detected"

    # --- content and speed

    def _explore(self, store: ProbeStore, schema: Schema, view: Sequence[Entity], *, public: bool) -> None:
        assert self.id is not None
        # derived data is cached by fingerprint; without a cache, no time is spent on computing the fingerprint
        cache = self._cache if self.id.fingerprint else None
        graph = KnowledgeGraph(
            store,
            schema,
            view=self.id.iris,
            walks=self.settings["graph.walks"],
            frontier_cap=self.settings["graph.frontier_cap"],
            timeout=self.settings["graph.timeout"],
            cache=cache,
            scan=not public and not self._is_large(store),
        )
        try:
            self._check_content(graph, store)
        finally:
            graph.tables.close()

    def _is_large(self, store: ProbeStore) -> bool:
        """Return whether a server's graph is too large for queries that read all triples."""
        assert self.id is not None
        if not isinstance(store, ProbeEndpoint):
            return False
        if self.id.triples is not None:
            return self.id.triples > MAX_SCANNED_TRIPLES
        store.retries_timeouts = False  # `large` counts a dozen predicates
        try:
            return not EndpointStore.may_scan(store, self.id.iris)
        finally:
            store.retries_timeouts = True

    def _check_content(self, graph: KnowledgeGraph, store: ProbeStore) -> None:
        self._make("tables", lambda: graph_checks.check_tables(graph))
        self._make("relation types", lambda: graph_checks.check_types(graph))
        self._make("mediators", lambda: graph_checks.check_mediators(graph))
        if self.settings["graph.path"]:
            self._make("known entities", lambda: graph_checks.check_known_entities(graph))
        else:
            self._skip(["known entities"], OWN_IDS)
        sample = self._draw(graph)
        if sample is not None:
            triples = graph.store.triples_of(self.id.iris) if self.id and self.id.fingerprint else None
            self._make("labels", lambda: graph_checks.check_labels(graph, sample))
            self._make("inverse relations", lambda: graph_checks.check_inverses(graph, sample))
            self._make(
                "full-text search",
                lambda: speed_checks.check_search(graph, sample, triples=triples),
                remedy="Ask a question: kgqa ask allows more time to build the index of names.",
            )
            store.retries_timeouts = False  # from here on, durations are measured
            self._make("latency", lambda: self._time(graph, sample))

    def _draw(self, graph: KnowledgeGraph) -> Sample | None:
        """Draw a sample; if there are no edges, let the check `labels` fail and return None."""
        try:
            sample = draw_sample(graph)
            if sample.missed and not sample.edges:
                raise sample.missed
        except (StoreTimeout, PartialResult) as error:
            self._make("labels", partial(_fail, error))
        else:
            if sample.edges:
                return sample
            remedy = "Load triples whose subject and object are entities."
            self._make("labels", lambda: Check("labels", "failed", NO_EDGES, remedy))
        self._skip([*graph_checks.OF_SAMPLE, *speed_checks.NAMES], NO_SAMPLE)
        return None

    def _time(self, graph: KnowledgeGraph, sample: Sample) -> Check:
        check, latency = speed_checks.check_latency(graph, sample)
        if latency.all:
            self.query_seconds = percentile(latency.all, 0.95)
        return check

    # --- limits

    def _check_limits(self, store: ProbeStore, view: Sequence[Entity]) -> None:
        assert self.id is not None
        store.retries_timeouts = False
        triples, known_cap, granted = self.id.triples, self.settings["endpoint.row_cap"], self.settings["graph.timeout"]
        self._make("row cap", lambda: limit_checks.check_row_cap(store, view, triples=triples, known_cap=known_cap))
        self._make("time limit", lambda: limit_checks.check_time_limit(store, view, triples=triples, granted=granted))
        self._make("update rights", lambda: limit_checks.check_update_rights(store, view))
        self._make("concurrency", lambda: speed_checks.check_concurrency(store, view))


def _fail(error: StoreError) -> Check:
    raise error


def is_public(store: ProbeEndpoint) -> bool:
    """Return whether a server is a public service, on which the checks must not put load."""
    return not store.profile.allows_scans or (urlsplit(store.url).hostname or "").lower() in store.profile.hosts
