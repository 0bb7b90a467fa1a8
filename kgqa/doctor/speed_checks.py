"""Checks of speed and search: latency of exploration, concurrency, and full-text search."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from kgqa.doctor.checks import AGAIN, Check, failed, first_case, ok, percentile, seconds_words, skipped, warning
from kgqa.doctor.subject import QUERY_SECONDS, LimitedStore, Subject
from kgqa.errors import KgqaError, StoreTimeout
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.selection import UnindexedNames
from kgqa.graph.names.sqlite_index import SqliteNames
from kgqa.graph.query.templates import render
from kgqa.graph.tables.labels import LABEL_BATCH
from kgqa.model import Entity, RelationPath

Durations = Mapping[str, list[float]]
"""Durations in seconds by operation."""
EXPLORING_SECONDS = 4.0
"""Seconds for all measured operations together."""
HUBS_SECONDS = 2.0
SLOW_MEDIAN, SLOW_TAIL = 0.1, 1.0
"""Seconds (p50 and p95) above which ordinary operations are reported as slow."""
THREADS = (8, 16)
ROUND_SECONDS = 0.7
NOTHING_ANSWERED = "Check the server's log for errors under concurrent requests, and run kgqa doctor again."
INDEX_TRIPLES = 2_000_000
"""For graphs with more triples, building the index of names takes too long for a check."""


def check_latency(subject: Subject) -> Check:
    """Check the latency of ordinary topics, and separately of hubs."""
    sample = subject.sample
    topics = [topic for topic in sample.topics if topic not in sample.hubs]
    ordinary, late = measure_latency(subject.graph, topics, sample.entities, seconds=EXPLORING_SECONDS)
    of_hubs, _ = measure_latency(subject.graph, list(sample.hubs), sample.entities, seconds=HUBS_SECONDS)
    if durations := list(chain(*ordinary.values())):
        subject.query_seconds = percentile(durations, 0.95)
    return judge_latency(ordinary, late=late, of_hubs=of_hubs, most_edges=max(sample.hubs.values(), default=0))


def measure_latency(
    graph: KnowledgeGraph, topics: Sequence[Entity], nodes: Sequence[Entity], *, seconds: float
) -> tuple[Durations, int]:
    """Measure the operations of exploration, topic by topic, for `seconds`; also return the number of timeouts.

    Args:
        nodes: entities whose labels are looked up, LABEL_BATCH at a time.
    """
    until = time.monotonic() + seconds
    late: list[StoreTimeout] = []
    found: dict[str, list[float]] = {name: [] for name in ("next steps", "second hop", "ends", "labels")}

    def timed(operation: str, run: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        if time.monotonic() > until:
            return None
        try:
            return run()
        except StoreTimeout as error:
            late.append(error)
            return None
        finally:
            found[operation].append(time.perf_counter() - started)

    for index, topic in enumerate(topics):
        path = RelationPath(topic)
        expansion = timed("next steps", partial(graph.next_steps, path))
        if steps := expansion.steps if expansion else ():
            longer = path.then(steps[index % len(steps)])
            timed("ends", partial(graph.ends, longer, limit=100))
            timed("second hop", partial(graph.next_steps, longer))
        batch = [nodes[(index * LABEL_BATCH + each) % len(nodes)] for each in range(min(LABEL_BATCH, len(nodes)))]
        graph.tables.labels.clear()
        timed("labels", partial(graph.labels, batch))
    return found, len(late)


def judge_latency(ordinary: Durations, *, late: int, of_hubs: Durations, most_edges: int) -> Check:
    """Judge the latency of ordinary topics. `late`: number of timeouts. `most_edges`: largest degree of the hubs."""
    durations = list(chain(*ordinary.values()))
    if not durations:
        return skipped("There are no entities to explore from.")
    found = f"p50/p95 over {len(ordinary.get('next steps', ()))} topics: {latency_words(ordinary)}."
    found += f" Hubs (up to {most_edges:,} edges): {latency_words(of_hubs)}." if any(of_hubs.values()) else ""
    slow = percentile(durations, 0.5) > SLOW_MEDIAN or percentile(durations, 0.95) > SLOW_TAIL
    return first_case(
        (late == len(durations), failed(f"All {late} queries timed out.", AGAIN)),
        (
            slow,
            warning(
                found,
                "A question sends dozens of such queries. Raise budget.seconds, or give the server more memory. "
                "Virtuoso: kgqa virtuoso start --memory-share S; on a server not started by kgqa: NumberOfBuffers in "
                "virtuoso.ini.",
            ),
        ),
        otherwise=ok(found),
    )


def latency_words(durations: Durations) -> str:
    """Format p50 and p95 of each operation: `next steps 2.0/30, labels 1.5/3.0 ms`."""

    def milliseconds(seconds: list[float], share: float) -> str:
        value = 1000 * percentile(seconds, share)
        return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"

    parts = [f"{name} {milliseconds(each, 0.5)}/{milliseconds(each, 0.95)}" for name, each in durations.items() if each]
    return ", ".join(parts) + " ms"


class LoadRound(NamedTuple):
    """The result of concurrent requests: numbers of answers and errors, wall time, and one error message."""

    threads: int
    answered: int
    errors: int
    seconds: float
    error: str = ""


def measure_round(store: LimitedStore | EndpointStore, view: Sequence[Entity], threads: int) -> LoadRound:
    """Send a cheap query repeatedly from several threads for ROUND_SECONDS."""
    query, started = render("any_triple", view=view), time.monotonic()

    def ask_repeatedly(_: int) -> list[str]:
        errors = []
        while time.monotonic() < started + ROUND_SECONDS:
            try:
                store.ask(query, timeout=QUERY_SECONDS, fresh=True)
                errors.append("")
            except KgqaError as error:
                errors.append(error.message)
                time.sleep(0.05)  # before this thread sends its next request
        return errors

    with ThreadPoolExecutor(threads) as pool:
        results = list(chain(*pool.map(ask_repeatedly, range(threads))))
    errors = list(filter(None, results))
    return LoadRound(threads, len(results) - len(errors), len(errors), time.monotonic() - started, *errors[:1])


def check_concurrency(subject: Subject) -> Check:
    """Check how many concurrent requests the store handles."""
    store, server = subject.store, getattr(subject, "server", None)

    def measured(threads: int) -> LoadRound:
        # as many concurrent requests as threads, and no retries
        access = replace(store.access, concurrency=threads, patience=0.0)
        with (
            EndpointStore(store.url, access=access, profile=store.profile.name) if server else nullcontext(store) as at
        ):
            return measure_round(at, subject.view, threads)

    rounds = [measured(threads) for threads in THREADS]
    configured = (store.access.concurrency or store.profile.concurrency) if server else None
    if configured and configured < THREADS[0] and rounds[0].errors:
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
    sent = f" kgqa sends at most {configured} concurrent requests" if configured else ""
    bad = [each for each in rounds if each.errors or not each.answered]
    if not bad:
        return ok(f"{found}{sent}." if sent else found)
    found += f" One of the errors: {bad[0].error[:160]}" if bad[0].error else ""
    handled = max((each.threads for each in rounds if each.threads < bad[0].threads), default=0)
    number = f"= {handled}" if handled else f"below {bad[0].threads}"
    remedy = f"Set endpoint.concurrency {number}, or let the server accept more connections."
    return first_case(
        (
            not any(each.answered for each in rounds),
            failed(f"No request was answered. {found}", NOTHING_ANSWERED),
        ),
        (configured and configured <= handled, ok(f"{found}{sent}, which the server handles.")),
        otherwise=warning(found, remedy if bad[0].threads > 1 else NOTHING_ANSWERED),
    )


def check_search(subject: Subject) -> Check:
    """Check whether entities are found by name, how fast, and with which kind of index."""
    graph, folder = subject.graph, subject.graph.tables.folder
    large = not subject.store.capabilities.remote and (subject.triples or 0) > INDEX_TRIPLES
    if large and not (folder and any(folder.glob("names-*.sqlite"))):
        return skipped("The index of names is not built yet. The first question builds it.")
    started = time.monotonic()
    kinds = {UnindexedNames: "no index", SqliteNames: "kgqa's own index (SQLite)"}
    kind = kinds.get(type(graph.names), "the server's own index")
    how = f"{kind}, ready after {seconds_words(time.monotonic() - started)}"
    labels = graph.labels(subject.sample.entities[:LABEL_BATCH])
    if not labels:
        return warning(f"{kind}; the sample has no label to search for.", "See the result of the check “labels”.")
    entity, label = sorted(labels.items(), key=lambda item: (len(item[1]), item[0].iri))[len(labels) // 2]
    started = time.monotonic()
    if any(match.entity == entity or match.exact for match in graph.search(label)):
        return ok(f"{how}: “{label}” was found in {seconds_words(time.monotonic() - started)}.")
    return failed(
        f"{how}: a search for the label “{label}” does not find its entity.",
        "Rebuild the index. In the cache: kgqa cache clear --kind graphs. On Virtuoso: kgqa virtuoso index",
    )
