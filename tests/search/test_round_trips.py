"""Concurrent queries reduce round trips without changing the results."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pyoxigraph as ox
import pytest

from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.endpoint.transport import Access
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.lookups import Branch
from kgqa.methods.ask import ask, open_resources
from kgqa.schema import bundled_schema
from kgqa.search.beam import BeamSettings, explore
from kgqa.settings.values import resolve
from kgqa.testing.sparql_server import SparqlReply, SparqlServer
from kgqa.trace.trace import Budget, BudgetExhausted, Trace

from .conftest import MEDIATOR, NS, ent

BEAM = 10
TRIPLES = [MEDIATOR] + [
    f"<{NS}{s}> <{NS}{p}> <{NS}{o}> ."
    for n in range(BEAM)
    for s, p, o in (
        ("m.a", f"r.r.first{n}", f"m.b{n}"),
        (f"m.b{n}", f"r.r.second{n}", f"m.c{n}"),
        (f"m.d{n}", f"r.r.against{n}", f"m.b{n}"),
    )
]


class DistantServer:
    """A SPARQL server over some triples that takes a while for each answer.

    Attributes:
        rounds: how often it was asked something while it had nothing else to do.
        most: queries that were under way at once, at most. texts: all of them, those of the whole graph left out.
    """

    def __init__(self, lines, seconds=0.02):
        self._store = ox.Store()
        self._store.load("\n".join(lines).encode(), format=ox.RdfFormat.N_TRIPLES)
        self._seconds = seconds
        self._lock = threading.Lock()
        self._under_way = 0
        self.forget()
        self.server = SparqlServer(self._answer)

    def forget(self):
        self.rounds = self.most = 0
        self.texts = []

    def _answer(self, request):
        with self._lock:
            self.rounds += self._under_way == 0
            self._under_way += 1
            self.most = max(self.most, self._under_way)
            self.texts.append(request.query)
        try:
            found = self._store.query(request.query).serialize(format=ox.QueryResultsFormat.JSON)
            threading.Event().wait(self._seconds)
            return SparqlReply(body=found)
        finally:
            with self._lock:
                self._under_way -= 1


@pytest.fixture
def distant_graph():
    """Return `distant_graph(lines, concurrency) -> (DistantServer, KnowledgeGraph)`, prepared, with counters at zero."""
    with ExitStack() as opened:

        def distant_graph(lines, concurrency):
            server = DistantServer(lines)
            opened.callback(server.server.close)
            access = Access(concurrency=concurrency, patience=0.0)
            store = EndpointStore(server.server.url, access=access, profile="generic")
            graph = opened.enter_context(KnowledgeGraph(store, bundled_schema("freebase")))
            graph.tables.prepare()
            graph.names, graph.store.fingerprint_of([each.iri for each in graph.view])
            server.forget()
            return server, graph

        yield distant_graph


def run_exploration(graph, budget=Budget()):
    trace = Trace(budget)
    hops = explore(
        graph.for_question(trace), [ent("m.a")], BeamSettings(2), prefilter=list, tournament=list, trace=trace
    )
    events = [(event.kind, event.detail) for event in trace.events()]
    return hops, events, trace.usage().queries


def test_beam_needs_one_round_trip_per_hop(distant_graph):
    server, graph = distant_graph(TRIPLES, BEAM)
    hops, _, _ = run_exploration(graph)
    assert len(hops) == 2 and len(hops[1].pool) > BEAM
    assert len(server.texts) <= 4 and server.rounds <= 4


def test_query_budget_holds_for_concurrent_queries(distant_graph, monkeypatch):
    monkeypatch.setattr(Branch, "size", 1)
    server, graph = distant_graph(TRIPLES, 8)
    with pytest.raises(BudgetExhausted):
        run_exploration(graph, Budget(queries=6))
    assert len(server.texts) <= 6


def test_two_hop_question_needs_few_round_trips(distant_graph):
    names = [f'<{NS}m.{n}> <{NS}type.object.name> "{name}"@en .' for n, name in (("a", "Ada"), ("b3", "Bert"))]
    server, graph = distant_graph([*TRIPLES, *names], 8)
    settings = resolve({"rank.embeddings": "off", "rank.accept": 0.0, "explore.depth": 2})
    with open_resources(graph, settings=settings) as resources:
        answer = ask("what is the second3 of the first3 of Ada?", topics="m.a", resources=resources)
    assert answer.status == "answered" and answer.query_class == "exact"
    assert len(server.texts) <= 12 and server.rounds <= 8
