"""Checks of a server's limits: its row cap, its time limit, and who may update the graph."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import Literal as OneOf

from kgqa.doctor.checks import Check, failed, ok, seconds_words, skipped, warning
from kgqa.doctor.limited_store import QUERY_SECONDS, LimitedStore
from kgqa.doctor.subject import Subject
from kgqa.errors import LoginRefused, PartialResult, QueryRejected, StoreError, StoreTimeout, StoreUnavailable
from kgqa.graph.endpoint.profiles import Profile
from kgqa.graph.endpoint.replies.json_results import decode_rows
from kgqa.graph.endpoint.replies.reply_errors import reply_error
from kgqa.graph.endpoint.requests.access import Access
from kgqa.graph.endpoint.requests.transport import Transport
from kgqa.graph.endpoint.store import PASSWORD_VARIABLE, EndpointStore
from kgqa.graph.query.templates import render
from kgqa.graph.store import DEFAULT_MAX_ROWS, DEFAULT_TIMEOUT, Rows, single_count
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
_LIMIT = (
    "Virtuoso: kgqa virtuoso stop, then kgqa virtuoso start --query-seconds {seconds:.0f}; "
    f"{ELSEWHERE} MaxQueryExecutionTime in virtuoso.ini."
)
LOGIN_REMEDY = f"Check endpoint.user and the password in the environment variable {PASSWORD_VARIABLE}."


def check_row_cap(subject: Subject) -> Check:
    """Find the server's row cap, by requesting more rows than servers usually return."""
    store = subject.store
    if store.server is None:
        return ok(f"No result is truncated. A result of more than {DEFAULT_MAX_ROWS:,} rows is an error.")
    given, announced = 0, store.server.limits.rows
    for asked in rows_to_ask(subject.triples, announced):
        try:
            cap, noticed = measure_cap(store, subject.view, asked, known_cap=subject.settings["endpoint.row_cap"])
        except StoreTimeout:
            return judge_no_cap(given, late=True, announced=announced)
        if cap is not None:
            return judge_cap(cap, noticed=noticed)
        given = asked
    return judge_no_cap(given, late=False, announced=announced)


def rows_to_ask(triples: int | None, announced: float | None) -> list[int]:
    """Choose the numbers of rows to request, one after the other.

    No number exceeds the number of pairs of triples. If the server announces its cap, no number exceeds 100,001.
    """
    most = ROWS_ASKED[-1] if announced is None else ROWS_NEEDED + 1
    return [asked for asked in ROWS_ASKED if asked <= most and (triples is None or asked <= triples * triples)]


def judge_no_cap(given: int, *, late: bool, announced: float | None) -> Check:
    """Judge a server whose row cap was not reached.

    Args:
        given: the largest number of rows that arrived completely.
        late: whether a request for more rows timed out.
        announced: the cap that the server announces; infinite if it announces that there is none.
    """
    late_words = f"did not arrive within {QUERY_SECONDS:g} s."
    if not given:
        too_small = skipped("The graph is too small to reach a row cap.")
        return warning(f"{ROWS_ASKED[0]:,} rows {late_words}", BUSY) if late else too_small
    found = f"No cap reached: {given:,} rows arrived completely." + (f" More rows {late_words}" if late else "")
    if announced is not None:
        cap = f"a cap of {announced:,.0f}" if math.isfinite(announced) else "that it has no cap"
        found += f" The server announces {cap}."
    return ok(found)


def measure_cap(
    store: LimitedStore, view: Sequence[Entity], asked: int, *, known_cap: int | None = None
) -> tuple[int | None, bool]:
    """Request `asked` rows, with a query whose result has at least that many rows.

    Returns:
        The number of rows received, or None if all rows were received; and whether kgqa detects the truncation.

    Raises:
        StoreTimeout, StoreUnavailable, QueryRejected: see `Store`. PartialResult: the result is incomplete for a
        different reason.
    """
    query = render("doctor_rows", view=view, limit=asked)
    try:
        count = len(store.select(query, max_rows=asked, fresh=True))
    except PartialResult:
        headers = store.reply_headers(query)
        announced = [headers[name].strip() for name in store.profile.truncation_headers if name in headers]
        known = [cap for cap in (*store.profile.row_caps, known_cap or 0) if 0 < cap < asked]
        found = int(announced[0]) if announced and announced[0].isdigit() else max(known, default=None)
        if found is None:
            raise
        return found, True
    return (None, False) if count >= asked else (count, False)


def judge_cap(cap: int, *, noticed: bool) -> Check:
    """Judge a row cap; `noticed`: whether kgqa detects truncated results."""
    if not noticed:
        return failed(f"The server silently truncates results at {cap:,} rows.", f"Set endpoint.row_cap = {cap}.")
    found = f"The server truncates results at {cap:,} rows. kgqa detects this and raises an error."
    if cap < ROWS_NEEDED:
        return warning(f"{found} Queries about hubs and names may need more rows.", CAP_REMEDY)
    return ok(found)


@dataclass(frozen=True)
class QueryEnd:
    """How a slow query ended: who ended it, after how many seconds, its count, and `how`, the server's signal."""

    by: OneOf["server", "client", "finished"]
    seconds: float
    how: str = ""
    count: int | None = None


