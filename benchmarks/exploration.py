"""Measures the time of next steps and ends of paths with kgqa, compared with the same queries on the bare engine.

The graph is the Freebase slice with 1.32 M triples. The paths are random, with a fixed seed. They start from ordinary
topics (degree 15 to 60) and from hubs (degree 2,000 and more). `next_steps` at hop h extends a path of h - 1 steps;
`ends` at hop h follows a path of h steps. Each call is measured in three ways:

- kgqa: `KnowledgeGraph.next_steps(path)` or `.ends(path)`. The query is rendered, sent to a worker process and
  executed; the result is returned, decoded, and folded into steps.
- store: only `graph.store.select(text)` with the queries of that call. `kgqa` minus `store` is the time that kgqa takes
  before and after the queries.
- bare: the same queries on pyoxigraph in this process, which opens the same files for reading. Each row becomes a tuple
  of the same `Entity` and `Literal` objects. In contrast to kgqa's worker process, this way has no timeouts and cannot
  be stopped. `--bare-by tsv` writes TSV and reads it with kgqa's decoder, which is slightly faster for more than some
  hundred rows. `--bare-by json` writes JSON and decodes it to plain objects, the least work that a client can do.

The three alternate (kgqa, bare, store, bare, then in reverse order), so that the worker and the bare engine run equally
often. The second of two runs in a row finds its data in the processor's caches; this made a difference of 20%. Each
call is measured in `--repeat` rounds, or in fewer (at least 3) once it has taken 4 seconds; the medians are compared.
An unmeasured first pass records the queries, warms both engines and compares their rows. If a call takes longer than
`--timeout` seconds in the first pass, the call is left out and counted.

Bounds for the p50 of the overhead per query (time and rows of `next_steps` are halved, because it sends two queries):

- queries that take more than 2 ms on the bare engine: at most 30% with up to 100 rows, and 60% with more rows;
- shorter queries: at most 1 ms.

On a busy machine the overhead of single queries varies, so use the p50, not the p95.

    python benchmarks/exploration.py [--topics 30] [--hubs 10] [--walks 5] [--json]

With --graph URL the benchmark measures a server instead, see remote_exploration.py. Exits with 1 if a bound is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyoxigraph as ox
import remote_exploration
from common import machine, print_json, print_table
from freebase_slice import MAX_HOPS, Kind, bare_store, random_paths, ready_graph, topics
from overhead import Timing, latencies, ratios, verdicts

from kgqa.errors import StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.text import decode_tsv
from kgqa.graph.store import Row, is_address
from kgqa.model import Candidate, Entity, Literal, RelationPath, Value

TURN = ("kgqa", "bare", "store", "bare")
TURN_SECONDS = 4.0
VERDICT = {True: "within", False: "MISSED", None: "not measured"}

try:
    from orjson import loads
except ImportError:
    loads = json.loads

Bare = Callable[[ox.Store, str], Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A call on a path, and the queries it sends."""

    method: str
    path: RelationPath
    kind: Kind
    hop: int
    queries: tuple[str, ...]
    rows: int


def run_bare(store: ox.Store, query: str) -> list[Row]:
    """Return the rows of a query as kgqa's types."""
    return [tuple(_term(term) for term in solution) for solution in store.query(query)]  # type: ignore[union-attr]


def run_bare_tsv(store: ox.Store, query: str) -> list[Row]:
    """Return the rows of a query, written as TSV by the engine and read by kgqa's decoder."""
    table = store.query(query).serialize(format=ox.QueryResultsFormat.TSV)  # type: ignore[union-attr]
    return decode_tsv(table or b"").rows


def run_bare_json(store: ox.Store, query: str) -> Any:
    """Return the rows of a query as decoded JSON, with orjson if orjson is installed."""
    return loads(store.query(query).serialize(format=ox.QueryResultsFormat.JSON) or b"{}")  # type: ignore[union-attr]


def round_trip_ms(graph: KnowledgeGraph, times: int = 500) -> float:
    """Return the median ms of an empty query, the minimum cost of the worker process and its pipe."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        graph.store.ask("ASK {}")
        taken.append(1000 * (time.perf_counter() - started))
    return median(taken)


def _term(term: Any) -> Value | None:
    if isinstance(term, ox.NamedNode):
        return Entity(term.value)
    if isinstance(term, ox.Literal):
        return Literal(term.value, term.datatype.value, term.language or "")
    return None if term is None else Entity(str(term))


class Recorder:
    """Records the queries that `graph.store.select` receives."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._store = graph.store
        self._select = graph.store.select
        self.seen: list[tuple[str, list[Row]]] = []

    def __enter__(self) -> Recorder:
        self._store.select = self  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        del self._store.select  # Restores the method of the class.

    def __call__(self, query: str, **options: Any) -> Any:
        result = self._select(query, **options)
        self.seen.append((query, result.rows))
        return result


def look_up(graph: KnowledgeGraph, method: str, path: RelationPath) -> None:
    """Look up the next steps or the ends of a path."""
    (graph.paths.steps if method == "next_steps" else graph.paths.ends)([Candidate(path)])


