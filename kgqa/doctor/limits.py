"""What a server does at its limits: how many rows it gives, what becomes of a query that takes too long, and whether
anybody may write to it.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal as OneOf

from kgqa.doctor.checks import Check, seconds_words
from kgqa.doctor.store import QUERY_SECONDS, HurriedEndpoint, HurriedFolder
from kgqa.errors import LoginRefused, PartialResult, QueryRejected, StoreError, StoreTimeout
from kgqa.graph.endpoint.profiles import Profile
from kgqa.graph.endpoint.replies.json_results import decode_rows
from kgqa.graph.endpoint.replies.reply_errors import reply_error
from kgqa.graph.endpoint.requests.access import Access
from kgqa.graph.endpoint.requests.transport import Transport
from kgqa.graph.endpoint.store import PASSWORD_VARIABLE, EndpointStore
from kgqa.graph.query.templates import render
from kgqa.graph.store import DEFAULT_MAX_ROWS, DEFAULT_TIMEOUT, Store
from kgqa.model import Entity

ROWS_ASKED = (10_001, 100_001, 1_048_577)
"""One more than the caps that servers usually have."""
ROWS_NEEDED = 100_000
"""The names of a graph, or the ends of a path, are soon so many."""
SLOW_SECONDS = 1.0
MOST_SECONDS = 3 * SLOW_SECONDS
LISTEN_SECONDS = 12.0
"""How long a server that was told SLOW_SECONDS is listened to: some end a query only some seconds after their limit."""
TRIPLES_COMBINED = 12
"""Decimal digits of the number of combinations that no server counts within SLOW_SECONDS."""
MOST_FACTORS = 6
RIGHTS = "update rights"
BUSY = "See what keeps the server busy, and run kgqa doctor again."
ELSEWHERE = "on a server not started by kgqa:"
CAP_REMEDY = (
    "Raise the server's cap to 1000000. Virtuoso: kgqa virtuoso stop, then kgqa virtuoso start --row-cap 1000000; "
    f"{ELSEWHERE} ResultSetMaxRows in the section [SPARQL] of virtuoso.ini."
)
_LIMIT = f"Virtuoso: kgqa virtuoso stop, then kgqa virtuoso start --query-seconds {{seconds:.0f}}; {ELSEWHERE} MaxQueryExecutionTime in virtuoso.ini."
LOGIN_REMEDY = f"Look at endpoint.user, and at the password in {PASSWORD_VARIABLE}."


def check_row_cap(
    store: HurriedEndpoint | HurriedFolder, view: Sequence[Entity], *, triples: int | None, known_cap: int | None
) -> Check:
    """At how many rows results are cut, by asking for more of them than servers usually give.

    Args:
        triples: of the graph: one with few has no such result. known_cap: the setting endpoint.row_cap.

    Raises:
        StoreUnavailable, QueryRejected: see `Store`.
    """
    if isinstance(store, HurriedFolder):
        found = f"None but our own: a result of more than {DEFAULT_MAX_ROWS:,} rows is an error, never a part."
        return Check("row cap", "ok", found)
    given, late = 0, False
    for asked in rows_to_ask(triples, store.limits.rows):
        try:
            cap, noticed = measured_cap(store, view, asked, known_cap=known_cap)
        except StoreTimeout:
            late = True
            break
        if cap is not None:
            return judge_cap(cap, noticed=noticed)
        given = asked
    return judge_no_cap(given, late=late, said=store.limits.rows)


def rows_to_ask(triples: int | None, said: float | None) -> list[int]:
    """How many rows to ask for, one after the other: not more than there are pairs of triples, and not a million where
    the server itself says where it cuts.
    """
    most = ROWS_ASKED[-1] if said is None else ROWS_NEEDED + 1
    return [asked for asked in ROWS_ASKED if asked <= most and (triples is None or asked <= triples * triples)]


def judge_no_cap(given: int, *, late: bool, said: float | None) -> Check:
    """The verdict where no cap was met: so many rows came whole, and more of them, where `late`, not in time."""
    if not given and late:
        return Check("row cap", "warning", f"{ROWS_ASKED[0]:,} rows did not come within {QUERY_SECONDS:g} s.", BUSY)
    if not given:
        return Check("row cap", "skipped", "The graph has too few triples for a result that would be cut.")
    found = f"None met: {given:,} rows came whole."
    if late:
        found += f" More did not come within {QUERY_SECONDS:g} s."
    if said is not None:
        found += (
            f" The server says that it cuts at {said:,.0f}." if math.isfinite(said) else " It says that it has none."
        )
    return Check("row cap", "ok", found)


def measured_cap(
    store: HurriedEndpoint, view: Sequence[Entity], asked: int, *, known_cap: int | None = None
) -> tuple[int | None, bool]:
    """The rows that come where `asked` are wanted and there are as many, None where all of them come; and whether kgqa
    notices that they are not all.

    Raises:
        StoreTimeout, StoreUnavailable, QueryRejected: see `Store`. PartialResult: cut for another reason.
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
    """The verdict on a cap of so many rows; `noticed`: whether kgqa makes an error of a result that was cut."""
    if not noticed:
        found = f"Results are cut at {cap:,} rows and nothing says so: a part cannot be told from a whole."
        return Check("row cap", "failed", found, f"Set endpoint.row_cap = {cap}.")
    found = f"Results are cut at {cap:,} rows, which kgqa notices and calls an error."
    if cap < ROWS_NEEDED:
        return Check("row cap", "warning", f"{found} Hubs and the names of a graph have more.", CAP_REMEDY)
    return Check("row cap", "ok", found)


