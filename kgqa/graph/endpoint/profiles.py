"""Profiles of the kinds of SPARQL servers, read from endpoints.toml."""

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

from kgqa.errors import SettingsError

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
        limits_query: name of a template in queries/ that asks for the server's own time limit, in seconds; for a server
            that silently sends an incomplete result at the time limit. kgqa sends it a time limit only if its own limit
            is known to be no shorter.
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

    def time_limit(self, seconds: float, longest: float | None) -> str:
        """Format the time limit of a query for this server, rounded up: the server must not give up before kgqa.

        If a query is sent with a time limit, Virtuoso stops at the limit and sends the rows found so far, with status
        200 and, unless the query aggregates, without any sign that rows are missing (measured: 8 rows of many
        thousand). It stops at its own limit if that is shorter. Therefore a reply that arrives before the limit sent by
        kgqa is certain to be complete only if the server's own limit is known to be at least as long. A query sent
        without a limit ends with an error at the server's own limit.

        Args:
            longest: the server's own limit in seconds; None if it is not known.

        Returns:
            The limit; empty if none may be sent.
        """
        seconds = max(seconds, self.min_timeout)
        if longest is None:
            longest = 0.0 if self.limits_query else math.inf
        if seconds > longest or not (self.timeout_parameter or self.timeout_header):
            return ""
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


def profile_named(name: str) -> Profile:
    """Return the profile with this name.

    Raises:
        SettingsError: there is no profile with this name.
    """
    known = profiles()
    if name not in known:
        raise SettingsError(f"Unknown endpoint profile {name!r}.", f"Choose auto or one of {', '.join(known)}.")
    return known[name]


def profile_of(url: str, server_header: str = "") -> Profile:
    """Return the profile for the host of an address, else for a Server header; `generic` if no profile fits."""
    host, known = (urlsplit(url).hostname or "").lower(), profiles().values()
    by_host = (each for each in known if host in each.hosts)
    by_header = (each for each in known if each.server and re.search(each.server, server_header, re.IGNORECASE))
    return next(by_host, None) or next(by_header, profiles()["generic"])
