"""Checks of a server's limits: its row cap, its time limit, and who may update the graph."""

from __future__ import annotations

import math
import time
import uuid
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any
from typing import Literal as OneOf

from kgqa.doctor.checks import Check, failed, first_case, ok, seconds_words, skipped, warning
from kgqa.doctor.limited_store import QUERY_SECONDS
from kgqa.doctor.subject import Subject
from kgqa.errors import LoginRefused, QueryRejected, RowCapMet, StoreError, StoreTimeout
from kgqa.graph.endpoint.profiles import Profile
from kgqa.graph.endpoint.replies.json_results import decode_rows
from kgqa.graph.endpoint.replies.reply_errors import reply_error
from kgqa.graph.endpoint.requests.access import Access
from kgqa.graph.endpoint.requests.transport import Transport
from kgqa.graph.endpoint.store import PASSWORD_VARIABLE, EndpointStore
from kgqa.graph.query.templates import render
from kgqa.graph.store import DEFAULT_MAX_ROWS, DEFAULT_TIMEOUT, Rows
from kgqa.model import Entity

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
CAP_REMEDY = (
    "Raise the server's cap to 1000000. Virtuoso: kgqa virtuoso stop, then kgqa virtuoso start --row-cap 1000000; "
    f"{ELSEWHERE} ResultSetMaxRows in the section [SPARQL] of virtuoso.ini."
)
REFUSALS = (QueryRejected, LoginRefused)
"""Errors which mean that the server rejects all updates, or updates by this user."""


def check_row_cap(subject: Subject) -> Check:
    """Find the server's row cap, by requesting more rows than servers usually return."""
    store, given = subject.store, 0
    if store.server is None:
        return ok(f"No result is truncated. A result of more than {DEFAULT_MAX_ROWS:,} rows is an error.")
    announced, late = store.server.limits.rows, ""
    for asked in rows_to_ask(subject.triples, announced):
        try:
            count = len(store.select(render("doctor_rows", view=subject.view, limit=asked), max_rows=asked, fresh=True))
        except StoreTimeout:
            late = f" {asked:,} rows did not arrive within {QUERY_SECONDS:g} s."
            break
        except RowCapMet as error:
            found = f"The server truncates results at {error.cap:,} rows. kgqa detects this and raises an error."
            if error.cap >= ROWS_NEEDED:
                return ok(found)
            return warning(f"{found} Queries about hubs and names may need more rows.", CAP_REMEDY)
        if count < asked:
            return failed(
                f"The server silently truncates results at {count:,} rows.", f"Set endpoint.row_cap = {count}."
            )
        given = asked
    if not given:
        return warning(late.strip(), BUSY) if late else skipped("The graph is too small to reach a row cap.")
    found = f"No cap reached: {given:,} rows arrived completely.{late}"
    if announced is not None:
        cap = f"a cap of {announced:,.0f}" if math.isfinite(announced) else "that it has no cap"
        found += f" The server announces {cap}."
    return ok(found)


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
    factors, server, triples = factors_of(subject.triples), subject.store.server, subject.triples
    if factors > MOST_FACTORS:
        return skipped("The graph is too small for a slow query.")
    query = render("doctor_slow", view=subject.view, places=range(factors))
    by_server = _ended_by_server(server, subject.store.access, query) if server else None
    started = time.monotonic()
    try:
        by_client = _finished(subject.store.select(query, timeout=SLOW_SECONDS, fresh=True), started)
    except StoreTimeout:
        by_client = QueryEnd("client", time.monotonic() - started)
    return judge_time_limit(
        by_client,
        by_server,
        everything=None if triples is None else triples**factors,
        limit_sent=bool(server and (server.profile.timeout_parameter or server.profile.timeout_header)),
        own=server.limits.seconds if server else None,
        granted=subject.settings["graph.timeout"],
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
    for end in (by_client, by_server):
        if end and end.by == "finished" and end.count != str(everything):
            wanted = "" if everything is None else f" instead of {everything:,}"
            return failed(
                f"A query that ran out of time returned a result as if it had finished: {end.count}{wanted}.",
                "Set endpoint.profile to the kind of this server. Otherwise partial results are not detected.",
            )
    took, server = seconds_words(by_client.seconds), by_server or QueryEnd("server", 0.0)
    timeout = f"A query of more than {SLOW_SECONDS:g} s times out after {took}"
    reason = "although the request contains the limit" if limit_sent else "because requests to it contain no limit"
    continues = f"the server continues the query for more than {seconds_words(server.seconds)}, {reason}."
    found = f"{timeout}. The server itself ends it after {seconds_words(server.seconds)}: {server.how}"
    limit = f"The server's own limit is {own or 0:g} s"
    remedy = (
        f"Virtuoso: kgqa virtuoso stop, then kgqa virtuoso start --query-seconds "
        f"{math.ceil(granted) or DEFAULT_TIMEOUT:.0f}; {ELSEWHERE} MaxQueryExecutionTime in virtuoso.ini."
    )
    return first_case(
        (by_client.by == "finished", ok(f"The slow query for this check finished in {took}.")),
        (by_client.seconds > MOST_SECONDS, warning(f"{timeout}, which is late.", BUSY)),
        (not by_server, ok(f"{timeout}. Its worker process is stopped, and no partial result is returned.")),
        (server.by == "client", warning(f"{timeout}, but {continues}", f"Set a time limit on the server. {remedy}")),
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


def _finished(rows: Rows, started: float) -> QueryEnd:
    count = next((getattr(value, "value", None) for row in rows for value in row), None)
    return QueryEnd("finished", time.monotonic() - started, count=count)


def _ended_by_server(server: EndpointStore, access: Access, query: str) -> QueryEnd:
    profile = _ShortLimitProfile(**vars(server.profile))
    started = time.monotonic()
    try:
        with (
            closing(Transport(server.url, access, profile)) as transport,
            transport.query(query, is_ask=False, seconds=LISTEN_SECONDS) as reply,
        ):
            body = b"".join(reply.chunks)
    except StoreTimeout:
        return QueryEnd("client", time.monotonic() - started)
    took = time.monotonic() - started
    error = reply_error(reply.status, reply.headers, body.decode("utf-8", "replace"), profile, server.url)
    if isinstance(error, StoreTimeout):
        return QueryEnd("server", took, error.message)
    if error:
        raise error
    rows = decode_rows([body], max_rows=1)
    return _finished(rows, started) if len(rows) else QueryEnd("server", took, "A result without rows.")


def check_update_rights(subject: Subject) -> Check:
    """Check whether updates are possible without a login, and with the login of the settings if there is one.

    The update changes nothing, even if the server accepts it.
    """
    server, access = subject.store.server, subject.store.access
    if server is None:
        return ok("A graph is opened for reading only; only kgqa graph load writes to it.")
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
    if isinstance(error, LoginRefused) and error.status == 401:
        remedy = f"Check endpoint.user and the password in the environment variable {PASSWORD_VARIABLE}."
        return warning(f"The server rejects {who}. {found}", f"{remedy} {anonymous.remedy}".rstrip())
    if error and not isinstance(error, REFUSALS):
        return replace(anonymous, verdict="warning", found=f"{found} An update with {who} could not be tried: {error}")
    return replace(anonymous, found=f"{found} Updates with {who} are {f'rejected: {error}' if error else 'accepted.'}")
