"""Checks of the server: whether it answers, its kind and graphs, its row cap and time limit, and who may update it."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any
from typing import Literal as OneOf
from urllib.parse import urlsplit

from kgqa.doctor.checks import Check, failed, first_case, ok, seconds_words, skipped, warning
from kgqa.doctor.subject import QUERY_SECONDS, REASONS, LimitedStore, Subject
from kgqa.errors import LoginRefused, PartialResult, QueryRejected, RowCapMet, StoreError, StoreTimeout
from kgqa.graph.demo import demo_folder
from kgqa.graph.detection import user_graphs
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.profiles import Profile, profile_of
from kgqa.graph.endpoint.requests.access import PASSWORD_VARIABLE, Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.foreign_stores import is_foreign
from kgqa.graph.opening import open_store, view_of
from kgqa.graph.query.templates import render
from kgqa.graph.store import DEFAULT_TIMEOUT, is_address
from kgqa.model import Entity, GraphId
from kgqa.storage.corpus_file import read_corpus_file

SHOWN_GRAPHS = 5
PATIENCE = 1.0
"""Seconds during which a request is repeated while the server does not respond."""
ROWS_ASKED = (10_001, 100_001, 1_048_577)
"""Numbers of rows to request. Each is one more than a common row cap."""
ROWS_NEEDED = 100_000
"""A lower row cap causes a warning, because a graph often has that many names, or a path that many ends."""
SLOW_SECONDS = 1.0
MOST_SECONDS = 3 * SLOW_SECONDS
LISTEN_SECONDS = 12.0
"""Seconds to wait for a server whose limit is SLOW_SECONDS; some servers end a query several seconds late."""
TRIPLES_COMBINED = 12
"""The slow query counts at least 10 ** TRIPLES_COMBINED rows; no server can count so many within SLOW_SECONDS."""
MOST_FACTORS = 6
BUSY = "Find out what keeps the server busy, and run kgqa doctor again."
ELSEWHERE = "on a server not started by kgqa:"
REFUSALS = (QueryRejected, LoginRefused)
"""Errors which mean that the server rejects all updates, or updates by this user."""


def check_reachable(subject: Subject) -> Check:
    """Open the store, check whether it answers a trivial query, and how many seconds the first reply takes.

    Raises:
        StoreUnavailable, StoreIncomplete, StoreBusy: see `open_store`.
    """
    place = subject.settings.graph.path
    corpus = read_corpus_file(place)
    url = corpus.url if corpus else place if place and is_address(place) else None
    if url:
        given = EndpointOptions.of(subject.settings)
        if corpus:
            given.check_login(corpus)
        access = given.access_to(url)
        access = replace(access, patience=min(access.patience, PATIENCE))
        options = replace(given, access=access, caches=False)
        store = LimitedStore(options.open(url, cache=subject.cache, timeout=QUERY_SECONDS), access)
    else:
        store = LimitedStore(open_store(place or demo_folder(subject.cache)))
    subject.opened.callback(store.close)
    started = time.perf_counter()
    try:
        _has_triples(store)
    except (StoreTimeout, PartialResult) as error:
        return failed(error.message, "Find out what keeps the server busy, or restart it.")
    took = time.perf_counter() - started
    subject.store = store
    if url:
        subject.server = store
    if not url or (store.profile.allows_scans and urlsplit(store.url).hostname not in store.profile.hosts):
        subject.bears_load = True
    subject.settings = subject.settings.with_graph({k: v for k, v in store.settings.items() if k != "schema"})
    return ok(f"{store.location} answers; the first reply took {seconds_words(took)}.")


def check_server(subject: Subject) -> Check:
    """Report the software that answers, and its version."""
    if hasattr(subject, "server"):
        return ok(_server_header(subject) or "The server does not name its software.")
    folder = f"A graph folder, read by pyoxigraph {version('pyoxigraph')}."
    return ok("A store of another package." if is_foreign(subject.settings.graph.path or "") else folder)


def _server_header(subject: Subject) -> str:
    return str(subject.server.reply_headers(render("any_triple", view=())).get("server", "")).strip()


def check_profile(subject: Subject) -> Check:
    """Check whether the profile fits the server."""
    seems = profile_of(subject.server.url, _server_header(subject))
    return judge_profile(subject.server.profile, seems, chosen=subject.settings.endpoint.profile)


def judge_profile(used: Profile, seems: Profile, *, chosen: str) -> Check:
    """Judge the profile in use. `seems`: the profile suggested by URL and Server header. `chosen`: endpoint.profile."""
    how = "detected" if chosen == "auto" else "from endpoint.profile"
    limits = f"{used.concurrency} concurrent requests" + (f", {used.rate:g} per second." if used.rate else ".")
    return first_case(
        (
            used.name == "generic",
            ok(f"{used.title} (unknown server; set endpoint.profile if it is a known one): {limits}"),
        ),
        (
            seems.name not in ("generic", used.name),
            warning(
                f"The profile is {used.title}, but the server looks like {seems.title}.",
                "Remove endpoint.profile from the settings, or set it to auto.",
            ),
        ),
        otherwise=ok(f"{used.title} ({how}): {limits}"),
    )


def check_graph(subject: Subject) -> Check:
    """Choose the named graphs to use: those in the settings, or else those that questions use by default.

    Raises:
        InvalidTerm: a graph in the settings is not an IRI.
    """
    store, wanted = subject.store, view_of(subject.settings, subject.settings.graph.path)
    try:
        there: tuple[str, ...] | None = user_graphs(store)
    except (StoreTimeout, PartialResult):
        there = None
    default = not wanted and not store.capabilities.system_graphs and _has_triples(store)
    empty = [iri for iri in wanted if not _has_triples(store, iri)]
    check = ok(f"The default graph.{_also(there or ())}") if default else judge_graphs(store, wanted, there, empty)
    view = () if default else tuple(wanted or there or ())
    if check.verdict == "failed":
        subject.reasons["view"] = REASONS["store"]
    else:
        subject.id, subject.view = GraphId(store.location, view), tuple(map(Entity, view))
    return check


def judge_graphs(
    store: LimitedStore, wanted: Sequence[str], there: Sequence[str] | None, empty: Sequence[str] = ()
) -> Check:
    """Judge the choice of named graphs, where the default graph cannot be used or others are wanted.

    Args:
        wanted: the graphs in the settings, all of which are used; without any, all graphs are.
        there: all graphs with triples, None if unknown.
        empty: the wanted graphs that have no triples.
    """
    load = f"Load data: kgqa graph load FILE --into {store.location}"
    unlisted = "The named graphs could not be listed."
    known = f"Existing graphs: {_listed(there)}." if there else "There are no named graphs."
    return first_case(
        (
            empty,
            failed(
                f"No triples in {_listed(empty)}. {unlisted if there is None else known}",
                "Use an existing graph: --graph-iri IRI (setting graph.iri).",
            ),
        ),
        (wanted, ok(f"{_listed(wanted)}.{_also([iri for iri in there or () if iri not in wanted])}")),
        (there is None, failed(unlisted, "Name the graph to use: --graph-iri IRI.")),
        (not there and not store.capabilities.remote, failed("The graph is empty.", load)),
        (not there, failed("The server has no named graphs except its system graphs.", f"{load} --graph-iri IRI")),
        (
            len(there or ()) > 1 and store.capabilities.system_graphs,
            failed(f"The settings do not say which graph to use. {known}", "Add --graph-iri IRI."),
        ),
        otherwise=ok(f"{_listed(there)}; the default graph is not used."),
    )


def _has_triples(store: LimitedStore, *view: str) -> bool:
    return bool(store.ask(render("any_triple", view=tuple(map(Entity, view))), fresh=True))


def _also(others: Sequence[str]) -> str:
    return f" Other graphs: {_listed(others)}." if others else ""


def _listed(iris: Sequence[str] | None) -> str:
    shown = [f"<{iri}>" for iri in iris or ()]
    more = f" and {len(shown) - SHOWN_GRAPHS} more" if len(shown) > SHOWN_GRAPHS else ""
    return ", ".join(shown[:SHOWN_GRAPHS]) + more


def check_row_cap(subject: Subject) -> Check:
    """Find the server's row cap, by requesting more rows than servers usually return."""
    store, announced, given, late = subject.store, subject.server.limits.rows, 0, ""
    for asked in rows_to_ask(subject.triples, announced):
        try:
            count = len(store.select(render("doctor_rows", view=subject.view, limit=asked), max_rows=asked, fresh=True))
        except StoreTimeout:
            late = f" {asked:,} rows did not arrive within {QUERY_SECONDS:g} s."
            break
        except RowCapMet as error:
            found = f"The server truncates results at {error.cap:,} rows. kgqa detects this and raises an error."
            few = warning(
                f"{found} Queries about hubs and names may need more rows.",
                "Raise the server's cap to 1000000. Virtuoso: kgqa virtuoso stop, then kgqa virtuoso start --row-cap "
                f"1000000; {ELSEWHERE} ResultSetMaxRows in the section [SPARQL] of virtuoso.ini.",
            )
            return few if error.cap < ROWS_NEEDED else ok(found)
        if count < asked:
            return failed(
                f"The server silently truncates results at {count:,} rows.", f"Set endpoint.row_cap = {count}."
            )
        given = asked
    cap = f"a cap of {announced:,.0f}" if announced and math.isfinite(announced) else "that it has no cap"
    says = "" if announced is None else f" The server announces {cap}."
    return first_case(
        (given, ok(f"No cap reached: {given:,} rows arrived completely.{late}{says}")),
        (late, warning(late.strip(), BUSY)),
        otherwise=skipped("The graph is too small to reach a row cap."),
    )


