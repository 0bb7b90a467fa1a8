"""Measures the time that kgqa adds to a SPARQL server during exploration, compared with bare urllib3 requests.

The bare client sends the same queries one after the other and reads the results as JSON. Operations that start from an
entity are also compared with the requests of ToG and PoG. All of these alternate. `--round-trip 0 20 50` measures three
times, with 0, 20 and 50 ms added between kgqa and the server.

The operations:

- `next_steps` at hop h extends a path of h - 1 steps.
- `ends` at hop h follows a path of h steps.
- `frontier of 3` is one hop of a beam of 3: three paths in both directions, concurrently as in the beam.
- `beam of 10` is the same with ten paths.
- `labels` looks up the names of up to 50 entities.
- `degree` counts edges.

The result cache is off. Topics are taken from the graph: ordinary topics have 15 to 60 edges, and hubs have the most
edges.

Bounds without an added round trip: over all operations, kgqa's p50 is at most 20% above that of the bare requests. With
5 million triples, a frontier takes at most 20 ms (p50) for ordinary topics and at most 150 ms (p95) for hubs.

    python benchmarks/exploration.py --graph http://127.0.0.1:8890/sparql --graph-iri http://freebase.com --round-trip 0 20 50
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any
from urllib.parse import urlencode, urlsplit

from common import machine, percentile, print_json, print_table
from freebase_slice import random_paths
from peer_texts import PEERS, name_queries, relation_queries, tail_queries
from slow_network import Relay

from kgqa.errors import StoreError
from kgqa.graph.endpoint.options import EndpointOptions, Profile
from kgqa.graph.graph import DEFAULT_FRONTIER_CAP, KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.model import Candidate, Entity, RelationPath

ORDINARY = range(15, 61)
OVERHEAD = 0.20
FRONTIER_ORDINARY_MS, FRONTIER_HUB_MS = 20.0, 150.0
TURN = ("kgqa", "bare", "bare", "kgqa")
DEGREES = """SELECT ?node (COUNT(*) AS ?edges) FROM <{graph}> WHERE {{ {pattern} FILTER(isIRI(?node)) }}
GROUP BY ?node {having} LIMIT {limit}"""


@dataclass(frozen=True)
class Operation:
    """An operation of kgqa, and the queries it sends."""

    name: str
    topics: str
    run: Callable[[], Any]
    queries: tuple[str, ...]
    peers: dict[str, tuple[str, ...]]
    approximate: bool = False


class Bare:
    """A urllib3 client that keeps its connection open, uses GET or POST as kgqa does, and reads JSON."""

    def __init__(self, url: str, profile: Profile, seconds: float) -> None:
        import urllib3

        self._pool = urllib3.PoolManager(maxsize=1)
        self._url, self._profile = url, profile
        self._limit = str(int(1000 * seconds))

    def __call__(self, query: str) -> Any:
        query = self._profile.prepared(query)
        fields = {"query": query, "timeout": self._limit}
        headers = {"Accept": "application/sparql-results+json"}
        if len(query) <= 1500:
            reply = self._pool.request("GET", f"{self._url}?{urlencode(fields)}", headers=headers)
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            reply = self._pool.request("POST", self._url, body=urlencode(fields), headers=headers)
        return json.loads(reply.data)


def topics_of(graph: KnowledgeGraph, ordinary: int, hubs: int, generator: random.Random) -> dict[str, list[Entity]]:
    """Return random entities with 15 to 60 edges (ordinary), and the entities with the most edges (hubs)."""
    iri = graph.view[0].iri
    having = f"HAVING (COUNT(*) >= {ORDINARY.start} && COUNT(*) < {ORDINARY.stop})"
    query = DEGREES.format(graph=iri, pattern="?node ?relation ?other .", having=having, limit=5000)
    usual = sorted(row[0].iri for row in graph.store.select(query, timeout=300.0) if _explored(row[0], graph))
    query = DEGREES.format(graph=iri, pattern="?other ?relation ?node .", having="ORDER BY DESC(?edges)", limit=200)
    most = [row[0] for row in graph.store.select(query, timeout=300.0) if _explored(row[0], graph)]
    chosen = [Entity(iri) for iri in generator.sample(usual, min(3 * ordinary, len(usual)))]
    chosen = [entity for entity, degree in graph.paths.degrees(chosen).items() if degree in ORDINARY]
    return {"ordinary": chosen[:ordinary], "hub": most[:hubs]}


def _explored(node: Any, graph: KnowledgeGraph) -> bool:
    """Check whether a node is an entity. In Freebase an entity has an `m.` id, in contrast to types and relations."""
    return graph.schema.name != "freebase" or "/ns/m." in node.iri


class Recorder:
    """Records the queries that a store receives."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._store = graph.store
        self.seen: list[str] = []

    def __enter__(self) -> list[str]:
        select = self._store.select
        self._store.select = lambda query, **options: (self.seen.append(query), select(query, **options))[1]  # type: ignore[method-assign]
        return self.seen

    def __exit__(self, *_: object) -> None:
        del self._store.select


