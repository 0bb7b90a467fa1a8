"""Measures the time of EndpointStore per query, compared with SPARQLWrapper and with plain urllib3 requests.

Three clients take turns in sending the same small queries to a Virtuoso server:


    kgqa           EndpointStore.select: pooled connections, typed terms
    SPARQLWrapper  unmodified: one connection per request, JSON as Python objects
    urllib3        one connection for all requests, JSON as Python objects, without checks

All are measured on the loopback interface, and through TLS with 50 ms of latency each way. The result cache is off.

Bounds: through TLS, kgqa's p50 is at most 0.6 times that of SPARQLWrapper. On the loopback interface, kgqa's p50 is at
most 0.15 ms above that of urllib3. Exits with 1 if a bound is missed.


    python benchmarks/endpoint.py                      # starts a server with the demo graph
    python benchmarks/endpoint.py --graph http://127.0.0.1:8890/sparql --graph-iri http://freebase.com
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlsplit

from common import machine, percentile, print_json, print_table
from slow_network import far_away, make_certificate

from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.query.text import render
from kgqa.model import Entity
from kgqa.schema import bundled_schema
from kgqa.virtuoso.process import free_port
from kgqa.virtuoso.server import Server

DEMO_IRI = "http://kgqa.example/demo"
LATENCY = 0.05
MOST_OF_PLAIN = 0.6
MOST_OVER_BARE_MS = 0.15
WAYS = ("kgqa", "SPARQLWrapper", "urllib3")


@contextlib.contextmanager
def own_server() -> Iterator[str]:
    """Start a Virtuoso server with the demo graph, yield its address, and stop it."""
    with tempfile.TemporaryDirectory(prefix="kgqa-benchmark-") as folder:
        server = Server.at(Path(folder) / "server")
        server.start(http_port=free_port(), sql_port=free_port(), memory_share=0.05)
        try:
            file = server.import_folder / "demo.nt"
            file.write_bytes((files("kgqa.demo") / "graph.nt").read_bytes())
            server.load([file], DEMO_IRI)
            yield server.url
        finally:
            server.stop()


def small_queries(graph: str) -> list[str]:
    """Return queries that each count the triples with one predicate; each result has one row."""
    predicates = dict.fromkeys(p for name in ("freebase", "wikidata", "rdfs") for p in bundled_schema(name).detect)
    return [render("count_predicate", view=(Entity(graph),), predicate=Entity(p)) for p in predicates]


def asking(url: str, graph: str, opened: contextlib.ExitStack) -> dict[str, Callable[[str], Any]]:
    """Return, for each of the three clients, a function that sends one query."""
    import urllib3
    from SPARQLWrapper import JSON, SPARQLWrapper

    store = opened.enter_context(EndpointStore(url, profile="virtuoso"))
    pool = urllib3.PoolManager(maxsize=1)

    def plain(query: str) -> Any:
        wrapper = SPARQLWrapper(url)
        wrapper.setReturnFormat(JSON)
        wrapper.setQuery(query)
        return wrapper.query().convert()

    def bare(query: str) -> Any:
        headers = {"Accept": "application/sparql-results+json"}
        return json.loads(pool.request("GET", f"{url}?query={quote_plus(query)}", headers=headers).data)

    return {"kgqa": lambda query: store.select(query, fresh=True), "SPARQLWrapper": plain, "urllib3": bare}


def measure(ways: dict[str, Callable[[str], Any]], queries: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Return the milliseconds of each query by client; the clients take turns. First requests are not measured."""
    for ask in ways.values():
        ask(queries[0])
    times: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for _ in range(rounds):
        names = names[1:] + names[:1]
        for query in queries:
            for name in names:
                started = time.perf_counter()
                ways[name](query)
                times[name].append(1000 * (time.perf_counter() - started))
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", help="address of a Virtuoso server [starts one]")
    parser.add_argument("--graph-iri", default=DEMO_IRI, help="its named graph")
    parser.add_argument("--rounds", type=int, default=60, help="repetitions on the loopback [60]")
    parser.add_argument("--far-rounds", type=int, default=3, help="repetitions through TLS [3]")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()

    with contextlib.ExitStack() as opened:
        url = options.graph or opened.enter_context(own_server())
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="kgqa-benchmark-")))
        certificate = make_certificate(folder)
        os.environ["SSL_CERT_FILE"] = str(certificate[0])
        parts = urlsplit(url)
        far = opened.enter_context(far_away(parts.port or 80, certificate, latency=LATENCY)) + parts.path
        queries = small_queries(options.graph_iri)
        found = {
            "loopback": measure(asking(url, options.graph_iri, opened), queries, options.rounds),
            f"TLS, {1000 * LATENCY:.0f} ms each way": measure(
                asking(far, options.graph_iri, opened), queries, options.far_rounds
            ),
        }

    lines = [
        [where, way, len(times[way]), percentile(times[way], 0.5), percentile(times[way], 0.95)]
        for where, times in found.items()
        for way in WAYS
    ]
    near, distant = found.values()
    over = percentile([ours - bare for ours, bare in zip(near["kgqa"], near["urllib3"])], 0.5)
    share = percentile(distant["kgqa"], 0.5) / percentile(distant["SPARQLWrapper"], 0.5)
    bounds = [
        ["kgqa over urllib3 on the loopback, ms, p50 of pairs", over, MOST_OVER_BARE_MS, over <= MOST_OVER_BARE_MS],
        ["kgqa of SPARQLWrapper through TLS, p50", share, MOST_OF_PLAIN, share <= MOST_OF_PLAIN],
    ]
    if options.json:
        head = ("where", "way", "queries", "p50_ms", "p95_ms")
        verdicts = [dict(zip(("bound", "found", "limit", "within"), bound)) for bound in bounds]
        print_json({"machine": machine(), "times": [dict(zip(head, line)) for line in lines], "bounds": verdicts})
    else:
        print_table(["where", "way", "queries", "p50 ms", "p95 ms"], lines)
        print()
        print_table(
            ["bound", "found", "limit", "within"], [[*bound[:3], "yes" if bound[3] else "NO"] for bound in bounds]
        )
    return 0 if all(bound[3] for bound in bounds) else 1


if __name__ == "__main__":
    sys.exit(main())