def rows_to_ask(triples: int | None, announced: float | None) -> list[int]:
    """Choose the numbers of rows to request, one after the other.

    No number exceeds the number of pairs of triples. If the server announces its cap, no number exceeds 100,001.
    """
    most = ROWS_ASKED[-1] if announced is None else ROWS_NEEDED + 1
    return [asked for asked in ROWS_ASKED if asked <= most and (triples is None or asked <= triples * triples)]


@dataclass(frozen=True)
class QueryEnd:
    """How a slow query ended: who ended it, after how many seconds, its count, and `how`, the server's message."""

    by: OneOf["server", "client", "finished"]
    seconds: float
    how: str = ""
    count: str | None = None


class _ShortLimitProfile(Profile):
    """A profile that always sends SLOW_SECONDS as the time limit, so the server's limit ends before the client's."""

    def time_limit(self, seconds: float) -> str:
        return super().time_limit(SLOW_SECONDS)


def check_time_limit(subject: Subject) -> Check:
    """Check what happens to a count that cannot finish within SLOW_SECONDS."""
    factors, server, triples = factors_of(subject.triples), getattr(subject, "server", None), subject.triples
    if factors > MOST_FACTORS:
        return skipped("The graph is too small for a slow query.")
    query, by_server = render("doctor_slow", view=subject.view, places=range(factors)), None
    if server:
        profile = _ShortLimitProfile(**vars(server.profile))
        with EndpointStore(server.url, access=server.access, profile=profile) as other:
            by_server = _end_of(other, query, LISTEN_SECONDS)
    return judge_time_limit(
        _end_of(subject.store, query, SLOW_SECONDS),
        by_server,
        everything=None if triples is None else triples**factors,
        limit_sent=bool(server and (server.profile.timeout_parameter or server.profile.timeout_header)),
        own=server.limits.seconds if server else None,
        granted=subject.settings.graph.timeout,
    )