def operations(
    graph: KnowledgeGraph, kind: str, topic: Entity, walks: int, generator: random.Random
) -> list[Operation]:
    """Return the operations from one topic; an operation that times out is left out with a message."""
    found: list[Operation] = []
    paths = list(random_paths(graph, topic, walks, generator))

    iri = graph.view[0].iri

    def add(name: str, run: Callable[[], Any], peers: Callable[[str], list[str]] | None = None) -> None:
        try:
            with Recorder(graph) as seen:
                result = run()
        except StoreError as error:
            print(f"left out: {name} of {topic.iri}: {error}", file=sys.stderr)
            return
        results = result if isinstance(result, list) else [result]
        capped = any(getattr(each, "approximate", False) for each in results)
        sent = {peer: tuple(peers(peer)) for peer in PEERS} if peers else {}
        found.append(Operation(name, kind, run, tuple(seen), sent, capped))

    for path in paths:
        if len(path) < 3:
            peers = None if len(path) else lambda peer: relation_queries(peer, iri, topic)
            add(f"next_steps hop {len(path) + 1}", lambda path=path: graph.paths.steps([Candidate(path)])[0], peers)
        if len(path):
            peers = (lambda peer, path=path: tail_queries(iri, topic, path.steps[0])) if len(path) == 1 else None
            add(f"ends hop {len(path)}", lambda path=path: graph.paths.ends([Candidate(path)], limit=100)[0], peers)
    steps = graph.paths.steps([Candidate(RelationPath(topic))])[0].steps
    one_hop = [path for path in paths if len(path) == 1][:3]
    if len(one_hop) == 3:
        add("frontier of 3", lambda: graph.paths.steps(list(map(Candidate, one_hop))))
    beam = [RelationPath(topic, (step,)) for step in steps[:10]]
    if len(beam) == 10:
        add("beam of 10", lambda: graph.paths.steps(list(map(Candidate, beam))))
    add("degree", lambda: graph.paths.degrees([topic]))
    near = [node for _, node in graph.paths.neighbours(topic, limit=25) if isinstance(node, Entity)][:50]

    def labels() -> dict[Entity, str]:
        for entity in near:
            graph.tables.labels.pop(entity, None)  # Labels are cached in memory after the first request.
        return graph.labels(near)

    if near:
        add("labels", labels, lambda peer: name_queries(iri, near))
    return found