@dataclass(frozen=True)
class Ended:
    """How a query that takes too long came to its end. `how`: its own message, or what was sent instead of one."""

    by: OneOf["server", "client", "finished"]
    seconds: float
    how: str = ""
    count: int | None = None


@dataclass(frozen=True)
class _Hasty(Profile):
    """A profile that gives the server SLOW_SECONDS, however long we wait: else we would give up first, and not hear
    what it says.
    """

    def time_limit(self, seconds: float) -> str:
        return super().time_limit(SLOW_SECONDS)


def check_time_limit(
    store: HurriedEndpoint | HurriedFolder,
    view: Sequence[Entity],
    *,
    triples: int | None,
    granted: float,
) -> Check:
    """What becomes of a count that cannot be finished within SLOW_SECONDS.

    Args:
        triples: of the graph, None where even they could not be counted.
        granted: seconds that the settings grant a query.

    Raises:
        StoreUnavailable, QueryRejected: see `Store`.
    """
    factors = factors_of(triples)
    if factors > MOST_FACTORS:
        return Check("time limit", "skipped", "The graph is too small for a query that takes long.")
    query = render("doctor_slow", view=view, places=range(factors))
    heard = _heard_from_server(store, query) if isinstance(store, HurriedEndpoint) else None
    kept = _kept_by_us(store, query)
    everything = None if triples is None else triples**factors
    own = store.limits.seconds if isinstance(store, HurriedEndpoint) else None
    return judge_time_limit(kept, heard, everything=everything, told=_told(store), own=own, granted=granted)


def factors_of(triples: int | None) -> int:
    """Of how many triples combinations are counted, so that there are 10 ** TRIPLES_COMBINED of them or more."""
    if triples is None:
        return 3
    return max(2, math.ceil(TRIPLES_COMBINED / math.log10(triples))) if triples > 1 else MOST_FACTORS + 1


def judge_time_limit(
    kept: Ended,
    heard: Ended | None,
    *,
    everything: int | None,
    told: bool,
    own: float | None = None,
    granted: float = 0.0,
) -> Check:
    """The verdict on the time limit.

    Args:
        kept: how the query ended with our own limit. heard: how with the server's alone; None for a folder.
        everything: what the count would be. told: whether the server is told a limit at all.
        own: seconds that the server grants by itself, where it says so; granted: those that the settings grant.
    """
    name = "time limit"
    for ended in (kept, heard):
        if ended and ended.by == "finished" and (ended.count is None or ended.count != everything):
            wanted = "" if everything is None else f", of {everything:,}"
            return Check(
                name,
                "failed",
                f"A query that ran out of time came back as if it had finished: it counted {ended.count}{wanted}.",
                "Set endpoint.profile to the kind of server this is; without it such answers cannot be told from whole ones.",
            )
    if kept.by == "finished":
        return Check(name, "ok", f"The slowest query there is was finished in {seconds_words(kept.seconds)}.")
    ours = f"A query of more than {SLOW_SECONDS:g} s ends as a timeout after {seconds_words(kept.seconds)}"
    if kept.seconds > MOST_SECONDS:
        return Check(name, "warning", f"{ours}, which is late.", BUSY)
    if heard is None:
        return Check(name, "ok", f"{ours}; its worker is ended, and no part of a result is given.")
    if heard.by == "client":
        told_words = "though it is told the limit" if told else "as it is told no limit"
        return Check(
            name,
            "warning",
            f"{ours} here, but the server goes on with it for {seconds_words(heard.seconds)} and more, {told_words}.",
            f"Give the server a limit of its own. {limit_remedy(granted)}",
        )
    found = f"{ours}; the server ends it by itself after {seconds_words(heard.seconds)}: {heard.how}"
    if own is not None and own < granted:
        found += f" By itself it grants a query {own:g} s, the settings {granted:g} s (graph.timeout)."
        remedy = f"Lower graph.timeout, or have the server grant more. {limit_remedy(granted)}"
        return Check(name, "warning", found, remedy)
    return Check(name, "ok", found + (f" Its own limit is {own:g} s." if own and math.isfinite(own) else ""))


def limit_remedy(seconds: float) -> str:
    """How a server is given a limit of so many seconds."""
    return _LIMIT.format(seconds=math.ceil(seconds) or DEFAULT_TIMEOUT)