def factors_of(triples: int | None) -> int:
    """Return how many triples to combine, so that there are at least 10 ** TRIPLES_COMBINED combinations."""
    if triples is None:
        return 3
    return max(2, math.ceil(TRIPLES_COMBINED / math.log10(triples))) if triples > 1 else MOST_FACTORS + 1


def judge_time_limit(
    by_client: QueryEnd,
    by_server: QueryEnd | None,
    *,
    everything: int | None,
    limit_sent: bool,
    own: float | None = None,
    granted: float = 0.0,
) -> Check:
    """Judge the time limit.

    Args:
        by_client: how the query ended under the client's limit.
        by_server: how the query ended under the server's limit alone; None for a folder.
        everything: the correct count, None if unknown.
        limit_sent: whether requests to the server contain a time limit.
        own: the server's own limit in seconds, if it announces one.
        granted: time limit of a query in the settings, in seconds.
    """
    finished = [end.count for end in (by_client, by_server) if end and end.by == "finished"]
    wrong = next((f"{count}" for count in finished if count != str(everything)), "")
    took, server = seconds_words(by_client.seconds), by_server or QueryEnd("server", 0.0)
    timeout = f"A query of more than {SLOW_SECONDS:g} s times out after {took}"
    reason = "although the request contains the limit" if limit_sent else "because requests to it contain no limit"
    found = f"{timeout}. The server itself ends it after {seconds_words(server.seconds)}: {server.how}"
    limit = f"The server's own limit is {own or 0:g} s"
    remedy = (
        f"Virtuoso: kgqa virtuoso stop, then kgqa virtuoso start --query-seconds "
        f"{math.ceil(granted) or DEFAULT_TIMEOUT:.0f}; {ELSEWHERE} MaxQueryExecutionTime in virtuoso.ini."
    )
    return first_case(
        (
            wrong,
            failed(
                f"A query that ran out of time returned a result as if it had finished: {wrong}"
                + ("." if everything is None else f" instead of {everything:,}."),
                "Set endpoint.profile to the kind of this server. Otherwise partial results are not detected.",
            ),
        ),
        (by_client.by == "finished", ok(f"The slow query for this check finished in {took}.")),
        (by_client.seconds > MOST_SECONDS, warning(f"{timeout}, which is late.", BUSY)),
        (not by_server, ok(f"{timeout}. Its worker process is stopped, and no partial result is returned.")),
        (
            server.by == "client",
            warning(
                f"{timeout}, but the server continues the query for more than {seconds_words(server.seconds)}, "
                f"{reason}.",
                f"Set a time limit on the server. {remedy}",
            ),
        ),
        (
            own is not None and own < granted,
            warning(
                f"{found} {limit}, less than graph.timeout ({granted:g} s).",
                f"Lower graph.timeout, or raise the server's limit. {remedy}",
            ),
        ),
        (own and math.isfinite(own), ok(f"{found} {limit}.")),
        otherwise=ok(found),
    )