def record(graph: KnowledgeGraph, bare: ox.Store, method: str, path: RelationPath, kind: Kind) -> Call | None:
    """Make a call once and record its queries; return None after a timeout. Exit if the bare engine's rows differ."""
    with Recorder(graph) as recorder:
        try:
            look_up(graph, method, path)
        except StoreTimeout:
            return None
    for query, rows in recorder.seen:
        # Results cut by LIMIT are equal too, because the engine is deterministic.
        if set(run_bare(bare, query)) != set(rows):
            sys.exit(f"The bare engine returned other rows for:\n{query}")
    hop = len(path) + (method == "next_steps")
    return Call(method, path, kind, hop, tuple(q for q, _ in recorder.seen), sum(len(r) for _, r in recorder.seen))


def measure(graph: KnowledgeGraph, bare: ox.Store, call: Call, repeat: int, by: Bare) -> Timing:
    """Return the median times of a call in each of the three ways: kgqa, store and bare."""

    def by_store() -> None:
        for query in call.queries:
            graph.store.select(query)

    def by_engine() -> None:
        for query in call.queries:
            by(bare, query)

    ways: dict[str, Callable[[], Any]] = {
        "kgqa": lambda: look_up(graph, call.method, call.path),
        "store": by_store,
        "bare": by_engine,
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    begun = time.perf_counter()
    for turn in range(repeat):
        if turn >= 3 and time.perf_counter() - begun > TURN_SECONDS:
            break
        for way in TURN if turn % 2 else reversed(TURN):
            started = time.perf_counter()
            ways[way]()
            times[way].append(time.perf_counter() - started)
    medians = {way: 1000 * median(taken) for way, taken in times.items()}
    return Timing(call.method, call.kind, call.hop, len(call.queries), call.rows, **medians)


def main() -> None:
    default = Path(tempfile.gettempdir()) / "kgqa-benchmark-freebase"
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--graph", default=str(default), help=f"folder for the loaded graph (default {default}), or a SPARQL endpoint"
    )
    parser.add_argument("--graph-iri", help="named graph of an endpoint")
    parser.add_argument("--topics", type=int, default=30, help="ordinary topics (default 30)")
    parser.add_argument("--hubs", type=int, default=10, help="hub topics, the highest degrees (default 10)")
    parser.add_argument("--walks", type=int, default=5, help="random walks from each topic (default 5)")
    parser.add_argument("--repeat", type=int, default=7, help="measurements of each call, at most (default 7)")
    parser.add_argument("--bare-by", choices=("rows", "tsv", "json"), default="rows", help="how its rows are read")
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds a query may take (default 20)")
    parser.add_argument(
        "--round-trip", type=float, nargs="+", default=[0.0], metavar="MS", help="to an endpoint, ms (default 0)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON, every call included")
    options = parser.parse_args()
    if is_address(options.graph):
        sys.exit(remote_exploration.run(options))
    options.graph = Path(options.graph)

    calls: list[Call | None] = []
    generator = random.Random(options.seed)
    with ready_graph(options.graph, timeout=options.timeout) as graph:
        graph.tables.prepare()
        bare = bare_store(graph)
        fingerprint = graph.store.fingerprint_of([each.iri for each in graph.view])
        for topic in topics(bare, options.graph, fingerprint, options.topics, options.hubs, options.seed):
            for path in list(random_paths(graph, topic.entity, options.walks, generator)):
                if len(path) < MAX_HOPS:
                    calls.append(record(graph, bare, "next_steps", path, topic.kind))
                if len(path):
                    calls.append(record(graph, bare, "ends", path, topic.kind))
        by: Bare = {"rows": run_bare, "tsv": run_bare_tsv, "json": run_bare_json}[options.bare_by]
        timings = [measure(graph, bare, call, options.repeat, by) for call in calls if call]
        empty = round_trip_ms(graph)

    lines, groups, times_bare = latencies(timings), verdicts(timings), ratios(timings)
    if options.json:
        every = [asdict(timing) | {"group": timing.group} for timing in timings]
        found = {"timed_out": calls.count(None), "calls": lines, "bounds": groups, "every": every}
        found |= {"ratios": times_bare, "empty_query_ms": empty}
        print_json({"machine": machine(), "bare_by": options.bare_by, **found})
    else:
        print("whole calls, ms\n")
        print_table(list(lines[0]), [list(line.values()) for line in lines])
        print(f"\nleft out, over {options.timeout:g} s: {calls.count(None)}\n\noverhead over bare, per query\n")
        rows = [[*list(group.values())[:-1], VERDICT[group["within"]]] for group in groups]
        print_table(list(groups[0]), rows)
        print(f"\ntimes the bare queries; an empty query takes {empty:.3f} ms by worker and pipe\n")
        print_table(list(times_bare[0]), [list(line.values()) for line in times_bare])
    sys.exit(0 if all(group["within"] is not False for group in groups) else 1)


if __name__ == "__main__":
    main()
