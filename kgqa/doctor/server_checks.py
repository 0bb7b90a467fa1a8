"""Checks of the server: whether it answers, its kind and graphs, its row cap and time limit, and who may update it."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from kgqa.doctor.subject import (
    AGAIN,
    MEASURED_SECONDS,
    Finding,
    LimitedStore,
    Subject,
    failed,
    first_case,
    ok,
    skipped,
    warning,
)
from kgqa.errors import KgqaError, LoginRefused, QueryRejected, RowCapMet, StoreError, StoreTimeout
from kgqa.graph.detection import default_view, named_graphs
from kgqa.graph.endpoint.options import PASSWORD_VARIABLE, Access, EndpointOptions
from kgqa.graph.endpoint.store import EndpointStore, open_endpoint
from kgqa.graph.opening import demo_folder, open_store, view_of
from kgqa.graph.query.text import render
from kgqa.graph.store import DEFAULT_MAX_ROWS, is_address
from kgqa.model import Entity, GraphId
from kgqa.storage.corpus_file import read_corpus_file
from kgqa.text.hints import Option

ROWS_NEEDED = 100_000
"""A lower row cap causes a warning, because a graph often has that many names, or a path that many ends."""
SLOW_SECONDS, COMBINATIONS, MOST_FACTORS = 1.0, 12, 6
"""The slow query counts at least 10 ** COMBINATIONS combinations of triples, which no store does within SLOW_SECONDS.
If that takes combinations of more than MOST_FACTORS triples, the graph is too small."""
THREADS, REQUESTS = 8, 10
"""Threads that query a store which is not a server, and the number of concurrent requests of each thread."""
VIRTUOSO = (
    "Virtuoso: kgqa virtuoso stop, then kgqa virtuoso start {}; on a server not started by kgqa: {} in virtuoso.ini."
)


def check_server(subject: Subject) -> Iterator[Finding]:
    """Open the store, check whether it answers a trivial query, and which kind of server it is.

    Raises:
        StoreUnavailable, StoreIncomplete, StoreBusy: see `open_store`.
    """
    place = subject.settings.graph.path
    corpus, options = read_corpus_file(place), EndpointOptions.of(subject.settings)
    if corpus and corpus.url:
        options.check_login(corpus)
        place = corpus.url
    if place and is_address(place):
        subject.access = replace(options.access_to(place), patience=1.0)
        uncached = replace(options, access=subject.access, caches=False)
        store = LimitedStore(open_endpoint(place, uncached, cache=subject.cache, timeout=MEASURED_SECONDS))
    else:
        store = LimitedStore(open_store(place or demo_folder(subject.cache)))
    subject.opened.callback(store.close)
    store.ask(render("any_triple", view=()), timeout=MEASURED_SECONDS, fresh=True)
    subject.store = store
    subject.settings = subject.settings.with_graph({k: v for k, v in store.settings.items() if k != "schema"})
    yield ok("reachable", f"{store.location} answers.")
    if not subject.access:
        subject.bears_load = True
        yield skipped("server", "The graph is not on a server.")
        return
    profile = store.profile
    if profile.allows_scans and urlsplit(store.url).hostname not in profile.hosts:
        subject.bears_load = True
    kind = f"{store.transport.software or 'unknown software'}; profile: {profile.title}"
    yield ok("server", f"{kind}, at most {profile.concurrency} concurrent requests.")


def check_graph(subject: Subject) -> Iterator[Finding]:
    """Choose the named graphs to use: those in the settings, or else those that questions use by default.

    Raises:
        InvalidTerm: a graph in the settings is not an IRI.
        StoreUnavailable: see `default_view`.
    """
    store, wanted = subject.store, view_of(subject.settings, subject.settings.graph.path)
    view = tuple(map(Entity, wanted or default_view(store)))
    parts: list[tuple[Entity, ...]] = [(part,) for part in view] or [()]
    if empty := [part for part in parts if not store.ask(render("any_triple", view=part), fresh=True)]:
        known = ", ".join(f"<{iri}>" for iri in named_graphs(store)[:5]) or "none"
        where = ", ".join(f"<{graph.iri}>" for graph in empty[0]) or "the graph"
        use = (
            f"Use an existing graph: {Option('graph-iri', 'IRI')}. Or load data: kgqa graph load FILE --into FOLDER|URL"
        )
        yield failed("graph", f"No triples in {where}. Existing graphs: {known}.", use)
        return
    subject.id, subject.view = GraphId(store.location, tuple(graph.iri for graph in view)), view
    yield ok("graph", f"{', '.join(f'<{graph.iri}>' for graph in view[:5]) or 'The default graph'}.")


def check_row_cap(subject: Subject) -> Iterator[Finding]:
    """Find the server's row cap, by requesting more rows than are needed, or as many as there are."""
    triples = subject.id.triples
    asked = ROWS_NEEDED + 1 if triples is None else min(ROWS_NEEDED + 1, triples**2)
    query = render("doctor_rows", view=subject.view, limit=asked)
    try:
        count = len(subject.store.select(query, timeout=MEASURED_SECONDS, max_rows=asked, fresh=True))
    except RowCapMet as error:
        found = f"The server truncates results at {error.cap:,} rows. kgqa detects this and raises an error."
        yield warning("row cap", found, VIRTUOSO.format("--row-cap 1000000", "ResultSetMaxRows"))
        return
    found, remedy = f"The server silently truncates results at {count:,} rows.", f"Set endpoint.row_cap = {count}."
    yield first_case(
        (count < asked, failed("row cap", found, remedy)),
        otherwise=ok(
            "row cap", f"No cap reached: {count:,} rows arrived. More than {DEFAULT_MAX_ROWS:,} are an error."
        ),
    )