def _end_of(store: LimitedStore | EndpointStore, query: str, seconds: float) -> QueryEnd:
    """Run the slow query with a time limit."""
    started = time.monotonic()
    try:
        rows = store.select(query, timeout=seconds, fresh=True)
    except StoreTimeout as error:
        took = time.monotonic() - started
        return QueryEnd("client" if took >= seconds else "server", took, error.message)
    count = next((getattr(value, "value", None) for row in rows for value in row), None)
    return QueryEnd("finished", time.monotonic() - started, count=count)


def check_update_rights(subject: Subject) -> Check:
    """Check whether updates are possible without a login, and with the login of the settings if there is one.

    The update changes nothing, even if the server accepts it.
    """
    server, access = subject.server, subject.server.access
    unused: Any = {name: Entity(f"urn:uuid:{uuid.uuid4()}") for name in ("subject", "relation", "object")}
    graph = subject.view[0].iri if subject.view else f"urn:uuid:{uuid.uuid4()}"

    def error_of(profile: str, access: Access) -> StoreError | None:
        with EndpointStore(server.url, writable=graph, profile=profile, access=access, timeout=MOST_SECONDS) as other:
            try:
                other.update("doctor_update", graph=graph, **unused)
            except StoreError as error:
                return error
        return None

    # the generic profile sends updates to the public URL, where anybody can send one
    error = error_of("generic", Access(patience=0.0))
    anonymous = first_case(
        (isinstance(error, REFUSALS), ok("Updates without a login are rejected.")),
        (error, skipped(f"An update could not be tried: {error}")),
        otherwise=warning(
            f"Anybody who can reach {server.url} can change the graph: an update without a login was accepted "
            "(it changed nothing).",
            'Revoke the right of the anonymous user (Virtuoso: REVOKE SPARQL_UPDATE FROM "SPARQL"), '
            "or bind the server to 127.0.0.1.",
        ),
    )
    if not access.user:
        return anonymous
    error = error_of(server.profile.name, replace(access, patience=0.0))
    who, found = f"the login of {access.user} (endpoint.user)", anonymous.found
    remedy = f"Check endpoint.user and the password in the environment variable {PASSWORD_VARIABLE}."
    outcome = f"rejected: {error}" if error else "accepted."
    return first_case(
        (
            isinstance(error, LoginRefused) and error.status == 401,
            warning(f"The server rejects {who}. {found}", f"{remedy} {anonymous.remedy}".rstrip()),
        ),
        (
            error and not isinstance(error, REFUSALS),
            warning(f"{found} An update with {who} could not be tried: {error}", anonymous.remedy),
        ),
        otherwise=replace(anonymous, found=f"{found} Updates with {who} are {outcome}"),
    )