def _kept_by_us(store: Store, query: str) -> Ended:
    started = time.monotonic()
    try:
        rows = store.select(query, timeout=SLOW_SECONDS, fresh=True)
    except StoreTimeout as error:
        return Ended("client", time.monotonic() - started, str(error))
    return Ended("finished", time.monotonic() - started, count=_count(rows))


def _heard_from_server(store: HurriedEndpoint, query: str) -> Ended:
    hasty = _Hasty(**{field.name: getattr(store.profile, field.name) for field in fields(Profile)})
    transport = Transport(store.url, store.access, hasty)
    started = time.monotonic()
    try:
        with transport.query(query, asks=False, seconds=LISTEN_SECONDS) as reply:
            body = b"".join(reply.chunks)
            error = reply_error(reply.status, reply.headers, body.decode("utf-8", "replace"), hasty, store.url)
            took = time.monotonic() - started
            if error is None:
                rows = decode_rows([body], max_rows=1)
                return (
                    Ended("finished", took, count=_count(rows))
                    if len(rows)
                    else Ended("server", took, "it sends a result without a row.")
                )
            if not isinstance(error, StoreTimeout):
                raise error
            header = next((name for name in hasty.timeout_headers if name in reply.headers), None)
            said = f"{header}: {reply.headers[header]}" if header else f"HTTP {reply.status}"
            return Ended("server", took, f"it says so by {said}.")
    except StoreTimeout as error:
        return Ended("client", time.monotonic() - started, str(error))
    finally:
        transport.close()


def _told(store: Store) -> bool:
    profile = store.profile if isinstance(store, HurriedEndpoint) else None
    return bool(profile and (profile.timeout_parameter or profile.timeout_header))


def _count(rows) -> int | None:
    try:
        ((value,),) = rows
        return int(float(value.value))
    except (ValueError, AttributeError, TypeError):
        return None


def check_update_rights(store: HurriedEndpoint | HurriedFolder, view: Sequence[Entity]) -> Check:
    """Whether somebody who has not logged in may change the graph, by an update that changes nothing wherever it is
    carried out; and, where the settings have a login, whether the server takes that.
    """
    if isinstance(store, HurriedFolder):
        return Check(RIGHTS, "ok", "A folder is open for reading only; kgqa graph load alone writes to it.")
    graph, subject, relation, object_ = (Entity(f"urn:uuid:{uuid.uuid4()}") for _ in range(4))
    graph = view[0] if view else graph
    update = render("doctor_update", graph=graph, subject=subject, relation=relation, object=object_)

    def tried(profile: str, access: Access) -> StoreError | None:
        with EndpointStore(store.url, writable=graph.iri, profile=profile, access=access) as other:
            try:
                other.update(update, timeout=MOST_SECONDS)
            except StoreError as error:
                return error
        return None

    # the plain profile has no address of its own for updates: it is the address open to all that matters
    anonymous = judge_anonymous(store.url, tried("generic", Access(patience=0.0)))
    if not store.access.user:
        return anonymous
    return judge_login(anonymous, tried(store.profile.name, replace(store.access, patience=0.0)), store.access.user)


def judge_anonymous(url: str, error: StoreError | None) -> Check:
    """The verdict on an update without a login: `error` is what became of it, None where it was taken."""
    if error is None:
        found = (
            f"Anybody who reaches {url} may change the graph: an update without a login was taken (it changed nothing)."
        )
        remedy = 'Take the right from the anonymous user (Virtuoso: REVOKE SPARQL_UPDATE FROM "SPARQL"), or bind to 127.0.0.1.'
        return Check(RIGHTS, "warning", found, remedy)
    if is_refusal(error):
        return Check(RIGHTS, "ok", "Without a login updates are refused.")
    return Check(RIGHTS, "skipped", f"An update could not be tried: {error}")


def judge_login(anonymous: Check, error: StoreError | None, user: str) -> Check:
    """The verdict on the same update with a login, added to that without one."""
    who = f"the login of {user} (endpoint.user)"
    if error is None:
        return replace(anonymous, found=f"{anonymous.found} With {who} updates are taken.")
    if isinstance(error, LoginRefused) and error.status == 401:
        remedy = f"{LOGIN_REMEDY} {anonymous.remedy}".rstrip()
        return Check(RIGHTS, "warning", f"The server refuses {who}. {anonymous.found}", remedy)
    if is_refusal(error):
        return replace(anonymous, found=f"{anonymous.found} With {who} updates are refused: {error}")
    found = f"{anonymous.found} With {who} an update could not be tried: {error}"
    return replace(anonymous, verdict="warning", found=found)


def is_refusal(error: StoreError) -> bool:
    """Whether an update was refused for what it is or who sent it; otherwise nobody knows what would become of it."""
    return isinstance(error, (QueryRejected, LoginRefused))