@dataclass(frozen=True)
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
    return judge_time_limit(
        _ended_by_client(subject.store, query),
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
    for ended in (by_client, by_server):
        if ended and ended.by == "finished" and (ended.count is None or ended.count != everything):
            wanted = "" if everything is None else f" instead of {everything:,}"
            return failed(
                f"A query that ran out of time returned a result as if it had finished: {ended.count}{wanted}.",
                "Set endpoint.profile to the kind of this server. Otherwise partial results are not detected.",
            )
    if by_client.by == "finished":
        return ok(f"The slow query for this check finished in {seconds_words(by_client.seconds)}.")
    timeout = f"A query of more than {SLOW_SECONDS:g} s times out after {seconds_words(by_client.seconds)}"
    if by_client.seconds > MOST_SECONDS:
        return warning(f"{timeout}, which is late.", BUSY)
    if by_server is None:
        return ok(f"{timeout}. Its worker process is stopped, and no partial result is returned.")
    if by_server.by == "client":
        reason = "although the request contains the limit" if limit_sent else "because requests to it contain no limit"
        return warning(
            f"{timeout}, but the server continues the query for more than {seconds_words(by_server.seconds)}, "
            f"{reason}.",
            f"Set a time limit on the server. {limit_remedy(granted)}",
        )
    found = f"{timeout}. The server itself ends it after {seconds_words(by_server.seconds)}: {by_server.how}"
    if own is not None and own < granted:
        found += f" The server's own limit is {own:g} s, less than graph.timeout ({granted:g} s)."
        remedy = f"Lower graph.timeout, or raise the server's limit. {limit_remedy(granted)}"
        return warning(found, remedy)
    return ok(found + (f" The server's own limit is {own:g} s." if own and math.isfinite(own) else ""))


def limit_remedy(seconds: float) -> str:
    """Explain how to set a server's time limit."""
    return _LIMIT.format(seconds=math.ceil(seconds) or DEFAULT_TIMEOUT)


def _ended_by_client(store: LimitedStore, query: str) -> QueryEnd:
    started = time.monotonic()
    try:
        rows = store.select(query, timeout=SLOW_SECONDS, fresh=True)
    except StoreTimeout:
        return QueryEnd("client", time.monotonic() - started)
    return QueryEnd("finished", time.monotonic() - started, count=_count(rows))


def _ended_by_server(server: EndpointStore, access: Access, query: str) -> QueryEnd:
    profile = _ShortLimitProfile(**{field.name: getattr(server.profile, field.name) for field in fields(Profile)})
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
        header = next(
            (f"{name}: {reply.headers[name]}" for name in profile.timeout_headers if name in reply.headers), ""
        )
        return QueryEnd("server", took, f"{header or f'HTTP {reply.status}'}.")
    if error is not None:
        raise error
    rows = decode_rows([body], max_rows=1)
    return (
        QueryEnd("finished", took, count=_count(rows))
        if len(rows)
        else QueryEnd("server", took, "a result without rows.")
    )


def _count(rows: Rows) -> int | None:
    try:
        return single_count(rows)
    except StoreUnavailable:
        return None


def check_update_rights(subject: Subject) -> Check:
    """Check whether updates are possible without a login, and with the login of the settings if there is one.

    The update changes nothing, even if the server accepts it.
    """
    server, access = subject.store.server, subject.store.access
    if server is None:
        return ok("A graph is opened for reading only; only kgqa graph load writes to it.")
    url, graph = server.url, subject.view[0] if subject.view else _new_iri()
    values = {"subject": _new_iri(), "relation": _new_iri(), "object": _new_iri()}

    def tried(profile: str, access: Access) -> StoreError | None:
        with EndpointStore(url, writable=graph.iri, profile=profile, access=access) as other:
            try:
                other.update("doctor_update", graph=graph.iri, timeout=MOST_SECONDS, **values)
            except StoreError as error:
                return error
        return None

    # the generic profile sends updates to the public URL, where anybody can send one
    anonymous = judge_anonymous(url, tried("generic", Access(patience=0.0)))
    if not access.user:
        return anonymous
    return judge_login(anonymous, tried(server.profile.name, replace(access, patience=0.0)), access.user)


def _new_iri() -> Entity:
    return Entity(f"urn:uuid:{uuid.uuid4()}")


def judge_anonymous(url: str, error: StoreError | None) -> Check:
    """Judge an update without a login; `error` is None if the server accepted it."""
    if error is None:
        return warning(
            f"Anybody who can reach {url} can change the graph: an update without a login was accepted "
            "(it changed nothing).",
            'Revoke the right of the anonymous user (Virtuoso: REVOKE SPARQL_UPDATE FROM "SPARQL"), '
            "or bind the server to 127.0.0.1.",
        )
    refused = ok("Updates without a login are rejected.")
    return refused if is_refusal(error) else skipped(f"An update could not be tried: {error}")


def judge_login(anonymous: Check, error: StoreError | None, user: str) -> Check:
    """Add the result of an update with a login to the result of the same update without a login."""
    who, found = f"the login of {user} (endpoint.user)", anonymous.found
    if isinstance(error, LoginRefused) and error.status == 401:
        return warning(f"The server rejects {who}. {found}", f"{LOGIN_REMEDY} {anonymous.remedy}".rstrip())
    if error is None or is_refusal(error):
        outcome = "accepted." if error is None else f"rejected: {error}"
        return replace(anonymous, found=f"{found} Updates with {who} are {outcome}")
    return replace(anonymous, verdict="warning", found=f"{found} An update with {who} could not be tried: {error}")


def is_refusal(error: StoreError) -> bool:
    """Return whether an error means that the server rejects all updates, or updates by this user."""
    return isinstance(error, (QueryRejected, LoginRefused))
