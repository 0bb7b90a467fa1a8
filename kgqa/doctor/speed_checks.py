"""Checks of speed and search: latency of exploration, concurrency, and full-text search."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from kgqa.doctor.checks import AGAIN, Check, failed, ok, percentile, seconds_words, skipped, warning
from kgqa.doctor.limited_store import QUERY_SECONDS, LimitedStore, limited_server
from kgqa.doctor.subject import Subject
from kgqa.errors import KgqaError, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.sqlite_index import SqliteNames
from kgqa.graph.names.unindexed import UnindexedNames
from kgqa.graph.query.templates import render
from kgqa.graph.store import Rows
from kgqa.graph.tables.labels import LABEL_BATCH, find_labels
from kgqa.model import Entity, RelationPath

T = TypeVar("T")
OPERATIONS = ("next steps", "second hop", "ends", "labels")
EXPLORING_SECONDS = 4.0
"""Seconds for all measured operations together."""
HUBS_SECONDS = 2.0
ENDS = 100
SLOW_MEDIAN, SLOW_TAIL = 0.1, 1.0
"""Seconds (p50 and p95) above which ordinary operations are reported as slow."""
SLOW_REMEDY = (
    "A question sends dozens of such queries. Raise budget.seconds, or give the server more memory. Virtuoso: kgqa "
    "virtuoso start --memory-share S; on a server not started by kgqa: NumberOfBuffers in virtuoso.ini."
)
THREADS = (8, 16)
ROUND_SECONDS = 0.7
ERROR_PAUSE = 0.05
"""Seconds that a thread waits after an error before it sends the next request."""
NOTHING_ANSWERED = "Check the server's log for errors under concurrent requests, and run kgqa doctor again."
INDEX_TRIPLES = 2_000_000
"""For graphs with more triples, building the index of names takes too long for a check."""


@dataclass
class Latency:
    """Measured durations in seconds, by operation.

    `until`: time, in seconds of `time.monotonic`, after which nothing is measured. `late`: number of operations that
    timed out.
    """

    seconds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in OPERATIONS})
    until: float = math.inf
    late: int = 0

    def time(self, operation: str, run: Callable[[], T]) -> T | None:
        """Run an operation and measure how long it takes. Return None after a timeout, or if `until` has passed."""
        if time.monotonic() > self.until:
            return None
        started = time.perf_counter()
        try:
            return run()
        except StoreTimeout:
            self.late += 1
            return None
        finally:
            self.seconds[operation].append(time.perf_counter() - started)

    @property
    def all(self) -> list[float]:
        """The durations of all operations."""
        return [each for seconds in self.seconds.values() for each in seconds]

    def __str__(self) -> str:
        parts = [
            f"{name} {_milliseconds(percentile(seconds, 0.5))}/{_milliseconds(percentile(seconds, 0.95))}"
            for name, seconds in self.seconds.items()
            if seconds
        ]
        return ", ".join(parts) + " ms"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.1f}" if seconds < 0.00995 else f"{1000 * seconds:,.0f}"


def check_latency(subject: Subject) -> Check:
    """Check the latency of ordinary topics, and separately of hubs."""
    sample = subject.sample
    hubs = [node for node, _ in sample.hubs]
    topics = [topic for topic in sample.topics if topic not in hubs]
    ordinary = measure_latency(subject.graph, topics, sample.entities, seconds=EXPLORING_SECONDS)
    of_hubs = measure_latency(subject.graph, hubs, sample.entities, seconds=HUBS_SECONDS)
    if ordinary.all:
        subject.query_seconds = percentile(ordinary.all, 0.95)
    most = max((edges for _, edges in sample.hubs), default=0)
    return judge_latency(ordinary, of_hubs, topics=len(ordinary.seconds["next steps"]), most_edges=most)


def measure_latency(
    graph: KnowledgeGraph, topics: Sequence[Entity], nodes: Sequence[Entity], *, seconds: float
) -> Latency:
    """Measure the operations of exploration, topic by topic, for `seconds`.

    Args:
        nodes: entities whose labels are looked up, LABEL_BATCH at a time.
    """
    found = Latency(until=time.monotonic() + seconds)
    for index, topic in enumerate(topics):
        path = RelationPath(topic)
        expansion = found.time("next steps", partial(graph.next_steps, path))
        steps = expansion.steps if expansion else ()
        if steps:
            longer = path.then(steps[index % len(steps)])
            found.time("ends", partial(graph.ends, longer, limit=ENDS))
            found.time("second hop", partial(graph.next_steps, longer))
        batch = [nodes[(index * LABEL_BATCH + each) % len(nodes)] for each in range(min(LABEL_BATCH, len(nodes)))]
        found.time("labels", partial(_labels, graph, batch))
    return found


def _labels(graph: KnowledgeGraph, entities: Sequence[Entity]) -> dict[Entity, str]:
    def select(name: str, **values: object) -> Rows:
        return graph.store.select(render(name, view=graph.view, **values), fresh=True)

    remote = graph.store.capabilities.remote
    return find_labels(entities, schema=graph.schema, select=select, known={}, remote=remote)


def judge_latency(ordinary: Latency, hubs: Latency, *, topics: int, most_edges: int) -> Check:
    """Judge the latency.

    Args:
        topics: number of ordinary topics.
        most_edges: largest degree of the hubs.
    """
    if not ordinary.all:
        return skipped("There are no entities to explore from.")
    if ordinary.late == len(ordinary.all):
        return failed(f"All {ordinary.late} queries timed out.", AGAIN)
    found = f"p50/p95 over {topics} topics: {ordinary}."
    if hubs.all:
        found += f" Hubs (up to {most_edges:,} edges): {hubs}."
    if percentile(ordinary.all, 0.5) > SLOW_MEDIAN or percentile(ordinary.all, 0.95) > SLOW_TAIL:
        return warning(found, SLOW_REMEDY)
    return ok(found)


@dataclass(frozen=True)
class LoadRound:
    """The result of concurrent requests: numbers of answers and errors, wall time, and one error message."""

    threads: int
    answered: int
    errors: int
    seconds: float
    error: str = ""


def measure_round(store: LimitedStore, view: Sequence[Entity], threads: int, *, seconds: float) -> LoadRound:
    """Send a cheap query repeatedly from several threads for `seconds`."""
    query, started = render("any_triple", view=view), time.monotonic()

    def ask_repeatedly(_: int) -> tuple[int, list[str]]:
        answered, errors = 0, []
        while time.monotonic() < started + seconds:
            try:
                store.ask(query, timeout=QUERY_SECONDS, fresh=True)
                answered += 1
            except KgqaError as error:
                errors.append(error.message)
                time.sleep(ERROR_PAUSE)
        return answered, errors

    with ThreadPoolExecutor(threads) as pool:
        results = list(pool.map(ask_repeatedly, range(threads)))
    errors = [error for _, found in results for error in found]
    answered = sum(count for count, _ in results)
    return LoadRound(threads, answered, len(errors), time.monotonic() - started, *errors[:1])


def check_concurrency(subject: Subject) -> Check:
    """Check how many concurrent requests the store handles."""
    store, view, server = subject.store, subject.view, subject.store.server
    if server is None:
        rounds = [measure_round(store, view, threads, seconds=ROUND_SECONDS) for threads in THREADS]
        return judge_concurrency(rounds, configured=None)
    url, profile = server.url, server.profile

    def measured(threads: int) -> LoadRound:
        # as many concurrent requests as threads, and no retries
        wide = replace(store.access, concurrency=threads, rate=0.0, patience=0.0)
        with limited_server(url, wide, profile=profile.name) as other:
            return measure_round(other, view, threads, seconds=ROUND_SECONDS)

    rounds = [measured(threads) for threads in THREADS]
    configured = store.access.concurrency or profile.concurrency
    if configured < THREADS[0] and rounds[0].errors:
        rounds.insert(0, measured(configured))  # handling this number of requests is enough for the verdict ok
    return judge_concurrency(rounds, configured=configured)


def judge_concurrency(rounds: Sequence[LoadRound], *, configured: int | None) -> Check:
    """Judge the concurrency. `rounds` are ordered by increasing number of threads."""
    results = [
        f"{each.threads} threads {each.answered / max(each.seconds, 1e-9):,.0f} answers/s"
        + (f", {each.errors} errors" if each.errors else "")
        for each in rounds
    ]
    found = "; ".join(results) + "."
    sent = f" kgqa sends at most {configured} concurrent requests"
    bad = [each for each in rounds if each.errors or not each.answered]
    if not bad:
        return ok(f"{found}{sent}." if configured else found)
    found += f" One of the errors: {bad[0].error[:160]}" if bad[0].error else ""
    if not any(each.answered for each in rounds):
        return failed(f"No request was answered. {found}", NOTHING_ANSWERED)
    handled = max((each.threads for each in rounds if each.threads < bad[0].threads), default=None)
    if handled and configured is not None and configured <= handled:
        return ok(f"{found}{sent}, which the server handles.")
    number = f"= {handled}" if handled else f"below {bad[0].threads}"
    remedy = f"Set endpoint.concurrency {number}, or let the server accept more connections."
    return warning(found, remedy if bad[0].threads > 1 else NOTHING_ANSWERED)


def check_search(subject: Subject) -> Check:
    """Check whether entities are found by name, how fast, and with which kind of index."""
    graph = subject.graph
    folder, large = graph.tables.folder, (subject.triples or 0) > INDEX_TRIPLES
    if large and subject.store.server is None and not (folder and any(folder.glob("names-*.sqlite"))):
        return skipped("The index of names is not built yet. The first question builds it.")
    started = time.monotonic()
    kind = index_kind(graph.names)
    how = f"{kind}, ready after {seconds_words(time.monotonic() - started)}"
    labels = _labels(graph, subject.sample.entities[:LABEL_BATCH])
    if not labels:
        return warning(f"{kind}; the sample has no label to search for.", "See the result of the check “labels”.")
    entity, label = sorted(labels.items(), key=lambda item: (len(item[1]), item[0].iri))[len(labels) // 2]
    started = time.monotonic()
    matches = graph.search(label)
    if any(match.entity == entity or match.exact for match in matches):
        return ok(f"{how}: “{label}” was found in {seconds_words(time.monotonic() - started)}.")
    return failed(
        f"{how}: a search for the label “{label}” does not find its entity.",
        "Rebuild the index. In the cache: kgqa cache clear --kind graphs. On Virtuoso: kgqa virtuoso index",
    )


def index_kind(index: object) -> str:
    """Describe the kind of an index of names."""
    if isinstance(index, UnindexedNames):
        return "no index"
    return "kgqa's own index (SQLite)" if isinstance(index, SqliteNames) else "the server's own index"