def measure(operation: Operation, bare: Bare, repeat: int) -> dict[str, float]:
    """Return the median times of an operation in ms."""
    ways: dict[str, Callable[[], Any]] = {
        "kgqa": operation.run,
        "bare": lambda: [bare(query) for query in operation.queries],
        **{peer: lambda sent=sent: [bare(query) for query in sent] for peer, sent in operation.peers.items()},
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(repeat):
        order = (*TURN, *operation.peers)
        for way in order if turn % 2 else reversed(order):
            started = time.perf_counter()
            ways[way]()
            times[way].append(1000 * (time.perf_counter() - started))
    return {way: median(taken) for way, taken in times.items()}


def run(options: argparse.Namespace) -> int:
    """Measure and print the results for each added round-trip time; return the exit code of the first."""
    statuses = []
    parts = urlsplit(str(options.graph))
    for milliseconds in options.round_trip:
        with contextlib.ExitStack() as opened:
            url = str(options.graph)
            if milliseconds:
                relay = Relay(parts.port or 80, delay=milliseconds / 2000, host=parts.hostname or "127.0.0.1")
                opened.callback(relay.close)
                url = parts._replace(netloc=f"127.0.0.1:{relay.port}", scheme="http").geturl()
            statuses.append(_run(options, url, milliseconds))
    return statuses[0]


def _run(options: argparse.Namespace, url: str, round_trip: float) -> int:
    generator = random.Random(options.seed)
    measured: list[tuple[Operation, dict[str, float]]] = []
    endpoint = EndpointOptions(caches=False)
    view = [options.graph_iri] if options.graph_iri else []
    with open_graph(url, view=view, timeout=options.timeout, endpoint=endpoint) as graph:
        if not graph.view:
            sys.exit("Name the graph: --graph-iri IRI")
        triples = graph.store.triples_of([each.iri for each in graph.view])
        graph.tables.prepare()
        bare = Bare(url, graph.store.profile, options.timeout)
        for kind, chosen in topics_of(graph, options.topics, options.hubs, generator).items():
            for topic in chosen:
                measured += [
                    (operation, measure(operation, bare, options.repeat))
                    for operation in operations(graph, kind, topic, options.walks, generator)
                ]
    lines = [
        _line(name, kind, measured) for kind in ("ordinary", "hub") for name in sorted({o.name for o, _ in measured})
    ]
    lines = [line for line in lines if line["calls"]]
    ratios = [times["kgqa"] / times["bare"] - 1 for _, times in measured]
    verdicts = [("overhead at p50, all operations", "share", percentile(ratios, 0.5), OVERHEAD)]
    for kind, share, limit in (("ordinary", 0.5, FRONTIER_ORDINARY_MS), ("hub", 0.95, FRONTIER_HUB_MS)):
        taken = [times["kgqa"] for o, times in measured if o.name == "frontier of 3" and o.topics == kind]
        verdicts.append((f"frontier of 3, {kind}, p{round(100 * share)}", "ms", percentile(taken, share), limit))
    if round_trip:
        verdicts = []
    held = [value <= limit for _, _, value, limit in verdicts]
    if options.json:
        keys = ("what", "unit", "measured", "limit")
        bounds = [dict(zip(keys, verdict)) | {"within": ok} for verdict, ok in zip(verdicts, held)]
        print_json(
            {
                "machine": machine(),
                "round_trip_ms": round_trip,
                "triples": triples,
                "cap": DEFAULT_FRONTIER_CAP,
                "calls": lines,
                "bounds": bounds,
            }
        )
    else:
        print(
            f"\n{triples or 0:,} triples; round trip {round_trip:g} ms; frontiers capped at {DEFAULT_FRONTIER_CAP} nodes; ms\n"
        )
        print_table(list(lines[0]), [list(line.values()) for line in lines])
        print()
        if not verdicts:
            return 0
        rows = [[*verdict, "within" if ok else "MISSED"] for verdict, ok in zip(verdicts, held)]
        print_table(["what", "unit", "measured", "limit", ""], rows)
    return 0 if all(held) else 1


def _line(name: str, kind: str, measured: list[tuple[Operation, dict[str, float]]]) -> dict[str, Any]:
    chosen = [(o, times) for o, times in measured if o.name == name and o.topics == kind]
    line: dict[str, Any] = {"operation": name, "topics": kind, "calls": len(chosen)}
    for way in ("kgqa", "bare", *PEERS):
        taken = [times[way] for _, times in chosen if way in times]
        line |= {f"{way}_p{p}": percentile(taken, p / 100) for p in (50, 95)}
    line["overhead_p50"] = percentile([times["kgqa"] / times["bare"] - 1 for _, times in chosen], 0.5)
    return line | {"capped": sum(o.approximate for o, _ in chosen)}
