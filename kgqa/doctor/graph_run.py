"""The part of an examination that is about the graph: what was found before decides what is tried next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from kgqa.cache import Cache
from kgqa.doctor import graph as health_graph
from kgqa.doctor import limits as health_limits
from kgqa.doctor import server as health_server
from kgqa.doctor import speed as health_speed
from kgqa.doctor.checks import Check, percentile
from kgqa.doctor.sample import Sample, draw_sample
from kgqa.doctor.store import HurriedEndpoint, HurriedFolder, open_hurried
from kgqa.errors import PartialResult, StoreError, StoreTimeout
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.store import check_address
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import MOST_SCANNED
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
"""Seconds that counting the triples may take so that the fingerprint, which counts some ten times, is measured too."""
NO_GRAPH = "There is no graph to look at."
GONE = "The graph could not be reached any more."
NOT_SEEN = "The graph could not be looked at."
NO_SCHEMA = "No schema could be chosen."
MISFIT = "The schema does not fit."
NO_EDGES = "There are no edges between entities to look at, so there is nothing to explore."
NO_SAMPLE = "There is no sample of edges to look at."
PUBLIC = "This is a public service: what would be a burden to it is not tried."
OWN_IDS = "The bundled graph has ids of its own."


class Make(Protocol):
    """Makes a check, and gives it."""

    def __call__(self, name: str, run: Callable[[], Check], remedy: str = "") -> Check: ...


class GraphExamination:
    """Examines one graph.

    Attributes:
        id: which graph it is, as far as that is known; None where there is none.
        settings: with those that belong to the graph.
        query_seconds: what a query of exploration takes (p95); None where that was not measured.
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
        """Make all checks of OF_GRAPH. Raises SettingsError where the address of the graph is none."""
        opened: list[HurriedEndpoint | HurriedFolder] = []

        def reach() -> Check:
            opened.append(open_hurried(self.settings, self._cache))
            return health_server.check_reachable(opened[0])

        self._refuse_bad_address()
        try:
            if self._make("reachable", reach, remedy=health_server.IS_IT_SPARQL).verdict != "failed":
                self._examine(opened[0])
            self._skip(OF_GRAPH, NO_GRAPH)
        except StoreError as error:  # between two checks: it was there before
            self._make("reachable", partial(_fail, error))
            self._skip(OF_GRAPH, GONE)
        finally:
            for store in opened:
                store.close()

    def _refuse_bad_address(self) -> None:
        """An address that is none is wrong usage, and no finding about a graph."""
        place = self.settings["graph.path"]
        if place and is_address(place):
            check_address(place)
            EndpointOptions.of(self.settings)

    def _examine(self, store: HurriedEndpoint | HurriedFolder) -> None:
        server = self._make("server", lambda: health_server.check_server(store))
        if isinstance(store, HurriedEndpoint):
            self._make("profile", lambda: health_server.check_profile(store, self.settings, header=server.found))
        else:
            self.settings = self.settings.with_graph(store.meta.settings)
            self._skip(["profile"], "A folder needs none.")
        view = self._look_at(store)
        if view is None:
            return
        public = isinstance(store, HurriedEndpoint) and is_public(store)
        self._count(store, view, public=public)
        schema = self._choose_schema(store, view)
        if schema is not None:
            self._explore(store, schema, view, public=public)
        if public:
            self._skip(["row cap", "time limit", "update rights", "concurrency"], PUBLIC)
        else:
            self._press(store, view)

    # --- which graph

    def _look_at(self, store: HurriedEndpoint | HurriedFolder) -> tuple[Entity, ...] | None:
        wanted = (self.settings["graph.iri"] or "").split()
        looked: list[health_server.Look] = []

        def look() -> Check:
            looked.append(health_server.look_at_graphs(store, wanted))
            return looked[0].check

        self._make("graph", look, remedy="Give full IRIs: --graph-iri IRI.")
        found = looked[0].view if looked else None
        if found is None:
            self._skip(OF_GRAPH, NO_GRAPH if looked else NOT_SEEN)
            return None
        if isinstance(store, HurriedEndpoint):
            store.set_graphs(found)
        self.id = GraphId(store.location, found)
        return tuple(map(Entity, found))

    def _count(self, store: HurriedEndpoint | HurriedFolder, view: Sequence[Entity], *, public: bool) -> None:
        def count() -> Check:
            assert self.id is not None
            triples, took = (store.triples, 0.0) if isinstance(store, HurriedFolder) else (
                health_graph.count_triples(store, view)
            )  # fmt: skip
            fingerprint = store.fingerprint if triples is not None and took <= FAST_COUNT else ""
            self.id = GraphId(self.id.place, self.id.iris, fingerprint, triples, self.id.schema)
            return health_graph.judge_count(triples, took, fingerprint)

        if public:
            self._skip(["triples"], PUBLIC)
        else:
            self._make("triples", count)

    def _choose_schema(self, store: HurriedEndpoint | HurriedFolder, view: Sequence[Entity]) -> Schema | None:
        chosen: list[Schema] = []

        def choose() -> Check:
            given, origin = self._given_schema(store)
            fits = health_graph.schema_fits(store, view, given)
            chosen.append(given or health_graph.best_schema(fits))
            return health_graph.judge_schema(chosen[0], fits, origin=origin)

        check = self._make("schema", choose, remedy=health_graph.DOCS)
        if check.verdict == "failed":  # what is read by a wrong schema tells nothing of the graph
            why = MISFIT if chosen else NO_SCHEMA
            self._skip(["tables", *health_graph.READ_BY_SCHEMA, *health_speed.NAMES], why)
            return None
        assert self.id is not None
        self.id = GraphId(self.id.place, self.id.iris, self.id.fingerprint, self.id.triples, chosen[0].name)
        return chosen[0].preferring(language_list(self.settings["graph.languages"]))

    def _given_schema(self, store: HurriedEndpoint | HurriedFolder) -> tuple[Schema | None, health_graph.Origin]:
        if self.settings["graph.schema"]:
            return load_schema(self.settings["graph.schema"]), "settings"
        kept = store.meta.schema if isinstance(store, HurriedFolder) else None
        if kept:
            return load_schema(Path(store.location) / kept if kept.endswith(".toml") else kept), "folder"
        return None, "detected"

    # --- what is in it, and how fast it comes

    def _explore(
        self, store: HurriedEndpoint | HurriedFolder, schema: Schema, view: Sequence[Entity], *, public: bool
    ) -> None:
        assert self.id is not None
        # without a fingerprint everything that is derived would have to measure it first
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
            self._read(graph)
        finally:
            graph.tables.close()

    def _is_large(self, store: HurriedEndpoint | HurriedFolder) -> bool:
        """Whether a server's graph is too large for queries over all its triples."""
        assert self.id is not None
        if not isinstance(store, HurriedEndpoint):
            return False
        if self.id.triples is not None:
            return self.id.triples > MOST_SCANNED
        store.patient = False  # it counts a dozen predicates
        try:
            return store.large
        finally:
            store.patient = True

    def _read(self, graph: KnowledgeGraph) -> None:
        self._make("tables", lambda: health_graph.check_tables(graph))
        self._make("relation types", lambda: health_graph.check_types(graph))
        self._make("mediators", lambda: health_graph.check_mediators(graph))
        if self.settings["graph.path"]:
            self._make("known entities", lambda: health_graph.check_probes(graph))
        else:
            self._skip(["known entities"], OWN_IDS)
        sample = self._draw(graph)
        if sample is not None:
            triples = graph.store.triples if self.id and self.id.fingerprint else None
            self._make("labels", lambda: health_graph.check_labels(graph, sample))
            self._make("inverse relations", lambda: health_graph.check_inverses(graph, sample))
            self._make(
                "full-text search",
                lambda: health_speed.check_search(graph, sample, triples=triples),
                remedy="The first question has more time to build the index of names.",
            )
            graph.store.patient = False  # type: ignore[attr-defined]  # from here on it is time that is measured
            self._make("latency", lambda: self._time(graph, sample))

    def _draw(self, graph: KnowledgeGraph) -> Sample | None:
        """A sample with edges; without one there is nothing to look for labels at, which is what fails then."""
        try:
            sample = draw_sample(graph)
            if sample.missed and not sample.edges:
                raise sample.missed
        except (StoreTimeout, PartialResult) as error:
            self._make("labels", partial(_fail, error))
        else:
            if sample.edges:
                return sample
            remedy = "Load the facts as well: triples that lead from one entity to another."
            self._make("labels", lambda: Check("labels", "failed", NO_EDGES, remedy))
        self._skip([*health_graph.OF_SAMPLE, *health_speed.NAMES], NO_SAMPLE)
        return None

    def _time(self, graph: KnowledgeGraph, sample: Sample) -> Check:
        check, latency = health_speed.check_latency(graph, sample)
        if latency.all:
            self.query_seconds = percentile(latency.all, 0.95)
        return check

    # --- its limits

    def _press(self, store: HurriedEndpoint | HurriedFolder, view: Sequence[Entity]) -> None:
        assert self.id is not None
        store.patient = False
        triples, known_cap, granted = self.id.triples, self.settings["endpoint.row_cap"], self.settings["graph.timeout"]
        self._make("row cap", lambda: health_limits.check_row_cap(store, view, triples=triples, known_cap=known_cap))
        self._make("time limit", lambda: health_limits.check_time_limit(store, view, triples=triples, granted=granted))
        self._make("update rights", lambda: health_limits.check_update_rights(store, view))
        self._make("concurrency", lambda: health_speed.check_concurrency(store, view))


def _fail(error: StoreError) -> Check:
    raise error


def is_public(store: HurriedEndpoint) -> bool:
    """Whether a server is a service for everybody, which must not be put under load."""
    return not store.profile.allows_scans or (urlsplit(store.url).hostname or "").lower() in store.profile.hosts