def check_time_limit(subject: Subject) -> Iterator[Finding]:
    """Check what happens to a count that cannot finish within SLOW_SECONDS, and the server's own limit."""
    triples, limit = subject.id.triples or 10_000, None
    if subject.access:
        subject.store.transport.detect(MEASURED_SECONDS)
        limit = subject.store.transport.time_limit
    factors = math.ceil(COMBINATIONS / math.log10(max(triples, 2)))
    if factors > MOST_FACTORS:
        yield skipped("time limit", "The graph is too small for a slow query.")
        return
    query = render("doctor_slow", view=subject.view, places=range(max(factors, 2)))
    try:
        ((count,),) = subject.store.select(query, timeout=SLOW_SECONDS, fresh=True)
        wrong, how = (
            count.value != str(triples ** max(factors, 2)),
            f"The slow query of this check returned {count.value}.",
        )
    except StoreTimeout as error:
        wrong, how = False, error.message
    granted, remedy = subject.settings.graph.timeout, VIRTUOSO.format("--query-seconds N", "MaxQueryExecutionTime")
    yield first_case(
        (
            wrong,
            failed(
                "time limit",
                f"{how} That is too few: a partial result was given as the whole.",
                "Set endpoint.profile to the kind of this server.",
            ),
        ),
        (
            limit and limit < granted,
            warning("time limit", f"The server's limit is {limit} s, less than graph.timeout ({granted:g} s).", remedy),
        ),
        otherwise=ok("time limit", how),
    )


def check_update_rights(subject: Subject) -> Iterator[Finding]:
    """Check whether updates are possible without a login, and with the login of the settings if there is one.

    The update deletes a triple that does not exist.
    """
    if not subject.access:
        yield ok("update rights", "A graph is opened for reading only; only kgqa graph load writes to it.")
        return

    def refusal(profile: str, access: Access) -> StoreError | None:
        unused: Any = {name: Entity(f"urn:uuid:{uuid.uuid4()}") for name in ("subject", "relation", "object")}
        graph = subject.view[0].iri if subject.view else f"urn:uuid:{uuid.uuid4()}"
        url, access = subject.store.url, replace(access, patience=0.0)
        with EndpointStore(url, writable=graph, profile=profile, access=access, timeout=MEASURED_SECONDS) as store:
            try:
                store.update("doctor_update", graph=graph, **unused)
            except StoreError as error:
                return error
        return None

    # the generic profile sends updates to the public URL, where anybody can send one
    error, login = refusal("generic", Access()), subject.access.user
    refused = refusal(subject.store.profile.name, subject.access) if login else None
    found = f"Anybody who can reach {subject.store.url} can change the graph: an update without a login was accepted."
    revoke = 'Revoke the right (Virtuoso: REVOKE SPARQL_UPDATE FROM "SPARQL"), or bind the server to 127.0.0.1.'
    check = f"Check endpoint.user and the password in the environment variable {PASSWORD_VARIABLE}."
    yield first_case(
        (not error, warning("update rights", found, revoke)),
        (refused, warning("update rights", f"An update with the login of {login} was rejected: {refused}", check)),
        (login, ok("update rights", f"Updates with the login of {login} (endpoint.user) are accepted.")),
        (
            isinstance(error, (QueryRejected, LoginRefused)),
            ok("update rights", "Updates without a login are rejected."),
        ),
        otherwise=skipped("update rights", f"An update could not be tried: {error}"),
    )


def check_concurrency(subject: Subject) -> Iterator[Finding]:
    """Check whether the store handles as many concurrent requests as questions send."""
    threads = subject.store.capabilities.concurrency if subject.access else THREADS
    query, started = render("any_triple", view=subject.view), time.monotonic()

    def error_of(request: int) -> str:
        try:
            subject.store.ask(query, timeout=MEASURED_SECONDS, fresh=True)
        except KgqaError as error:
            return error.message
        return ""

    with ThreadPoolExecutor(threads) as pool:
        errors = list(filter(None, pool.map(error_of, range(REQUESTS * threads))))
    answers = REQUESTS * threads - len(errors)
    found = f"{threads} threads got {answers / (time.monotonic() - started):,.0f} answers/s"
    wrong = f"{found} and {len(errors)} errors. One of them: {''.join(errors[:1])[:160]}"
    yield first_case(
        (not answers, failed("concurrency", wrong, AGAIN)),
        (errors, warning("concurrency", wrong, "Lower endpoint.concurrency, or let the server accept more requests.")),
        otherwise=ok("concurrency", f"{found}."),
    )
