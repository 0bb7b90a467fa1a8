"""Profiles of the kinds of SPARQL servers, read from endpoints.toml, and the limits that a server sets itself."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Literal as OneOf
from urllib.parse import urlsplit

import msgspec

from kgqa.errors import PartialResult, SettingsError, StoreUnavailable
from kgqa.graph.endpoint.results import decode_rows
from kgqa.model import Literal, Value

FIXED_ORDER_MARK = "# from the first line to the last\n"
"""First line of a template in queries/ that lists its patterns in the best join order, starting from few nodes."""


@dataclass(frozen=True)
class Profile:
    """A kind of SPARQL server.

    Attributes:
        server: regular expression for the Server header of its replies. hosts: hosts known to be of this kind.
        allows_scans: whether kgqa may send queries that read all triples.
        system_graphs: named graphs that belong to the server; with any, every query must name its graphs.
        timeout_parameter, timeout_header: URL parameter or header in which a query's time limit is sent.
        timeout_unit: unit of the time limit. min_timeout: the shortest time limit that is sent, in seconds.
        truncates_on_timeout: whether the server silently sends an incomplete result at the time limit. kgqa sends a
            time limit to such a server only if the server's own limit is known to be no shorter.
        limits_query: name of a template in queries/ that asks for the server's own limits.
        limit_error: regular expression for the error message that a time limit is too long; its group `seconds` is the
            longest limit that the server allows.
        timeout_headers, timeout_texts: headers and parts of error messages that mean that the server ran out of time.
        truncation_headers, row_caps: headers and numbers of rows that mean that the result was truncated.
        denied_texts: parts of error messages that mean that the user lacks a permission.
        retry_texts: parts of error messages after which the same query may succeed.
        full_text: kind of full-text search, see `Capabilities`.
        fixed_order: text put before queries that begin with FIXED_ORDER_MARK, so that the server joins patterns in the
            order in which they are written.
        update_path: URL path for updates; empty if updates have the same path as queries.
        concurrency: default number of concurrent requests.
        rate: default number of requests per second, 0 for no limit.
    """

    name: str
    title: str
    server: str = ""
    hosts: tuple[str, ...] = ()
    allows_scans: bool = True
    system_graphs: tuple[str, ...] = ()
    timeout_parameter: str = ""
    timeout_header: str = ""
    timeout_unit: OneOf["ms", "s-suffix"] = "ms"
    min_timeout: float = 0.0
    truncates_on_timeout: bool = False
    limits_query: str = ""
    limit_error: str = ""
    timeout_headers: tuple[str, ...] = ()
    truncation_headers: tuple[str, ...] = ()
    row_caps: tuple[int, ...] = ()
    timeout_texts: tuple[str, ...] = ()
    denied_texts: tuple[str, ...] = ()
    retry_texts: tuple[str, ...] = ()
    full_text: OneOf["", "virtuoso"] = ""
    fixed_order: str = ""
    update_path: str = ""
    concurrency: int = 4
    rate: float = 0.0

    def prepared(self, query: str) -> str:
        """Return a query in the form in which it is sent to this server."""
        return f"{self.fixed_order}\n{query}" if self.fixed_order and query.startswith(FIXED_ORDER_MARK) else query

    def time_limit(self, seconds: float) -> str:
        """Format a time limit for this server, rounded up, so that the server does not give up before kgqa."""
        seconds = max(seconds, self.min_timeout)
        return f"{max(1, math.ceil(seconds))}s" if self.timeout_unit == "s-suffix" else str(math.ceil(seconds * 1000))


@lru_cache(maxsize=64)
def reply_signs(profile: Profile, kind: str) -> frozenset[str]:
    """Return the headers or texts, in lower case, that mark a reply as an error or as an incomplete result.

    Those of all profiles are returned, because a proxy can hide the kind of server.

    Args:
        kind: the attribute of profiles that lists them, such as `timeout_texts`.
    """
    return frozenset(sign.lower() for each in (profile, *profiles().values()) for sign in getattr(each, kind))


@lru_cache(maxsize=1)
def profiles() -> dict[str, Profile]:
    """Read all profiles of endpoints.toml, by name."""
    tables = tomllib.loads((files("kgqa.graph.endpoint") / "endpoints.toml").read_text(encoding="utf-8"))
    return {name: msgspec.convert({"name": name, **table}, Profile) for name, table in tables.items()}


def profile_named(name: str | Profile) -> Profile:
    """Return the profile with this name; a profile is returned unchanged.

    Raises:
        SettingsError: there is no profile with this name.
    """
    known = profiles()
    if isinstance(name, str) and name not in known:
        raise SettingsError(f"Unknown endpoint profile {name!r}.", f"Choose auto or one of {', '.join(known)}.")
    return known[name] if isinstance(name, str) else name


def profile_of(url: str, server_header: str = "") -> Profile:
    """Return the profile for the host of an address, else for a Server header; `generic` if no profile fits."""
    host, known = (urlsplit(url).hostname or "").lower(), profiles().values()
    by_host = (each for each in known if host in each.hosts)
    by_header = (each for each in known if each.server and re.search(each.server, server_header, re.IGNORECASE))
    return next(by_host, None) or next(by_header, profiles()["generic"])


@dataclass(frozen=True)
class ServerLimits:
    """A server's own limits on seconds per query and rows per result; None means unknown, `math.inf` means no limit.

    kgqa needs these limits because of Virtuoso. If a query is sent with a time limit, Virtuoso stops at the limit and
    sends the rows found so far, with status 200 and, unless the query aggregates, without any sign that rows are
    missing (measured: 8 rows of many thousand). Virtuoso stops at its own limit if that is shorter than the limit sent.
    Therefore a reply that arrives before the limit sent by kgqa is certain to be complete only if the server's own
    limit is known to be at least as long. A query sent without a limit ends with an error at the server's own limit.
    """

    seconds: float | None = None
    rows: float | None = None

    def permit(self, seconds: float, profile: Profile) -> bool:
        """Return whether a time limit of `seconds` may be sent with a query."""
        if not (profile.timeout_parameter or profile.timeout_header):
            return False
        if self.seconds is None:
            return not profile.truncates_on_timeout
        return max(seconds, profile.min_timeout) <= self.seconds


UNKNOWN = ServerLimits()


def read_limits(body: bytes) -> ServerLimits:
    """Read the reply to a profile's `limits_query`: one row of seconds and rows; unbound or 0 means no limit.

    Returns:
        The limits; UNKNOWN if the reply has any other form.
    """
    try:
        (row,) = decode_rows(body, max_rows=1, variables=("seconds", "rows"))
        return ServerLimits(*map(_limit, row))
    except (PartialResult, StoreUnavailable, ValueError):
        return UNKNOWN


def limit_in_error(profile: Profile, status: int, body: bytes) -> float | None:
    """Return the server's own limit in seconds from the error that refuses a longer limit; None for other replies."""
    if not profile.limit_error or status < 400:
        return None
    match = re.search(profile.limit_error, body.decode("utf-8", "replace"))
    return float(match["seconds"]) if match else None


def _limit(value: Value | None) -> float | None:
    if not isinstance(value, Literal):
        return math.inf
    if not re.fullmatch(r"[0-9]{1,15}", value.value.strip()):
        return None
    return float(value.value) or math.inf
